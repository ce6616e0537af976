/* SPDX-License-Identifier: Apache-2.0 */
/* From ready to running: wakes matched with polls, and timers with their deadlines. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/histogram.h"
#include "analyze/timeline.h"
#include "base/time.h"

/* Reasons on the wire; the same numbers as enum d9_wake_reason in <dial9/loop.h>. */
enum d9__wake_reason {
	D9__WAKE_UNKNOWN = 0,
	D9__WAKE_FD = 1,
	D9__WAKE_TIMER = 2,
	D9__WAKE_SIGNAL = 3,
	D9__WAKE_ACTIVE = 4,
	D9__WAKE_CROSS_THREAD = 5,
	D9__WAKE_DEFERRED = 6,
	D9__WAKE_INTERNAL = 7,
	D9__WAKE_RESUMPTION = 8,
	D9__WAKE_REASONS
};

/* "fd", "timer", ...; never NULL. */
const char *d9__wake_reason_name(unsigned reason);

/* One wait of a task for its turn. */
struct d9__delay {
	uint64_t rank_ns; /* what its list is ordered by */
	uint64_t ns;
	uint64_t own_ns; /* without what the kernel took from the calls that ran meanwhile, or heaped up */
	uint64_t from_ns, start_ns;
	uint64_t task, waker, worker;
	const struct d9__callback *callback;
	uint8_t reason;
	uint64_t shared_ns; /* of it, as far as known, the worker was off the CPU in calls too short to tell which */
	bool looked; /* of a timer: its loop waited for events in the second half: nothing kept it busy */
	bool before_loop; /* ready before its worker entered a loop: no call was late */
	struct d9__between between; /* what ran meanwhile on the worker that ran it in the end */
};

#define D9__DELAYS_MAX   20
#define D9__BACKLOGS_MAX 5

struct d9__latency {
	uint64_t wakes, by_reason[D9__WAKE_REASONS];
	uint64_t self_wakes_for_resumption;
	bool reasons; /* the trace's wakes tell their reason */
	bool kernel_known; /* the kernel is known to have run something else in the middle of calls */

	uint64_t newest_ns; /* of the call that began last: from ready to running; UINT64_MAX: no wake was seen */

	struct d9__histogram delays;
	uint64_t over_100us, over_1ms, over_5ms, over_10ms, over_50ms;
	struct d9__delay worst[D9__DELAYS_MAX];
	size_t n_worst;

	/*
	 * Delays by own_ns and without timers, whose lateness is told below because a clock tick or two is
	 * normal there.
	 */
	uint64_t woken, woken_over_5ms, woken_over_10ms, woken_over_50ms;
	/* When the first of those over 5 ms began, and the last ended; and tasks of descriptors
	 * that ended soon after one. */
	uint64_t waited_from_ns, waited_to_ns, closed;
	struct d9__delay worst_woken[D9__DELAYS_MAX];
	size_t n_worst_woken;

	/* Waits of D9__WAIT_EXPLAIN_NS and more, by what was found to be the cause. */
	uint64_t behind_long, behind_unfair, behind_backlog, behind_several, behind_nothing;
	uint64_t behind_kernel; /* calls from which the kernel took the CPU for most of the wait */
	struct d9__delay unfair[D9__BACKLOGS_MAX]; /* the longest behind many calls of one task */
	size_t n_unfair;
	struct d9__delay backlogs[D9__BACKLOGS_MAX]; /* the longest behind many short calls */
	size_t n_backlogs;
	struct d9__delay latest_backlog; /* the latest of over 10 ms, or the latest */

	struct d9__histogram lateness; /* of timers, 0 included */
	uint64_t late_over_1ms, late_over_10ms, late_over_50ms;
	struct d9__delay latest[D9__DELAYS_MAX];
	size_t n_latest;
	struct d9__delay busiest[D9__BACKLOGS_MAX]; /* late while callbacks ran, by their time */
	size_t n_busiest;
	struct d9__delay held[D9__BACKLOGS_MAX]; /* the same, by what the kernel did not heap up */
	size_t n_held;
};

/* How long callbacks ran during |delay|, and not something else in the middle of them. */
uint64_t d9__delay_busy_ns(const struct d9__delay *delay);

/* How long calls of the task that had more than half of them ran. */
uint64_t d9__delay_one_ns(const struct d9__delay *delay);

/* Of that, what the kernel did not heap up before (natural.h). */
uint64_t d9__delay_natural_ns(const struct d9__delay *delay);

/* Whether one other task was called many times meanwhile, and hardly anything else. */
bool d9__delay_is_unfair(const struct d9__delay *delay);

/* Waits from here on are looked into: was it one long call, many short ones, or nothing of ours? */
#define D9__WAIT_EXPLAIN_NS (5 * D9__MS_NS)

void d9__latency_release(struct d9__latency *latency);

/* |task| became ready at |ns|; |reason| is above D9__WAKE_RESUMPTION if the wake tells none. */
void d9__latency_wake(struct d9__latency *latency, struct d9__traced_task *task, uint64_t ns,
		      uint64_t waker, unsigned reason);

/* A task that a descriptor had made ready ended at |ns|. */
void d9__latency_closed(struct d9__latency *latency, uint64_t ns);

/* Whether a PollStart of |task| at |ns| goes on with a call that a nested loop had cut. */
bool d9__latency_is_resumption(const struct d9__traced_task *task, uint64_t ns);

/*
 * |worker| was awake from |from_ns| to |to_ns| and off the CPU for |off_ns| of it, besides what its calls tell
 * themselves: waits in that time were that much longer, whichever call it was.
 */
void d9__latency_period(struct d9__latency *latency, uint64_t worker, uint64_t from_ns, uint64_t to_ns,
			uint64_t off_ns);

/*
 * A call of |task| begins: match it with the newest wake that no call has used.  Call before the
 * task's last_start_ns is set.  0 or -ENOMEM.
 */
int d9__latency_start(struct d9__latency *latency, struct d9__worker *worker,
		      struct d9__traced_task *task, uint64_t ns);
