/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: why no recorder wrote anything, in so many words as it takes to do something about it. */

#pragma once

#include <stdbool.h>
#include <stdio.h>

#define D9__RECORD_END_LEN 96

/* A command that was run and not recorded. */
struct d9__record_command {
	char *const *argv;
	const char *dir;	      /* as it was given */
	int wait_status;
	char end[D9__RECORD_END_LEN]; /* the same in words, see below */
};

/* "ended with exit status 1", "was ended by signal 6 (Aborted)", or "" if it ended well. */
void d9__record_end_text(int wait_status, char *out, size_t size);

/*
 * Print the one cause that applies to |command|, as its file, its end, the loader and its name
 * tell, and what to type instead.  |follows|: its children would be recorded, too.  Nothing is run.
 */
void d9__record_cause(FILE *out, const struct d9__record_command *command, bool follows);

/* As d9__record_cause(), for `dial9 record --profile-only`, where a program needs no loop. */
void d9__record_cause_of_profile(FILE *out, const struct d9__record_command *command);

/* True if the environment tells recorders to write nothing but dumps. */
bool d9__record_is_flight(void);
