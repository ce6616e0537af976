/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a recorder began in a directory: it makes a folder there, and one that was to write nothing takes it away again. */

#pragma once

#include <stdbool.h>

/*
 * Watch |dir| from now on.  Pass the result to d9__record_began() once; it is -1 if watching is not
 * possible.
 */
int d9__record_began_watch(const char *dir);

bool d9__record_began(int watch);
