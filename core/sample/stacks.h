/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: those that the program has registered, <dial9/stack.h>, for walks to look up. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define D9__STACKS_MAX 4096u

/*
 * The bounds of the registered stack that |sp| is in.  False: it is in none, or the table changes at this moment, maybe
 * under the very thread that a handler interrupts.  Async-signal-safe, takes no lock.
 */
bool d9__stacks_find(uintptr_t sp, uintptr_t *low, uintptr_t *high);

void d9__stacks_fork_prepare(void);
void d9__stacks_fork_parent(void);
