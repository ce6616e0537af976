/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment: the one place in the recorded program that reads it.  Where the program has other rights than
 * the user who started it (set-user-ID, set-group-ID, file capabilities), none of it counts, because that user
 * may not choose for the program: the recorder runs on its defaults.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <dial9/export.h>

/* True if the user who set the environment may choose for the program. */
D9_API bool d9__environment_counts(void);

/* The value of |name|; NULL if it has none or none counts. */
D9_API char *d9__environment_get(const char *name);

/* Variable |i| of DIAL9_*, "NAME=VALUE"; NULL behind the last, and if none counts. */
const char *d9__environment_ours(size_t i);

/*
 * Take DIAL9_* out of the environment, so that no program that is started from here finds them; what they
 * were is still found by d9__environment_get().  Before any other thread is there.
 */
D9_API void d9__environment_take(void);
