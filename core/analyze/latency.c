/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A poll is measured from the newest wake of its task at or before its start, or from the end of
 * the task's previous poll if the wake fell into that (events.md 9.3).  A wake that a poll has
 * used is not used again.  Unlike the original there is no upper limit of a second: a wait that
 * long is what people look for.
 */
#include "config.h"

#include <errno.h>

#include "analyze/latency.h"
#include "analyze/lost.h"
#include "analyze/stale.h"
#include "analyze/stalls.h"
#include "analyze/worst.h"
#include "base/u64.h"
#include "base/zero.h"

/* Looking into waits costs a walk over what ran: at most once in this time on each worker. */
#define EXPLAIN_EVERY_NS D9__MS_NS

/* A wait counts as a victim of a long call from here on. */
#define VICTIM_NS (100 * D9__US_NS)

/* And only of a call that took one in so many parts of it. */
#define VICTIM_PART 4

/* So many calls make a backlog. */
#define BACKLOG_CALLS 8

static const char *const reason_names[D9__WAKE_REASONS] = {
	[D9__WAKE_UNKNOWN] = "unknown",
	[D9__WAKE_FD] = "fd",
	[D9__WAKE_TIMER] = "timer",
	[D9__WAKE_SIGNAL] = "signal",
	[D9__WAKE_ACTIVE] = "active",
	[D9__WAKE_CROSS_THREAD] = "cross_thread",
	[D9__WAKE_DEFERRED] = "deferred",
	[D9__WAKE_INTERNAL] = "internal",
	[D9__WAKE_RESUMPTION] = "resumption",
};

const char *d9__wake_reason_name(unsigned reason)
{
	return reason_names[reason < D9__WAKE_REASONS ? reason : D9__WAKE_UNKNOWN];
}

void d9__latency_release(struct d9__latency *latency)
{
	d9__histogram_release(&latency->delays);
	d9__histogram_release(&latency->lateness);
}

/* A timer's next deadline is known: did it pass while its own call ran, or waited to run? */
static void note_due(struct d9__traced_task *task, uint64_t ns)
{
	uint64_t apart_ns = ns - task->due_ns, period_ns;
	/* A period ahead of its last deadline; where that had passed long before, of its call's start. */
	uint64_t ahead_ns = task->polled && ns > task->last_start_ns ? ns - task->last_start_ns : 0;

	if (task->due_ns && ns > task->due_ns && (!task->period_ns || apart_ns < task->period_ns))
		task->period_ns = apart_ns;
	if (ahead_ns > task->ahead_ns)
		task->ahead_ns = ahead_ns;
	task->due_ns = ns;
	/* Of both the less; a start may have been late, so that of those ahead the greatest counts. */
	period_ns = task->ahead_ns && task->ahead_ns < task->period_ns ? task->ahead_ns
								       : task->period_ns;
	if (!task->callback || !period_ns)
		return;
	if (task->running || (task->woken && task->reason == D9__WAKE_TIMER)) {
		task->callback->overruns++;
		task->callback->period_ns = period_ns;
	}
}

void d9__latency_wake(struct d9__latency *latency, struct d9__traced_task *task, uint64_t ns,
		      uint64_t waker, unsigned reason)
{
	bool told = reason < D9__WAKE_REASONS;

	latency->wakes++;
	latency->reasons |= told;
	latency->by_reason[told ? reason : D9__WAKE_UNKNOWN]++;
	if (waker == task->id && (!told || reason == D9__WAKE_RESUMPTION))
		task->resume_ns = ns;
	if (reason == D9__WAKE_RESUMPTION)
		return;
	if (reason == D9__WAKE_TIMER)
		note_due(task, ns);
	/* A timer's next deadline can pass before its overdue call: both calls need their own. */
	if (reason == D9__WAKE_TIMER && task->woken && task->reason == D9__WAKE_TIMER) {
		task->woken_before = true;
		task->wake_before_ns = task->wake_ns;
	}
	task->woken = true;
	task->carried = false;
	task->wake_ns = ns;
	task->waker = waker;
	task->reason = told ? (uint8_t)reason : D9__WAKE_UNKNOWN;
}

void d9__latency_closed(struct d9__latency *latency, uint64_t ns)
{
	latency->closed += latency->woken_over_5ms && ns - latency->waited_to_ns < D9__SECOND_NS;
}

bool d9__latency_is_resumption(const struct d9__traced_task *task, uint64_t ns)
{
	return task->call.pieces && task->resume_ns == ns && ns != 0;
}

/* Take the wake of a call that begins at |ns|; false if there is none. */
static bool take_wake(struct d9__traced_task *task, uint64_t ns, uint64_t *wake_ns)
{
	bool used;

	if (!task->woken)
		return false;
	if (task->woken_before) {
		*wake_ns = task->wake_before_ns;
		task->woken_before = false;
		task->carried = true;
		return true;
	}
	*wake_ns = task->wake_ns;
	/* It came with the stamp of a poll that had begun: that poll's wake, read after it. */
	used = task->polled && task->wake_ns <= task->last_start_ns && !task->carried;
	task->woken = task->carried = false;
	return !used && *wake_ns <= ns;
}

/* True if events of |worker| are lost in this time: the call that used the wake may be one of them. */
static bool is_lost_between(const struct d9__worker *worker, uint64_t wake_ns, uint64_t start_ns)
{
	return worker->lost_to_ns > wake_ns && worker->lost_from_ns < start_ns;
}

/* How much of the wait long calls of |worker| had, without what the kernel took of them; each gets
 * its victim. */
static uint64_t blame(struct d9__worker *worker, const struct d9__delay *delay)
{
	struct d9__victim victim = { delay->ns, delay->callback, delay->task,
				     delay->reason == D9__WAKE_TIMER };
	uint64_t long_ns = 0;

	if (delay->ns < VICTIM_NS || worker->stalls_end_ns <= delay->from_ns)
		return 0;
	for (size_t i = 0; i < D9__WORKER_STALLS; i++) {
		struct d9__stall *stall = worker->stalls[i];
		uint64_t start, end, own_ns;

		if (!stall || stall->end_ns <= delay->from_ns || stall->task == delay->task)
			continue;
		start = stall->start_ns > delay->from_ns ? stall->start_ns : delay->from_ns;
		end = stall->end_ns < delay->start_ns ? stall->end_ns : delay->start_ns;
		if (start >= end || end - start < VICTIM_NS)
			continue;
		own_ns = d9__stall_left_ns(stall, end - start);
		/* A call that made up less of the wait is not its cause. */
		if (VICTIM_PART * (end - start) >= delay->ns) {
			d9__stall_add_victim(stall, &victim);
			stall->behind_ns += own_ns >= D9__WAIT_EXPLAIN_NS ? own_ns : 0;
		}
		long_ns += own_ns;
	}
	return long_ns;
}

static void keep(struct d9__delay *items, size_t *n, size_t max, const struct d9__delay *delay,
		 uint64_t rank_ns)
{
	bool evicted;
	struct d9__delay *place =
		d9__worst_place(items, n, max, sizeof(*items), rank_ns, NULL, &evicted);

	if (!place)
		return;
	*place = *delay;
	place->rank_ns = rank_ns;
}

/* Would |ns| be among the items, largest first? */
static bool is_among(const struct d9__delay *items, size_t n, size_t max, uint64_t ns)
{
	return n < max || ns > items[max - 1].rank_ns;
}

/* Whether the kernel, which ran something else in the middle of calls, took most of the wait. */
static bool is_kernels(const struct d9__delay *delay)
{
	return 2 * delay->own_ns <= delay->ns;
}

/* Whether |ns| of callbacks account for the wait: half of it, or long enough by themselves. */
static bool is_enough(const struct d9__delay *delay, uint64_t ns)
{
	return ns >= D9__WAIT_EXPLAIN_NS ||
	       (!is_kernels(delay) && 2 * ns >= delay->between.covered_ns);
}

/* Whether it was for their number that the calls took long: long ones are told for themselves. */
static bool are_short(const struct d9__between *between)
{
	return between->busy_ns <= D9__SHORT_CALL_NS * between->calls && 2 * between->long_ns <= between->busy_ns;
}

bool d9__delay_is_unfair(const struct d9__delay *delay)
{
	const struct d9__between *between = &delay->between;

	return between->one && !delay->looked && between->one_task != delay->task &&
	       between->one_calls >= BACKLOG_CALLS && are_short(between) &&
	       4 * between->one_ns >= 3 * between->busy_ns && is_enough(delay, between->one_ns);
}

/*
 * The part of the delay that is not remembered is taken to have been like the rest, also by what
 * the kernel took of it.
 */
static uint64_t extend(const struct d9__delay *delay, uint64_t ns)
{
	uint64_t seen_ns = delay->between.covered_ns + delay->between.taken_ns;

	return seen_ns && seen_ns < delay->ns
		       ? (uint64_t)((double)ns * (double)delay->ns / (double)seen_ns)
		       : ns;
}

uint64_t d9__delay_busy_ns(const struct d9__delay *delay)
{
	return extend(delay, delay->between.busy_ns);
}

uint64_t d9__delay_one_ns(const struct d9__delay *delay)
{
	return extend(delay, delay->between.one_ns);
}

uint64_t d9__delay_natural_ns(const struct d9__delay *delay)
{
	return extend(delay, delay->between.natural_ns);
}

static uint64_t kernels_ns(const struct d9__between *between)
{
	return between->taken_ns + between->busy_ns - between->natural_ns;
}

static void look_between(const struct d9__worker *worker, struct d9__delay *delay)
{
	uint64_t ns;

	delay->between = d9__worker_between(worker, delay->from_ns, delay->start_ns);
	ns = kernels_ns(&delay->between);
	delay->own_ns -= ns < delay->own_ns ? ns : delay->own_ns;
}

/* A wait over 10 ms is never forgotten in favour of a shorter one. */
static void keep_latest(struct d9__delay *latest, const struct d9__delay *delay)
{
	uint64_t ns = d9__delay_busy_ns(delay);

	if (ns < 10 * D9__MS_NS && latest->rank_ns >= 10 * D9__MS_NS)
		return;
	*latest = *delay;
	latest->rank_ns = ns;
}

/* Several may have waited while one task had the loop: that time counts once. */
static void add_unfair(struct d9__worker *worker, const struct d9__delay *delay)
{
	uint64_t from_ns = d9__u64_max(delay->from_ns, worker->unfair.to_ns);

	if (from_ns >= delay->start_ns)
		return;
	worker->unfair.ns += (uint64_t)((double)d9__delay_one_ns(delay) *
					(double)(delay->start_ns - from_ns) / (double)delay->ns);
	worker->unfair.to_ns = delay->start_ns;
}

/* Which of the causes a wait had that was looked into. */
static void count_cause(struct d9__latency *latency, struct d9__worker *worker, uint64_t long_ns,
			const struct d9__delay *delay)
{
	const struct d9__between *between = &delay->between;

	if (!is_kernels(delay) && (2 * long_ns >= delay->own_ns || !are_short(between) ||
				   2 * between->longest_ns >= delay->own_ns)) {
		latency->behind_long++;
	} else if (d9__delay_is_unfair(delay)) {
		latency->behind_unfair++;
		add_unfair(worker, delay);
		keep(latency->unfair, &latency->n_unfair, D9__BACKLOGS_MAX, delay,
		     d9__delay_busy_ns(delay));
	} else if (between->calls >= BACKLOG_CALLS && 2 * between->longest_ns < between->busy_ns &&
		   is_enough(delay, between->busy_ns)) {
		latency->behind_backlog++;
		keep(latency->backlogs, &latency->n_backlogs, D9__BACKLOGS_MAX, delay,
		     d9__delay_busy_ns(delay));
		keep_latest(&latency->latest_backlog, delay);
	} else if (is_kernels(delay)) {
		latency->behind_kernel++;
	} else if (between->calls > 1 && 2 * between->busy_ns >= between->covered_ns) {
		latency->behind_several++;
	} else if (between->known) {
		latency->behind_nothing++;
	}
}

/* Tell the causes of a long wait. */
static void explain(struct d9__latency *latency, struct d9__worker *worker, uint64_t long_ns,
		    struct d9__delay *delay)
{
	uint64_t taken_ns = worker->explained_taken_ns;

	if (is_among(latency->worst, latency->n_worst, D9__DELAYS_MAX, delay->ns) ||
	    delay->start_ns - worker->explained_ns >= EXPLAIN_EVERY_NS) {
		look_between(worker, delay);
		worker->explained_ns = delay->start_ns;
		worker->explained_taken_ns = kernels_ns(&delay->between);
	} else {
		/* Its neighbour was looked into, and waited behind the same. */
		delay->own_ns -= taken_ns < delay->own_ns ? taken_ns : delay->own_ns;
	}
	if (delay->reason != D9__WAKE_TIMER && !delay->before_loop)
		count_cause(latency, worker, long_ns, delay);
}

static int count_delay(struct d9__latency *latency, const struct d9__delay *delay,
		       struct d9__callback *callback, bool own)
{
	latency->over_100us += delay->ns > 100 * D9__US_NS;
	latency->over_1ms += delay->ns > D9__MS_NS;
	latency->over_5ms += delay->ns > 5 * D9__MS_NS;
	latency->over_10ms += delay->ns > 10 * D9__MS_NS;
	latency->over_50ms += delay->ns > 50 * D9__MS_NS;
	if (delay->reason != D9__WAKE_TIMER && !delay->before_loop) {
		latency->woken++;
		if (delay->own_ns > 5 * D9__MS_NS) {
			if (latency->woken_over_5ms++ == 0)
				latency->waited_from_ns = delay->from_ns;
			latency->waited_to_ns = delay->start_ns;
		}
		latency->woken_over_10ms += delay->own_ns > 10 * D9__MS_NS;
		latency->woken_over_50ms += delay->own_ns > 50 * D9__MS_NS;
		keep(latency->worst_woken, &latency->n_worst_woken, D9__DELAYS_MAX, delay,
		     delay->own_ns);
	}
	keep(latency->worst, &latency->n_worst, D9__DELAYS_MAX, delay, delay->ns);
	if (d9__histogram_add(&callback->delays, delay->ns) ||
	    (own && d9__histogram_add(&callback->own_delays, delay->ns)))
		return -ENOMEM;
	return d9__histogram_add(&latency->delays, delay->ns);
}

static void look_at_late(struct d9__latency *latency, struct d9__worker *worker,
			 struct d9__delay *late)
{
	if (!is_among(latency->latest, latency->n_latest, D9__DELAYS_MAX, late->ns) &&
	    late->start_ns - worker->explained_late_ns < EXPLAIN_EVERY_NS)
		return;
	look_between(worker, late);
	worker->explained_late_ns = late->start_ns;
	keep(latency->busiest, &latency->n_busiest, D9__BACKLOGS_MAX, late,
	     d9__delay_busy_ns(late));
	keep(latency->held, &latency->n_held, D9__BACKLOGS_MAX, late, d9__delay_natural_ns(late));
}

static int count_lateness(struct d9__latency *latency, struct d9__worker *worker,
			  const struct d9__delay *delay, uint64_t wake_ns,
			  struct d9__callback *callback)
{
	struct d9__delay late = *delay;

	late.from_ns = wake_ns;
	late.ns = late.own_ns = delay->start_ns - wake_ns;
	/* Its loop's wait was over, and the thread had no CPU yet. */
	if (worker->slept.until_ns > wake_ns)
		late.own_ns -= worker->slept.taken_ns < late.ns ? worker->slept.taken_ns : late.ns;
	late.between = (struct d9__between){ .known = false };
	late.looked = worker->unpark_before_ns > wake_ns + late.ns / 2;
	latency->late_over_1ms += late.ns > D9__MS_NS;
	latency->late_over_10ms += late.ns > 10 * D9__MS_NS;
	latency->late_over_50ms += late.ns > 50 * D9__MS_NS;
	if (late.ns >= D9__WAIT_EXPLAIN_NS)
		look_at_late(latency, worker, &late);
	if (late.ns > D9__MS_NS)
		keep(latency->latest, &latency->n_latest, D9__DELAYS_MAX, &late, late.ns);
	if (d9__histogram_add(&callback->lateness, late.ns))
		return -ENOMEM;
	return d9__histogram_add(&latency->lateness, late.ns);
}

static void share(struct d9__delay *items, size_t n, uint64_t worker, uint64_t from_ns, uint64_t to_ns,
		  uint64_t off_ns)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t from = items[i].from_ns > from_ns ? items[i].from_ns : from_ns;
		uint64_t to = items[i].start_ns < to_ns ? items[i].start_ns : to_ns;

		if (items[i].worker == worker && from < to)
			items[i].shared_ns += (uint64_t)((double)off_ns * (double)(to - from) /
							 (double)(to_ns - from_ns));
	}
}

void d9__latency_period(struct d9__latency *latency, uint64_t worker, uint64_t from_ns, uint64_t to_ns,
			uint64_t off_ns)
{
	share(latency->backlogs, latency->n_backlogs, worker, from_ns, to_ns, off_ns);
	share(&latency->latest_backlog, 1, worker, from_ns, to_ns, off_ns);
	share(latency->unfair, latency->n_unfair, worker, from_ns, to_ns, off_ns);
	share(latency->latest, latency->n_latest, worker, from_ns, to_ns, off_ns);
	share(latency->held, latency->n_held, worker, from_ns, to_ns, off_ns);
}

/* Tasks that the loop found or woke itself are its own. */
static enum d9__replay_wake woken_by(const struct d9__worker *worker,
				     const struct d9__traced_task *task,
				     const struct d9__delay *delay)
{
	if (delay->reason == D9__WAKE_TIMER || task->waker_worker >= D9__WORKER_OTHERS)
		return D9__REPLAY_FROM_OUTSIDE;
	return task->waker_worker == worker->id ? D9__REPLAY_BY_LOOP : D9__REPLAY_BY_OTHER_LOOP;
}

int d9__latency_start(struct d9__latency *latency, struct d9__worker *worker,
		      struct d9__traced_task *task, uint64_t ns)
{
	struct d9__delay delay;
	uint64_t wake_ns;
	uint64_t long_ns;
	struct d9__replay_start start;

	latency->newest_ns = UINT64_MAX;
	if (!take_wake(task, ns, &wake_ns) || is_lost_between(worker, wake_ns, ns))
		return 0;
	if (task->stale)
		d9__stale_ran(task, wake_ns);
	d9__zero(&delay, sizeof(delay));
	delay.start_ns = ns;
	delay.task = task->id;
	delay.waker = task->waker;
	delay.worker = worker->id;
	delay.callback = task->callback;
	delay.reason = task->reason;
	delay.from_ns = wake_ns;
	if (task->running)
		delay.from_ns = ns; /* woken in a poll whose end comes with the same stamp */
	else if (task->polled && task->last_end_ns > wake_ns)
		delay.from_ns = task->last_end_ns;
	delay.ns = delay.own_ns = ns > delay.from_ns ? ns - delay.from_ns : 0;
	latency->newest_ns = delay.ns;
	delay.before_loop = delay.from_ns < worker->entered_ns;
	if (delay.reason == D9__WAKE_CROSS_THREAD && !delay.before_loop &&
	    d9__lost_wakes_look(worker, task, &delay))
		return -ENOMEM;
	long_ns = blame(worker, &delay);
	if (delay.ns >= D9__WAIT_EXPLAIN_NS)
		explain(latency, worker, long_ns, &delay);
	if (delay.reason == D9__WAKE_TIMER &&
	    count_lateness(latency, worker, &delay, wake_ns, task->callback))
		return -ENOMEM;
	start = (struct d9__replay_start) {
		.callback = task->callback,
		.wake_ns = wake_ns,
		.from_ns = delay.from_ns,
		.ns = ns,
		.wake = woken_by(worker, task, &delay),
		.timer = delay.reason == D9__WAKE_TIMER,
		.own = d9__callback_follows_itself(task->callback, worker->number, task->id),
	};
	if (d9__replay_start(worker, &start))
		return -ENOMEM;
	if (delay.ns == 0)
		return 0;
	return count_delay(latency, &delay, task->callback, start.own);
}
