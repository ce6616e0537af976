/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables a program gets that a user has named for dial9 to run: what is known to be no secret. */

#pragma once

#define D9__CLEAN_VARIABLES 19

/* Put those that are set, borrowed, and |more|, which may be NULL, into |out|; behind the last stands NULL. */
void d9__clean_environment(char *out[D9__CLEAN_VARIABLES + 2], char *more);
