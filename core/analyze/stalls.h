/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that took long: where the time went, and who waited behind them. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/callbacks.h"
#include "base/time.h"

/* Calls from here on are kept one by one. */
#define D9__STALL_NS D9__MS_NS

#define D9__STALL_VICTIMS 5

/* A task that was ready before a long call ended and ran after it. */
struct d9__victim {
	uint64_t delay_ns; /* from ready to running */
	const struct d9__callback *callback;
	uint64_t task;
	bool timer;
};

struct d9__stall {
	unsigned refs;
	const struct d9__callback *callback;
	const struct d9__callback *culprit; /* the user's function inside the library's, if known */
	uint64_t culprit_ns;
	uint64_t culprit_runs; /* that the library made of it in this one call; 1 also if it is that
				  one itself */
	uint64_t others_slept_ns; /* of |blocked_ns|, outside of the culprit */
	const char *span; /* the longest span of the program inside, or NULL; borrowed */
	uint64_t span_ns;
	uint64_t task;
	uint64_t worker;
	uint64_t start_ns, end_ns;
	uint64_t total_ns; /* without what nested loops took */
	unsigned pieces;
	uint64_t nested_ns, nested_parked_ns, nested_calls; /* of loops that it ran: struct d9__call */
	unsigned depth;
	unsigned on_samples, off_samples;
	const struct d9__stack *off_stack; /* of the latest of the latter; NULL: none; borrowed */
	uint64_t sampled_ns; /* of CPU time, that the former stand for; 0: not known */

	/* Bounds of the CPU time it used, from its worker's parks. */
	bool cpu_known;
	uint64_t cpu_min_ns, cpu_max_ns;

	/* Of it, off the CPU: asleep, and ready without one; both 0 if that was not recorded. */
	uint64_t blocked_ns, run_queue_ns;
	uint64_t stopped_ns; /* of run_queue_ns: the whole process stood still */
	uint64_t unread_ns; /* of a call that the end of the trace cut: the trace does not say what it did in that time */
	bool open; /* it had not ended when the trace did: all times of it are the least that it
		      took */
	struct d9__account time; /* of total_ns */

	/* The callbacks that waited; worst first. */
	uint64_t waited, waited_max_ns;
	uint64_t behind_ns; /* of waits in which it held the loop for D9__WAIT_EXPLAIN_NS and more,
			       itself */
	struct d9__victim victims[D9__STALL_VICTIMS];
	size_t n_victims;
};

/* How long its culprit slept, never longer than that ran. */
uint64_t d9__stall_slept_ns(const struct d9__stall *stall);

/* Whether its culprit slept for most of its time, without what the kernel took. */
bool d9__stall_is_blocked(const struct d9__stall *stall);

/* A call or a part of it, with the waits that were told in it, and how long it was off the CPU. */
struct d9__off_part {
	uint64_t ns, told_ns;
	uint64_t slept_ns, ready_ns; /* ready without a CPU */
};

/*
 * How long |part| of |call| was off the CPU, never longer than it took: it slept what was told in
 * it, and of the rest what its length makes likely.
 */
void d9__off_part(const struct d9__off_part *call, struct d9__off_part *part);

/*
 * The time that |stall|'s culprit took itself: without its part of the time in which the thread was ready
 * and the kernel ran something else, and of the time that no reading covers because the trace ended.
 */
uint64_t d9__stall_own_ns(const struct d9__stall *stall);

/* The part of |ns|, which lie in |stall|, that its culprit took itself. */
uint64_t d9__stall_left_ns(const struct d9__stall *stall, uint64_t ns);

/* With one reference, or NULL: out of memory. */
struct d9__stall *d9__stall_new(void);

struct d9__stall *d9__stall_ref(struct d9__stall *stall);

/* NULL is allowed. */
void d9__stall_unref(struct d9__stall *stall);

/* Note that |victim| waited behind |stall|. */
void d9__stall_add_victim(struct d9__stall *stall, const struct d9__victim *victim);

/*
 * Its worker was awake for |wall_ns| around |stall| and used |cpu_ns| of CPU in that time: narrow
 * the bounds.
 */
void d9__stall_set_cpu(struct d9__stall *stall, uint64_t wall_ns, uint64_t cpu_ns);

enum d9__stall_verdict {
	D9__STALL_UNKNOWN,   /* CPU times were not recorded, or do not tell */
	D9__STALL_COMPUTING, /* on the CPU for 60 % or more */
	D9__STALL_OFF_CPU,   /* off the CPU for 60 % or more */
	D9__STALL_MIXED,
};

enum d9__stall_verdict d9__stall_verdict(const struct d9__stall *stall);

/* The longest calls of the trace, longest first.  All zero is empty. */
#define D9__STALLS_MAX 100
struct d9__stalls {
	struct d9__callback_stall items[D9__STALLS_MAX];
	size_t n;
};

void d9__stalls_release(struct d9__stalls *stalls);
void d9__stalls_keep(struct d9__stalls *stalls, struct d9__stall *stall);

/* Keep |stall| if it is among the longest of |callback|. */
void d9__callback_keep_stall(struct d9__callback *callback, struct d9__stall *stall);

/* The own times of |callback|'s kept calls have changed: bring these into order again. */
void d9__callback_sort_stalls(struct d9__callback *callback);
