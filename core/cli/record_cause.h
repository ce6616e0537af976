/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: why no recorder wrote anything, in so many words as it takes to do something about it. */

#ifndef D9_CLI_RECORD_CAUSE_H
#define D9_CLI_RECORD_CAUSE_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Print the one cause that applies to the program |argv|, as far as its file, the loader and the name of the program
 * tell, and what to do or to type instead.  |dir|: as it was given, for that.  |follows|: what it starts would be
 * recorded too.  Nothing runs.
 */
void d9__record_cause(FILE *out, char *const *argv, const char *dir, bool follows);

/* The same of `dial9 record --profile-only`, for which a program needs no loop. */
void d9__record_cause_of_profile(FILE *out, char *const *argv, const char *dir);

#endif /* D9_CLI_RECORD_CAUSE_H */
