/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks, which loops call: registrations by id, from spawn to end. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/callbacks.h"
#include "base/table.h"

struct d9__worker;

/* target_worker of a wake from outside the workers, and all above. */
#define D9__WORKER_OTHERS 254

struct d9__stale_timer;

/* One call of a callback: a poll, or the pieces into which nested loops cut it. */
struct d9__call {
	unsigned pieces; /* 0: none */
	bool open_ended;
	unsigned on_samples, off_samples;
	const struct d9__stack *off_stack; /* as in struct d9__piece */
	uint64_t start_ns, total_ns;
	uint64_t number; /* of its callback's calls, from 0 */
	uint64_t run, piece, delay_ns; /* as in struct d9__call_end */
	bool read;
	uint64_t slept_ns, ready_ns; /* if it was |read| */
	struct d9__worker *worker;
	struct d9__stall *stall; /* owned reference, once it is long */
	uint64_t told_ns;	 /* in waits that were told, until its latest piece ended */
	struct d9__inner inner;	 /* the function of the program with most of a library's call */
	uint64_t users_ns, users_told_ns; /* in all of them */
	unsigned users_on, users_off; /* samples in all of them */
	uint64_t user_run;	      /* of |user| */
	unsigned users_open; /* when its latest piece ended: they ran a loop */
	struct d9__callback *user; /* the outermost of these */
	struct d9__callback *looper; /* the function that ran the loops */
	const char *span; /* the longest span of the program */
	uint64_t span_ns;

	/* The thread's own figures, and where it was found asleep; NULL: it was not. */
	bool figures;
	uint64_t faults, user_ns, system_ns;
	const char *asleep;
	uint64_t waits_ns; /* in waits inside it that were told one by one */

	/*
	 * Loops that it ran lie between its pieces.  It was open for total_ns + nested_ns; the latter holds
	 * the waits of these loops, their callbacks and what the loops themselves took.
	 */
	uint64_t nested_ns, nested_parked_ns, nested_calls;
	uint64_t nested_taken_ns; /* ready without a CPU when its waits were over */
	unsigned depth; /* of loops in loops, 0: it ran none */
	struct {
		uint64_t poll_ns, nested_ns, parked_ns, polls, taken_ns;
	} left; /* of its worker, when its latest piece ended */
};

struct d9__traced_task {
	uint64_t id;
	struct d9__callback *callback; /* NULL until known */
	bool spawned, told, seen, ended, buried, uninstrumented;
	uint64_t spawned_ns;
	uint64_t starving_ns; /* starved.h: the time in which it was counted last, by its beginning
			       */

	uint16_t pieces; /* workers whose piece, open or their last one, is of this task */

	/* The newest wake that no poll has used, and for timers the one before it. */
	bool woken, woken_before, carried;
	uint8_t reason;
	uint64_t wake_ns, wake_before_ns, waker;
	uint64_t waker_worker; /* of the newest wake; D9__WORKER_OTHERS and more: none */
	uint64_t resume_ns; /* stamp of the last self wake that may mark a resumption */

	uint64_t due_ns, period_ns; /* of a timer: newest deadline, least time between two */
	uint64_t ahead_ns; /* the longest from a call's start to the next deadline: at most the period */
	struct d9__stale_timer *stale; /* owned; NULL: it was not armed by a clock that stood still */

	unsigned running; /* open pieces; two while the end of one is read after the next start */
	uint64_t last_start_ns, last_end_ns;
	bool polled;
	uint64_t next_number, next_run, next_delay_ns; /* of the call that began last */
	struct d9__call call;
	const char *asleep; /* where its open call was found asleep, and when */
	uint64_t asleep_ns;
	uint64_t asleep_for_ns, asleep_until_ns; /* in calls that were told one by one; both 0: it was only found there */
	uint64_t waits_ns; /* of the piece that is open: struct d9__call */

	int64_t fd;            /* below 0: none, or not told */
	uint64_t made;	       /* in its calls: tasks on other descriptors than its own */

	/* Calls in the current window of a worker (see rounds.h). */
	uint64_t window, window_calls, window_ns;
	unsigned window_worker;
	bool renewed; /* others of its descriptor among them, that ended */
};

/* Ended tasks stay known for a while: late wakes and resumptions still name them. */
#define D9__TASKS_GRAVES 4096

struct d9__tasks {
	struct d9__table table;
	struct d9__traced_task *others; /* stands for all beyond the budget; NULL: there are none */
	struct d9__traced_task *graves[D9__TASKS_GRAVES]; /* ring; the oldest is freed when it is full */
	unsigned next_grave;

	uint64_t epoch; /* calls of callbacks so far */
	uint64_t spawned, uninstrumented, ended;
	uint64_t at_start;         /* alive before the trace: ended or ran without a spawn */
	uint64_t ended_unspawned;
	uint64_t told_ns;          /* when the newest segment told what lived */
	int64_t change, peak_change; /* alive tasks, counted from the start of the trace */
	struct d9__growth_curve curve;      /* of |change| */
};

void d9__tasks_release(struct d9__tasks *tasks);

/* The task |id|, made at its first sight; NULL: out of memory. */
struct d9__traced_task *d9__tasks_at(struct d9__tasks *tasks, uint64_t id);

/*
 * |task| lived at |ns|, when a segment began, which says so for those who have not the segments before it.
 * |task|'s callback must be set.
 */
void d9__task_found(struct d9__tasks *tasks, struct d9__traced_task *task, uint64_t ns, bool instrumented);

/* 0 or -ENOMEM.  |task|'s callback must be set. */
int d9__task_spawn(struct d9__tasks *tasks, struct d9__traced_task *task, uint64_t ns,
		   bool instrumented);

/* |task| ended, or the trace did, at |ns|; the trace began at |first_ns|. */
void d9__task_lived(const struct d9__traced_task *task, uint64_t first_ns, uint64_t ns);

/* |task| runs: if it has no spawn it was there before the trace. */
void d9__task_seen(struct d9__tasks *tasks, struct d9__traced_task *task);

/* |task| ended. */
void d9__task_end(struct d9__tasks *tasks, struct d9__traced_task *task, uint64_t ns);

/* How many tasks of |callback| lived and had ended before a shutdown ended all. */
int64_t d9__tasks_left(const struct d9__tasks *tasks, const struct d9__callback *callback,
		       uint64_t *ended);

/*
 * Keep |task| for a while, if it has ended, no worker's piece is of it, and it is not kept yet: to be called
 * whenever one of these becomes true.  Returns the one that has been kept longest once there are many, if
 * nothing refers to it again, for d9__task_forget(); else NULL.
 */
struct d9__traced_task *d9__task_bury(struct d9__tasks *tasks, struct d9__traced_task *task);
void d9__task_forget(struct d9__tasks *tasks, struct d9__traced_task *task);

/*
 * Calls |done| for each task that is known, in the order of ids, until it does not return 0.  -ENOMEM, or what
 * |done| returned last.
 */
int d9__tasks_each(const struct d9__tasks *tasks,
		   int (*done)(void *context, struct d9__traced_task *task), void *context);
