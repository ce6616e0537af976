/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reasons why a loop keeps running: its rounds, looked at a tenth of a second at a time, so that a stretch
 * in which one callback is called over and over is not hidden by hours in which it was not.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/callbacks.h"
#include "base/time.h"

struct d9__traced_task;
struct d9__worker;
struct d9__piece;

#define D9__WINDOW_NS (100 * D9__MS_NS)

/* A wait shorter than this one was none: the loop only looked. */
#define D9__REAL_WAIT_NS (10 * D9__US_NS)

/* Calls of one kind in a window, of how many tasks, and the task and the callback with most. */
struct d9__share {
	uint64_t calls, tasks;
	struct {
		uint64_t id, calls, ns, waker;
		int64_t fd;
		struct d9__callback *callback;
		uint64_t waker_worker;
		uint8_t reason;
		bool renewed, listener;
	} top;
	/* Of all its tasks together, and the one of them with most; not of all kinds together. */
	struct {
		struct d9__callback *callback;
		uint64_t calls, task, task_calls, waker, waker_worker;
		int64_t fd;
	} most;
};

/* Of one worker; all zero before its first event. */
struct d9__rounds {
	uint64_t number; /* of the window, in the whole trace */
	uint64_t start_ns, over_ns; /* over_ns: 0 until it is over, and when it was judged */
	uint64_t calls, timer_calls, busy_ns; /* without the library's own */
	uint64_t all_busy_ns;
	uint64_t unparks, real_waits, parked_ns, slept_ns; /* slept: in real waits */
	uint64_t empty;					   /* wakes that no call came of */
	uint64_t ready_ns;	 /* without a CPU, in calls and in waits: the machine's */
	uint64_t waits_ready_ns; /* of it, in waits, as far as it was told: these may end later */
	/* Sums of calls, and of times from one call to the next, that no other thread can have had
	 * the CPU in. */
	uint64_t brief_calls_ns, brief_gaps_ns;
	struct d9__share by[D9__CAUSES], all; /* all: the library's own, too */
	/* The newest call: tasks that are made anew for each call of a descriptor count as one. */
	struct {
		const struct d9__callback *callback;
		uint64_t calls, ns, end_ns; /* end_ns: 0 if the loop slept since */
		int64_t fd;
	} latest;
};

/* The newest wake of a worker, until it sleeps again. */
struct d9__newest_wake {
	uint64_t ns, calls;		/* ns: 0 if there was none */
	bool slept;			/* the wait before was one */
	struct d9__callback_on *latest; /* its latest call; NULL: not told */
	bool others;			/* and there were others before it */
	bool before_empty;		/* no call came of the one before */

	/* Empty ones in a row, of which the next call will tell whether the loop was woken early
	 * for its timer: when the first was, how many, and how long they were. */
	uint64_t pending_ns, pending, pending_awake_ns;
};

/* Windows in which a worker woke again and again and found nothing to run. */
struct d9__empty_wakes {
	uint64_t windows, ns, first_ns;
	uint64_t unparks, empty, parked_ns;
	uint64_t all, awake_ns; /* empty wakes in whatever window, and how long they were */
};

/* Windows in which a worker that mostly slept was woken again and again for next to nothing. */
struct d9__little {
	uint64_t windows, ns, first_ns;
	uint64_t wakes, calls, busy_ns;
	struct d9__little_cause {
		uint64_t calls, tasks; /* tasks: most in a window */
		/* Of the callback with most calls in a window, and of its task with most. */
		uint64_t most_calls, task, waker, waker_worker;
		const struct d9__callback *callback;
		int64_t fd;
	} causes[D9__CAUSES];
};

/* |piece| of |worker| ended and began a call (is no resumption).  0 or -ENOMEM. */
int d9__rounds_call(struct d9__worker *worker, const struct d9__piece *piece);

/* The call of |task| that was noted last was ready without a CPU for |taken_ns|. */
void d9__rounds_taken(struct d9__worker *worker, struct d9__traced_task *task, uint64_t taken_ns);

/* |worker| had been parked for |parked_ns| when it went on at |ns|.  0 or -ENOMEM. */
int d9__rounds_unpark(struct d9__worker *worker, uint64_t ns, uint64_t parked_ns);

/*
 * |worker| was ready without a CPU for |ns| of what it seemed to sleep lately, by readings since
 * |from_ns|.
 */
void d9__rounds_ready(struct d9__worker *worker, uint64_t from_ns, uint64_t ns);

/* Nothing of |worker| follows.  0 or -ENOMEM. */
int d9__rounds_finish(struct d9__worker *worker, uint64_t ns);
