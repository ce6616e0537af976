/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: what waits for a loop would have been without one of its callbacks.
 *
 * The calls of a loop are run again in the order in which they were recorded, without those of that
 * callback: what it computed and slept, and what the kernel took from it meanwhile, because a call
 * that is not there is not preempted.  From each of its calls on the loop is that much ahead of
 * what was recorded, until
 *
 * - it sleeps: it would have slept longer, for the same event.  A wait that began when what runs
 *   behind it was ready was none, however long it took; and a loop that counts a timeout from when
 *   its round began is late for its timer by as long as that round took, and would be by less;
 * - it comes to a call that was not ready so early.  A timer is ready at its deadline, and what
 *   another thread woke at that moment; what the loop itself found or woke was ready as much
 *   earlier as the loop is ahead.  For a timer it sleeps then, and runs it as late as it does
 * others on average: clocks have ticks, and timeouts are whole milliseconds.
 *
 * Of one loop this is exact, as far as the trace tells what was ready.  What other loops woke they
 * might have woken earlier, by so much as they would have been ahead themselves, which is not
 * replayed: two bounds are kept then, with their wakes as they were, and as if they had never held
 * this loop back.
 *
 * Of a callback that sleeps a second replay leaves out only what its calls slept: so much they need
 * not take, and the rest of them remains.
 *
 * A callback of which one call follows the other for the same task waits for itself.  Calls for
 * other tasks wait for each other, as those of any other callback do: of a server each connection
 * is a task, and a client that waits for its turn does not care whose callback it waits for.
 *
 * It is done while the trace is read: only calls between such a call and the loop's next sleep cost
 * anything.  Waits under 100 us stay as they were.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/histogram.h"

struct d9__analysis;
struct d9__callback;
struct d9__worker;

/* Callbacks of one worker that are tried. */
#define D9__REPLAY_CALLBACKS 16

/* Of all workers and callbacks, those calls whose lead is remembered. */
#define D9__REPLAY_POINTS 32

/* From |at_ns| of what was recorded on the loop is |ahead_ns| ahead of it, and was by |lost_ns|
 * more before it slept: up to then, since |slept_ns|, if that is not 0. */
struct d9__replay_point {
	uint64_t at_ns, ahead_ns, lost_ns, slept_ns;
};

/* The loop as it would run. */
struct d9__replay_run {
	uint64_t ahead_ns;
	uint64_t level_ns; /* before it was ahead the latest time, it was not up to here */
	uint64_t lost_ns; /* by sleeps so far */
	uint64_t idle_from_ns, idle_to_ns; /* it would sleep in between for a call that came next */
	bool in_calls; /* the newest point is the end of such a call */
	struct d9__replay_point points[D9__REPLAY_POINTS]; /* ring */
	uint64_t n_points;				   /* ever written */
	struct d9__histogram after; /* the waits that it changed, as they would be */
};

/* One callback that is left out. */
struct d9__replay_without {
	struct d9__callback *callback;
	bool asleep; /* what its calls slept alone */
	bool bounds; /* the second run differs from the first: without what other loops hold back */
	struct d9__replay_run runs[2];
	struct d9__histogram before; /* the waits that a run changed, as they were */
};

/* Of one worker.  All zero is nothing. */
struct d9__replay {
	struct d9__replay_without *items[D9__REPLAY_CALLBACKS]; /* owned */
	const struct d9__callback *callbacks[D9__REPLAY_CALLBACKS]; /* of them, side by side */
	size_t n;
	bool any_ahead; /* some run is */

	const struct d9__callback *latest; /* that was called */
	uint64_t latest_from_ns;	   /* and since when no other was */

	/* The loop waited since its latest call, and may have slept; |to_ns| 0: it did not. */
	struct {
		uint64_t from_ns, to_ns;
	} wait;

	/* Timers of which it slept until they were due, and how late it was for them without any
	 * call that is left out. */
	struct {
		uint64_t n, ns;
	} late;

	/* The latest call slept, for |ns|. */
	struct {
		struct d9__callback *callback;
		uint64_t end_ns, ns;
	} asleep;

	/* Which callback had most of the time since the loop slept, in many short calls. */
	struct d9__callback *candidate;
	uint64_t candidate_ns;
};

void d9__replay_release(struct d9__replay *replay);

/* A call of |callback| took |own_ns| on |worker| and ended at |end_ns|.  0 or -ENOMEM. */
int d9__replay_call(struct d9__worker *worker, struct d9__callback *callback, uint64_t end_ns,
		    uint64_t own_ns);

/* And slept for |ns|: of one call what is told last counts. */
void d9__replay_call_slept(struct d9__worker *worker, struct d9__callback *callback,
			   uint64_t end_ns, uint64_t ns);

/* The waker of a call. */
enum d9__replay_wake {
	D9__REPLAY_BY_LOOP,
	D9__REPLAY_BY_OTHER_LOOP,
	D9__REPLAY_FROM_OUTSIDE, /* at that time, whatever the loop does */
};

struct d9__replay_start {
	const struct d9__callback *callback;
	uint64_t wake_ns; /* its wake, or its deadline */
	uint64_t from_ns; /* and the end of the task's call before, if that came later */
	uint64_t ns;	  /* it begins */
	enum d9__replay_wake wake;
	bool timer;
	bool own; /* no call for another task came between the callback's call before and it */
};

/* |worker| begins a call.  0 or -ENOMEM. */
int d9__replay_start(struct d9__worker *worker, const struct d9__replay_start *start);

/* |worker| waited from |from_ns| to |ns|, for so long that it may have slept. */
void d9__replay_slept(struct d9__worker *worker, uint64_t from_ns, uint64_t ns);

/* |worker|'s thread was outside of its loop: what it did there is no call's. */
void d9__replay_outside(struct d9__worker *worker);

/* The waits, in ns, as they were and as they would have been: of all calls of the process but those
 * that waited for the callback's call for their own task. */
struct d9__gain_of {
	uint64_t before_ns;
	uint64_t after_ns,
		after_least_ns; /* between these; one exact figure if both are the same */
};

struct d9__gain {
	uint64_t waits, changed; /* how many, and how many of them would be others */
	struct d9__gain_of p99, p999, longest;
};

/* Without |callback|, or what it slept.  1, 0 if no wait would be another, or -ENOMEM. */
int d9__replay_gain(const struct d9__analysis *analysis, const struct d9__callback *callback,
		    bool asleep, struct d9__gain *gain);

/*
 * "callbacks would wait 3.00 ms, not 41.0 ms (p99)" into |buf|: of p99, p99.9 and the longest wait the first that
 * would be a tenth less and is a millisecond or more; returns |buf|, which is empty if none is.
 */
const char *d9__gain_text(const struct d9__gain *gain, char *buf, size_t size);
