/* SPDX-License-Identifier: Apache-2.0 */
/* Select the wanted stacks of a profile, and weigh them. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__callback;
struct d9__profile;

/*
 * Leave in |profile|, whose callbacks have their names, only the stacks of the callback and loop that are wanted, weighed
 * as wanted.  0, or an exit status after a line on stderr: there is no such callback, span or loop in the trace, it does not
 * tell that weight, or nothing is left.
 */
int d9__profile_select(struct d9__profile *profile, const char *command);

/* True if a call of |callback| on |worker|, or a sample inside of it, is of the callback and loop
 * that are wanted. */
bool d9__profile_selects(const struct d9__profile *profile, const struct d9__callback *callback, const uint64_t *worker);
