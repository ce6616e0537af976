/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: a process that reads a segment from its standard input and writes another one to its
 * standard output.  It leads a process group, which is killed when its time is over, and in any
 * case once the leader has ended.  Its standard error is kept, not shown.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__program {
	char *const *argv; /* as for execvp(3); NULL: |call| */
	/* Called in the process instead of a program; its result is the exit status. */
	int (*call)(const char *path);
	const char *path;
	char *facts; /* one more variable of its environment */
	uint64_t timeout_ns;
	uint64_t limit_bytes;	      /* of its memory, and of its output; 0: no limit */
	void (*pulse)(void *context); /* called now and then while it runs; may be NULL */
	void *context;
};

struct d9__program_end {
	int status;	/* as of waitpid(2) */
	bool timed_out; /* it was killed for that */
	bool too_much;	/* for writing more than |limit_bytes| */
	bool left;	/* processes of its group were there when it ended */
	bool held;	/* and had its standard output open for another second */
	int write_err;	/* the error of writing its output */
	char said[200]; /* the first line of its standard error */
};

/*
 * Run it with |from| as its input, from the beginning and without moving it, or -1 for none; its
 * output is appended to |to|.  Returns 0, or -errno if it could not be started: then |end| is not
 * set.
 */
int d9__program_run(const struct d9__program *program, int from, int to,
		    struct d9__program_end *end);

/* From now on a signal that ends this process ends the group of the program that runs, too. */
void d9__program_guard(void);
