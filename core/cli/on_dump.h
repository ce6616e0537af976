/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 record --on-dump`: run commands for each dump of the processes that CMD is and starts.
 *
 * A thread watches the trace directory.  It gives the manifest of a dump that is finished to every command as its last
 * argument, one command at a time, and one dump after the other.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/run/record_result.h"

#define D9__ON_DUMP_COMMANDS 8
#define D9__ON_DUMP_WAITING  16 /* dumps that wait for their commands; further ones are left out */
#define D9__ON_DUMP_LIMIT_NS UINT64_C(30000000000)

/* Which commands.  All zero: none. */
struct d9__on_dump_commands {
	const char *texts[D9__ON_DUMP_COMMANDS]; /* as the command line has them */
	char **argv[D9__ON_DUMP_COMMANDS];
	size_t n;
};

/* One more: |text|, which stays.  False: one line was printed. */
bool d9__on_dump_add(struct d9__on_dump_commands *commands, const char *text);
void d9__on_dump_release(struct d9__on_dump_commands *commands);

struct d9__on_dump_plan {
	const struct d9__on_dump_commands *commands;
	const char *dir;		     /* the trace directory, absolute */
	const struct d9__namespaces *before; /* in it before CMD started: not CMD's */
	uint64_t limit_ns;		     /* that a command may take */
};

/* The result of all commands. */
struct d9__on_dump_outcome {
	uint64_t runs, failed, left_out;
	bool given_up;	/* this process was told to end */
	char last[512]; /* of the latest that failed: the command, why, the manifest */
};

struct d9__on_dump;

/*
 * Begin, before CMD starts.  |plan| and all that it points to must stay until the end.  NULL: there
 * are no commands, or one line was printed.
 */
struct d9__on_dump *d9__on_dump_begin(const struct d9__on_dump_plan *plan);

/*
 * Call this once CMD has ended and its rings are recovered.  Handle the remaining dumps, those that
 * CMD was killed in included, and wait for their commands unless this process is told to end.
 * Frees |on_dump|; NULL is allowed.
 */
void d9__on_dump_end(struct d9__on_dump *on_dump, struct d9__on_dump_outcome *out);

/* One line, if there is something to tell. */
void d9__on_dump_tell(const struct d9__on_dump_outcome *outcome);
