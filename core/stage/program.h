/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: a process of its own that reads a segment from its standard input and writes another to
 * its standard output. It is the leader of its own process group, which is killed when the time is
 * over, and in any case once the leader has ended.  What it says on its standard error is kept, not
 * shown.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__program {
	char *const *argv; /* as for execvp(3); NULL: |call| */
	/* Called in the process instead, which ends with what it returns. */
	int (*call)(const char *path);
	const char *path;
	char *facts; /* one more variable of its environment */
	uint64_t timeout_ns;
	uint64_t limit_bytes; /* of its memory, and of what it writes; 0: none */
	void (*pulse)(void *context); /* called now and then while it runs; may be NULL */
	void *context;
};

struct d9__program_end {
	int status;	/* as of waitpid(2) */
	bool timed_out; /* it was killed for that */
	bool too_much;	/* for writing more than |limit_bytes| */
	bool left;	/* processes of its group were there when it ended */
	bool held;	/* and had its standard output open for another second */
	int write_err;	/* what went wrong with writing what it gave */
	char said[200]; /* the first line of its standard error */
};

/*
 * Run it with |from|, from the beginning, which is not moved, or -1 for nothing to read; what it
 * writes is appended to |to|.  0, or -errno if it could not be started: then nothing is in |end|.
 */
int d9__program_run(const struct d9__program *program, int from, int to,
		    struct d9__program_end *end);

/* From now on a signal that ends this process ends the group of the program that runs, too. */
void d9__program_guard(void);
