/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child: a command of this program in a process of its own.  A trace that is made to harm costs
 * that process, and the loop never waits for it.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct d9__child;

/* The output of a command; borrowed until the callback returns, which may take |out|: then it sets
 * NULL, and frees it later. */
struct d9__child_answer {
	char *out; /* terminated; NULL: nothing, or it failed */
	size_t len;
	const char *why; /* never NULL: the first line that it wrote to stderr, or how it ended */
};

typedef void d9__child_done(void *context, struct d9__child_answer *answer);

struct d9__child_options {
	unsigned seconds; /* killed after these */
	size_t bytes_max; /* that it may say; more counts as a failure */
	/* Only while it is started: */
	const char *directory; /* that it works in; NULL: ours */
	const int *fds;	       /* that it gets under the same numbers */
	size_t n_fds;
};

/*
 * Start |argv|, without "dial9" in front, NULL-terminated, on |base|, which stays the caller's.
 * |done| is called once, from the loop, and then the child is no more.  0 with |*out|, -ENOMEM, or
 * an error of starting a process, and |done| is never called.
 */
int d9__child_start(struct event_base *base, const char *const *argv,
		    const struct d9__child_options *options, d9__child_done *done, void *context,
		    struct d9__child **out);

/* Kill it; |done| is not called. */
void d9__child_free(struct d9__child *child);
