/* SPDX-License-Identifier: Apache-2.0 */
/* The work of each worker over time: it runs callbacks, sleeps, is awake between them. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/histogram.h"
#include "analyze/kernel_backlog.h"
#include "analyze/loop_time.h"
#include "analyze/off_time.h"
#include "analyze/outside_calls.h"
#include "analyze/replay.h"
#include "analyze/returns.h"
#include "analyze/rounds.h"
#include "analyze/starved.h"
#include "analyze/tasks.h"
#include "analyze/time_parts.h"
#include "base/table.h"
#include "base/time.h"

struct d9__stale_timers;

/* A PollStart and its end: a call, or a piece of one. */
struct d9__piece {
	uint64_t number;	      /* among all of the trace, from 1 */
	uint64_t run, delay_ns;	      /* of the call: struct d9__call_end */
	struct d9__traced_task *task; /* NULL: there was none yet */
	uint64_t start_ns, end_ns;
	bool open, open_ended;
	bool resumed; /* goes on with a call that a nested loop had cut */
	unsigned on_samples, off_samples;
	const struct d9__stack *off_stack; /* of the latest of the latter; NULL: none */
	unsigned whole_spans;
	struct d9__inner inner; /* the function with most of the time */

	uint64_t told_ns; /* in waits that were told one by one */
	uint64_t told_until_ns; /* behind the latest of them, and the latest sample: it was open
				   then */
	uint64_t held_up_ns; /* in waits for locks whose holders had no CPU, which are none of those
			      */

	/* Functions of the program that the loop library calls inside: how many run, and for how long in all. */
	struct {
		unsigned open;
		uint64_t since_ns, ns;
		uint64_t told_since_ns, told_ns; /* of the piece's, when the outermost began, and in all */
		struct d9__callback *callback; /* the outermost of those that run */
		uint64_t run;		       /* of |callback| */
		unsigned on_samples, off_samples;
	} users;
	const char *span;
	uint64_t span_ns;
};

/*
 * A loop that goes on without a wait parks for a moment each tenth of a second.  One that does not
 * for so long is still in one round.
 */
#define D9__LONG_ROUND_NS (250 * D9__MS_NS)

/* And had so much of it itself. */
#define D9__LONG_ROUND_OWN_NS (100 * D9__MS_NS)

/* Pieces and long calls of a worker that are remembered, to tell what a task waited for. */
#define D9__WORKER_RECENT 256
#define D9__WORKER_STALLS 8

/* Calls that take as long are no short ones: it is not by their number that others wait. */
#define D9__SHORT_CALL_NS (5 * D9__MS_NS)

/*
 * The calls that ran on |worker| between two moments, as far as they are remembered.  While a
 * callback was ready without a CPU it did not run: that is the kernel's doing, and none of the sums
 * holds it.
 */
struct d9__between {
	bool known; /* it was looked for */
	uint64_t taken_ns; /* that the kernel took */
	uint64_t calls, busy_ns;
	uint64_t natural_ns; /* of busy_ns, what the kernel did not heap up: natural.h */
	const struct d9__callback *longest; /* NULL: nothing ran */
	uint64_t longest_ns;                /* its part between the two moments */
	uint64_t long_ns;                   /* of busy_ns, in calls that were no short ones */
	const struct d9__callback *most;    /* with the largest sum */
	uint64_t most_ns, most_calls;
	uint64_t round_calls, round_ns; /* of all calls, where more ran than is remembered, and all in one round; else 0 */
	uint64_t covered_ns; /* of the time between, what is remembered and was not taken */

	/* The task with more than half of the calls, if there is one. */
	const struct d9__callback *one; /* NULL: none */
	uint64_t one_task, one_calls, one_ns;
};

/* A call that was open so long when the trace ended is told as one that hung; the end cut shorter ones. */
#define D9__HUNG_NS D9__SECOND_NS

/* The recorder's last look at a call that is open. */
struct d9__sign {
	uint64_t task;		    /* 0: nothing was seen */
	uint64_t since_ns, ns;	    /* when the call began, when it was seen last */
	struct d9__callback *inner; /* the innermost callback of the program in it, or NULL: the task's own */
	uint64_t inner_since_ns;    /* when that began; 0: not known */
	uint64_t look_ns, asleep_ns; /* the newest look; until then asleep, each look standing for
					the time before it */
	unsigned looks;		    /* at the thread; the newest says: */
	char where[48];		    /* the system call, "pause()" */
	char wchan[32];
	bool running;
	bool open; /* at the end of the trace */
};

struct d9__worker {
	uint64_t id;
	unsigned number; /* dense, in order of appearance */
	uint32_t tid;
	char thread_name[32]; /* from samples; empty if unknown */
	struct {
		uint64_t wait_ns, own_ns;
	} behind; /* its thread is bound: ready without a CPU, and of that other threads of the
		     program had it */

	uint64_t polls, resumptions, open_ended; /* polls: PollStarts */
	uint64_t poll_ns;
	uint64_t nested_ns; /* in callbacks that run a loop, between the pieces of all */
	struct d9__histogram calls;	/* durations */
	struct d9__histogram own_calls; /* the same without what the kernel took of long ones */
	struct d9__account time;    /* of active_ns and parked_ns */
	uint64_t waiting_ns;
	struct d9__loop_time loop_time;
	struct d9__stale_timers *stale; /* that were armed between rounds; owned; NULL: none */
	uint64_t looks_ns, looked_ns; /* in waits too short for a sleep: of which no reading has
					 told yet, and in all */
	struct d9__callback
		beside; /* stands for its awake time outside of callbacks: where samples found it */
	struct d9__weight between, waiting; /* of samples between rounds, and in waits; the rest of
					       |beside|'s are in rounds */

	uint64_t parks, parked_ns;
	uint64_t active_periods, active_ns;
	uint64_t cpu_ns; /* of its threads from their first reading to their last, waits included */
	uint64_t cut_cpu_ns; /* at most, after the last reading: in a call that the end of the trace
				cut */
	double ratio_sum;
	uint64_t long_periods, starved_periods; /* over 1 ms; of them with a CPU ratio below 0.5 */
	uint64_t handovers;
	bool cpu_seen; /* some CPU time was above 0 */

	uint64_t run_queue_ns; /* ready without a CPU, by RunQueueEvents */
	uint64_t wait_measured, wait_sum_ns, waits_over_100ns, waits_over_1ms;
	struct d9__histogram waits; /* above 0 */
	uint64_t wait_max_at_ns;

	struct {
		uint64_t ns;
		const struct d9__stack *stack;
		uint64_t told_until_ns; /* the end of the latest call that blocked and has its stack */
		struct d9__absence *absence; /* since then; NULL: there was none */
	} off; /* its latest off-CPU sample; NULL: there was none */
	uint64_t wakes_issued, on_samples, off_samples, polls_with_on, polls_with_off;
	uint64_t switches; /* of |off_samples|, that slices tell of */
	unsigned local_max;
	uint64_t local_sum;

	/* State. */
	struct d9__piece piece; /* the open or the last one */
	struct d9__sign sign;   /* of it, if its task is that of the piece */
	struct d9__sign around; /* of the latest call that was seen waiting for a loop of its own */
	struct {
		uint64_t n, cpu_ns, since_ns, until_ns; /* since, until: of the newest */
	} library; /* CPU time in its library, without a callback, as the recorder saw it */
	uint64_t wait_samples,
		wait_sampled_ns; /* on the CPU in the wait that is open, and when last */
	struct d9__sign outside; /* of the loop, that stood still outside of callbacks: the latest such time */
	struct {
		uint64_t ns;
		uint32_t tid;
		bool valid;
	} cpu; /* the highest reading of its thread */
	struct {
		uint64_t n, ns, max_ns, max_at_ns;
	} busy_waits; /* CPU time inside of waits, of those with much of it; |max_at_ns|: when that wait began */
	struct {
		bool valid;
		uint64_t ns, cpu_ns;
		uint64_t poll_ns, polls; /* of an unpark: in callbacks so far, and how many */
		uint64_t pieces_ns;	 /* of an unpark: |poll_ns| of the worker */
		uint64_t told_ns; /* of an unpark: since then off the CPU in calls that tell it */
		uint64_t taken_ns; /* of it, ready without one */
		uint64_t ready_ns;    /* of an unpark: ready since then, or in waits before, as a
					 RunQueueEvent told */
		uint64_t sources_ns;  /* of an unpark: in prepare() and check(), as far as told */
		uint64_t cpu_high_ns; /* of an unpark: the highest reading up to it */
		uint32_t tid;
	} unpark, park;
	struct {
		uint64_t from_ns, ns;
	} gap; /* the longest stretch without a callback since its unpark; ns 0: none */
	struct {
		uint64_t from_ns, until_ns;
		uint64_t taken_ns; /* of it, ready without a CPU, as far as it was measured */
	} slept; /* the newest wait that is over; all 0: none */
	struct {
		uint64_t start_ns, end_ns, task;
		uint64_t taken_ns; /* of it, ready without a CPU */
		uint64_t excused_ns; /* of what is left, heaped up by the kernel: natural.h */
		const struct d9__callback *callback;
		unsigned depth; /* of the loops that it ran so far */
	} recent[D9__WORKER_RECENT];
	uint64_t n_recent; /* ever written */
	struct d9__stall *stalls[D9__WORKER_STALLS]; /* owned references */
	uint64_t n_stalls;
	uint64_t stalls_end_ns;
	uint64_t ready_from_ns;	  /* of the newest reading of how long it was ready without a CPU */
	uint64_t ready_behind_ns; /* of that, in the wait that begins with the reading */
	uint64_t explained_ns, explained_taken_ns; /* when a wait was last looked into; found */
	uint64_t explained_late_ns; /* the same of a late timer */
	uint64_t unpark_before_ns; /* the last but one: a loop that never waits has one now and then */
	struct d9__rounds rounds, rounds_over; /* of the window that is open, and the one before */
	struct d9__starved starved;
	struct {
		uint64_t
			ns; /* that calls of one task ran for while others waited, each time once */
		uint64_t to_ns; /* up to when that is counted */
	} unfair;
	struct d9__newest_wake wake;
	struct d9__returns returns; /* from outside of its loop */
	struct d9__outside_calls outside_calls;
	struct d9__period period;
	struct d9__replay replay;
	struct d9__kernel_backlog natural;
	uint64_t windows;      /* judged */
	struct d9__empty_wakes empty;
	struct d9__little little;
	struct {
		uint64_t ns, from_ns, calls; /* ns: without what the kernel took */
		uint64_t wall_ns;
		struct d9__between between; /* of the newest calls in it */
	} round; /* the longest of those that only calls made long */
	uint64_t entered_ns;   /* its first event, if that was the Unpark of entering a loop */
	uint64_t lost_from_ns, lost_to_ns; /* the newest time of which events are lost; 0: none */
};

struct d9__timeline {
	struct d9__table by_id;
	struct d9__worker **items;
	size_t n;
	struct d9__worker *latest; /* that was asked for; NULL: none was */
	uint64_t pieces;	 /* that have begun */
	size_t n_open, open_sum; /* workers with an open piece, and the sum of their numbers */

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
			    struct d9__traced_task *task, bool resumed, unsigned local_queue);
int d9__timeline_poll_end(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns);
int d9__timeline_park(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		      uint64_t cpu_ns, uint32_t tid);
/* |wait_ns|: UINT64_MAX if it was not measured. */
int d9__timeline_unpark(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			uint64_t cpu_ns, uint64_t wait_ns, uint32_t tid);

/*
 * |worker| was ready without a CPU for |wait_ns|, awake or in waits, that nothing else tells of, by
 * readings at |from_ns| and |to_ns|, when its next wait begins.
 */
void d9__timeline_ready(struct d9__worker *worker, uint64_t from_ns, uint64_t to_ns,
			uint64_t wait_ns);

/* |worker| was in prepare() or check() of a source for |ns|. */
void d9__timeline_source(struct d9__worker *worker, uint64_t ns);

/* The whole process stood still from |from_ns| to |to_ns|: that is no doing of its loops and
 * callbacks. */
void d9__timeline_stopped(struct d9__timeline *timeline, uint64_t from_ns, uint64_t to_ns);

/* The one worker with an open piece; NULL: none has one, or several have. */
const struct d9__worker *d9__timeline_only_open(const struct d9__timeline *timeline);

/* The outermost function of the program in |worker|'s piece returns at |ns|, or the piece ends. */
void d9__piece_leave_users(struct d9__worker *worker, uint64_t ns);

/* End an open piece, as another PollStart of the worker would.  0, or what on_piece() returned. */
int d9__timeline_close(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns);

/*
 * |task|'s call goes on at |ns|: what |worker| did since its latest piece ended was done by a loop that the call
 * ran.  Before d9__timeline_poll_start().
 */
void d9__timeline_nested(struct d9__worker *worker, struct d9__traced_task *task, uint64_t ns);

/* The piece of |task| that |worker| ended just now was ready without a CPU for |taken_ns|. */
void d9__timeline_taken(struct d9__worker *worker, uint64_t task, uint64_t taken_ns);

/*
 * How long the active period of |worker| that a park ends at |ns| with |cpu_ns| was off the CPU, besides what its calls
 * told, and |*from_ns|, when it began; 0: not known.  Before d9__timeline_park().
 */
uint64_t d9__timeline_off_cpu(const struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns, uint32_t tid,
			      uint64_t *from_ns);

/* The trace ends at |ns|: close open parks.  An open piece stays open: its length is unknown.  0 or -ENOMEM. */
int d9__timeline_finish(struct d9__timeline *timeline, uint64_t ns);

/*
 * Until when the time awake of |worker| is known that no park ended, if the trace ends at |ns|: in
 * an open call until then, else until its last call ended, or until the recorder saw it last.
 */
uint64_t d9__worker_awake_until(const struct d9__worker *worker, uint64_t ns);

/*
 * No reading ended the worker's last time awake, of |wall_ns|: how much of it was on the CPU, since
 * its calls did not tell of it as off the CPU.
 */
uint64_t d9__worker_last_used_ns(const struct d9__worker *worker, uint64_t wall_ns);

/* CPU time in its library since |from_ns|, when its wait or its round began, as the recorder saw
 * it. */
uint64_t d9__worker_burns(const struct d9__worker *worker, uint64_t from_ns);

/*
 * Before its first event: the loop of |worker|, on thread |tid|, waits since |ns|, or does not.
 * Its CPU time is not known.
 */
void d9__worker_goes_on(struct d9__worker *worker, uint64_t ns, uint32_t tid, bool waits);

/* Share of the time in which |worker| was not parked, 0 to 1. */
double d9__worker_utilisation(const struct d9__worker *worker);

/* Mean over its active periods of CPU time per wall time; below 0 if not recorded. */
double d9__worker_cpu_ratio(const struct d9__worker *worker);

/* Its time in open callbacks, and its share of all its time, 0 to 1. */
uint64_t d9__worker_busy_ns(const struct d9__worker *worker);
double d9__worker_busy(const struct d9__worker *worker);

/* Its CPU time as a share of all its time, 0 to 1; below 0 if not recorded. */
double d9__worker_on_cpu(const struct d9__worker *worker);

/*
 * Whether callbacks waited for how |worker|'s thread slept outside of its loop, and worked there:
 * in each of the 60 frames a second that a program draws it may look at its loop once.
 */
#define D9__FRAME_NS (17 * D9__MS_NS)
bool d9__worker_was_missed(const struct d9__worker *worker);

/* Remember |stall| (takes a reference of its own). */
void d9__worker_add_stall(struct d9__worker *worker, struct d9__stall *stall);

struct d9__between d9__worker_between(const struct d9__worker *worker, uint64_t from_ns,
				      uint64_t to_ns);
