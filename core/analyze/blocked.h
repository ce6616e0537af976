/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocked: calls that blocked inside callbacks, and between rounds of a loop, by the place in the
 * program that made them, and who held the locks.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/samples.h"

/* A BlockingCallEvent. */
struct d9__blocked_event {
	/* that ran; between rounds of a worker's loop, its |beside| */
	const struct d9__callback *callback;
	const char *function;
	size_t function_len;
	int64_t fd; /* below 0: none */
	uint64_t at_ns, ns;
	uint64_t worker, task;
	const struct d9__stack *stack; /* NULL: not told */

	/* Of a lock. */
	uint32_t holder_tid;		    /* 0: not known */
	const struct d9__callback *holder;  /* the callback that ran there, or NULL: none */
	const struct d9__stack *held_stack; /* at the unlock, or NULL */
	char holder_name[16];		    /* the thread's; "": not told */
	uint64_t held_ns;		    /* how long it had the lock of |ns|; 0: not told */
	uint64_t held_cpu_ns;		    /* and was on the CPU; UINT64_MAX: not told */
	uint64_t held_ready_ns;		    /* and ready without one; UINT64_MAX: not told */
};

/* Calls of one callback, function and stack. */
struct d9__blocked_calls {
	const struct d9__callback *callback;
	const char *function; /* borrowed from the texts */
	const struct d9__stack *stack;
	int64_t fd;	  /* of the first, below 0: none */
	bool several_fds; /* others had others */
	uint64_t n, total_ns;
	struct d9__blocked_event longest;
	uint64_t held;			       /* of those, how many know who held the lock */
	struct d9__blocked_event longest_held; /* of these; its |callback| NULL: there is none */
};

/* All zero is empty. */
struct d9__blocked {
	struct d9__table by_key; /* struct d9__blocked_calls; owned */
	struct d9__texts functions;
	uint64_t n;
};

/* 0 or -ENOMEM. */
int d9__blocked_add(struct d9__blocked *blocked, const struct d9__blocked_event *event);

void d9__blocked_release(struct d9__blocked *blocked);

/* Calls of one callback and function from one line, whatever led there. */
struct d9__blocked_site {
	struct d9__blocked_calls calls;	    /* summed up */
	const struct d9__frame_name *frame; /* the program's function that made them; NULL: the
					       callback itself, or not known */
	const struct d9__frame_name
		*held; /* that held the lock for longest, and unlocked it; NULL: not known */
};

/*
 * By total time, longest first, in new memory (free() it): |*n| of them, of |callback| alone unless
 * it is NULL.  NULL: none, or out of memory, which |*n| tells apart: it is SIZE_MAX then.  Stacks
 * should have names.
 */
struct d9__blocked_site *d9__blocked_sites(const struct d9__blocked *blocked,
					   const struct d9__callback *callback, size_t *n);

/* "fsync(7)", or "fsync()" where there is no descriptor or there are several. */
void d9__blocked_what(const struct d9__blocked_calls *calls, char *buf, size_t size);

/*
 * Whether a thread calls |function|, between two rounds of its loop, to wait for what may as well
 * be the loop's: descriptors, a time, a signal.
 */
bool d9__blocked_is_own_wait(const char *function);

/* Name the thing that |function| waits for, if it is a lock or the like: "a lock", "a condition",
 * ...; else NULL. */
const char *d9__blocked_waits_for(const char *function);

/* From where |site|'s calls are made, and where the lock was held: "db_commit (svc.c:53)",
 * "db_commit", or "". */
void d9__blocked_where(const struct d9__blocked_site *site, char *buf, size_t size);
void d9__blocked_held_where(const struct d9__blocked_site *site, char *buf, size_t size);
