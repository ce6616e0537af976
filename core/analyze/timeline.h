/* SPDX-License-Identifier: Apache-2.0 */
/* What each worker does over time: runs callbacks, sleeps, is awake between them. */

#ifndef D9_ANALYZE_TIMELINE_H
#define D9_ANALYZE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/histogram.h"
#include "analyze/natural.h"
#include "analyze/rounds.h"
#include "analyze/table.h"
#include "analyze/tasks.h"

/* A PollStart and its end: a call, or a piece of one. */
struct d9__piece {
	struct d9__task *task; /* NULL: there was none yet */
	uint64_t start_ns, end_ns;
	bool open, open_ended;
	bool resumed; /* goes on with a call that a nested loop had cut */
	unsigned on_samples, off_samples;
	unsigned whole_spans;
	struct d9__callback *inner;
	uint64_t inner_ns;
	const char *span;
	uint64_t span_ns;
};

/*
 * A loop that goes on without a wait parks for a moment each tenth of a second.  One that does not
 * for so long is still in one round.
 */
#define D9__LONG_ROUND_NS D9__MS(250)

/* Pieces and long calls of a worker that are remembered, to tell what somebody waited for. */
#define D9__WORKER_RECENT 256
#define D9__WORKER_STALLS 8

/*
 * What ran on |worker| between two moments, as far as it is remembered.  While a callback was ready
 * without a CPU it did not run: that is the kernel's doing, and none of the sums holds it.
 */
struct d9__between {
	bool known; /* somebody looked */
	uint64_t taken_ns; /* that the kernel took */
	uint64_t calls, busy_ns;
	uint64_t natural_ns; /* of busy_ns, what the kernel did not heap up: natural.h */
	const struct d9__callback *longest; /* NULL: nothing ran */
	uint64_t longest_ns;                /* its part between the two moments */
	const struct d9__callback *most;    /* with the largest sum */
	uint64_t most_ns, most_calls;
	uint64_t covered_ns; /* of the time between, what is remembered and was not taken */

	/* The task with more than half of the calls, if there is one. */
	const struct d9__callback *one; /* NULL: none */
	uint64_t one_task, one_calls, one_ns;
};

struct d9__worker {
	uint64_t id;
	unsigned number; /* dense, in order of appearance */
	uint32_t tid;
	char thread_name[32]; /* from samples; empty if unknown */

	uint64_t polls, resumptions, open_ended; /* polls: PollStarts */
	uint64_t poll_ns;
	struct d9__histogram calls; /* durations */

	uint64_t parks, parked_ns;
	uint64_t active_periods, active_ns, cpu_ns;
	double ratio_sum;
	uint64_t long_periods, starved_periods; /* over 1 ms; of them with a CPU ratio below 0.5 */
	uint64_t handovers;
	bool cpu_seen; /* some CPU time was above 0 */

	uint64_t wait_measured, wait_sum_ns, waits_over_100ns, waits_over_1ms;
	struct d9__histogram waits; /* above 0 */
	uint64_t wait_max_at_ns;

	uint64_t wakes_issued, on_samples, off_samples, polls_with_on, polls_with_off;
	unsigned local_max;
	uint64_t local_sum;

	/* State. */
	struct d9__piece piece; /* the open or the last one */
	struct {
		bool valid;
		uint64_t ns, cpu_ns;
		uint64_t poll_ns, polls; /* of an unpark: in callbacks so far, and how many */
		uint32_t tid;
	} unpark, park;
	struct {
		uint64_t from_ns, until_ns;
		uint64_t taken_ns; /* of it, ready without a CPU, as far as it was measured */
	} slept; /* the newest wait that is over; all 0: none */
	struct {
		uint64_t start_ns, end_ns, task;
		uint64_t taken_ns; /* of it, ready without a CPU */
		uint64_t excused_ns; /* of what is left, heaped up by the kernel: natural.h */
		const struct d9__callback *callback;
	} recent[D9__WORKER_RECENT];
	uint64_t n_recent; /* ever written */
	struct d9__stall *stalls[D9__WORKER_STALLS]; /* owned references */
	uint64_t n_stalls;
	uint64_t stalls_end_ns;
	uint64_t explained_ns, explained_taken_ns; /* when a wait was last looked into; found */
	uint64_t explained_late_ns; /* the same of a late timer */
	uint64_t unpark_before_ns; /* the last but one: a loop that never waits has one now and then */
	struct d9__rounds rounds;
	struct d9__natural natural;
	uint64_t windows;      /* judged */
	struct d9__empty_wakes empty;
	struct {
		uint64_t ns, from_ns, calls;
		struct d9__between between; /* of the newest calls in it */
	} round; /* the longest of those that only calls made long */
	uint64_t entered_ns;   /* its first event, if that was the Unpark of entering a loop */
};

struct d9__timeline {
	struct d9__table by_id;
	struct d9__worker **items;
	size_t n;

	/* Called when a piece ends; returns 0 or -errno. */
	int (*on_piece)(void *context, struct d9__worker *worker, const struct d9__piece *piece);
	void *context;
};

void d9__timeline_release(struct d9__timeline *timeline);

/*
 * The worker |id|, made at its first sight; NULL: out of memory.  Ids beyond the first
 * D9__WORKERS_MAX, which only a damaged trace has, share the last worker.
 */
#define D9__WORKERS_MAX 4096
struct d9__worker *d9__timeline_worker(struct d9__timeline *timeline, uint64_t id);

/* events.md 9.1, one function per event.  0, or what on_piece() returned. */
int d9__timeline_poll_start(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			    struct d9__task *task, bool resumed, unsigned local_queue);
int d9__timeline_poll_end(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns);
int d9__timeline_park(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		      uint64_t cpu_ns, uint32_t tid);
/* |wait_ns|: UINT64_MAX if it was not measured. */
int d9__timeline_unpark(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			uint64_t cpu_ns, uint64_t wait_ns, uint32_t tid);

/* End an open piece, as another PollStart of the worker would.  0, or what on_piece() returned. */
int d9__timeline_close(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns);

/* The piece of |task| that |worker| ended just now was ready without a CPU for |taken_ns|. */
void d9__timeline_taken(struct d9__worker *worker, uint64_t task, uint64_t taken_ns);

/* The trace ends at |ns|: close open parks.  An open piece stays open: its length is unknown. */
void d9__timeline_finish(struct d9__timeline *timeline, uint64_t ns);

/* Share of the time in which |worker| was not parked, 0 to 1. */
double d9__worker_utilisation(const struct d9__worker *worker);

/* Mean over its active periods of CPU time per wall time; below 0 if not recorded. */
double d9__worker_cpu_ratio(const struct d9__worker *worker);

/* CPU time per wall time of all active periods together, 0 to 1; below 0 if not recorded. */
double d9__worker_on_cpu(const struct d9__worker *worker);

/* Remember |stall| (takes a reference of its own). */
void d9__worker_add_stall(struct d9__worker *worker, struct d9__stall *stall);

struct d9__between d9__worker_between(const struct d9__worker *worker, uint64_t from_ns,
				      uint64_t to_ns);

#endif /* D9_ANALYZE_TIMELINE_H */
