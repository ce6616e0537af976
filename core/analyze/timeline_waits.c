/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of a timeline's loops, and where the time awake between two of them went. */
#include "config.h"

#include <errno.h>

#include "analyze/stalls.h"
#include "analyze/timeline_parts.h"
#include "base/u64.h"

/* A wait of this length was a sleep: to look at descriptors takes less. */
#define SLEPT_NS (20 * D9__US_NS)

/* CPU times are written in steps of so much. */
#define CPU_STEP_NS 4096

/*
 * Of the |wall_ns| since the worker woke it did not sleep for |own_ns|, as readings tell: how long
 * it was asleep outside of its loop.  Where the recorder told when it had left it, that is the rest
 * of these times.  Else a thread that slept before it entered its loop again spent most of it
 * neither in callbacks, nor in prepare() and check(), nor on the CPU or ready for one; nor does one
 * that waits by a poll(2) of its own.
 */
static uint64_t slept_ns(const struct d9__worker *worker, uint64_t wall_ns, uint64_t own_ns)
{
	uint64_t inside_ns =
		d9__worker_busy_ns(worker) - worker->unpark.poll_ns + worker->unpark.sources_ns;
	uint64_t outside_ns = worker->loop_time.outside_told_ns;

	if (!worker->cpu_seen)
		return 0;
	if (outside_ns)
		return d9__u64_min(outside_ns, d9__u64_minus(wall_ns, own_ns));
	if (wall_ns < D9__MS_NS || 2 * inside_ns >= wall_ns || 2 * own_ns >= wall_ns)
		return 0;
	return wall_ns - (inside_ns > own_ns ? inside_ns : own_ns);
}

/* A worker id that goes on under another thread: what lies between belongs to neither. */
static bool is_handover(uint32_t a, uint32_t b)
{
	return a && b && a != b;
}

/*
 * Readings grow, but for what those at unparks are rounded down; what lies between those of two
 * threads belongs to neither.
 */
static void note_cpu(struct d9__worker *worker, uint64_t cpu_ns, uint32_t tid)
{
	bool same = worker->cpu.valid && !is_handover(worker->cpu.tid, tid);

	worker->cpu_seen |= cpu_ns > 0;
	if (same && cpu_ns <= worker->cpu.ns)
		return;
	if (same)
		worker->cpu_ns += cpu_ns - worker->cpu.ns;
	worker->cpu.valid = true;
	worker->cpu.ns = cpu_ns;
	worker->cpu.tid = tid;
}

/* CPU time since the worker woke; from the highest reading, as those at unparks are rounded down.
 */
static uint64_t grown_ns(const struct d9__worker *worker, uint64_t cpu_ns)
{
	if (!worker->cpu_seen)
		return UINT64_MAX;
	return cpu_ns > worker->unpark.cpu_high_ns ? cpu_ns - worker->unpark.cpu_high_ns : 0;
}

/* Nothing is known of how long the worker was awake. */
static void forget_period(struct d9__worker *worker)
{
	struct d9__account none = { .on_cpu_ns = 0 };

	worker->unpark.ready_ns = 0;
	d9__time_period_end(&worker->period, &none, 0, UINT64_MAX);
}

/* A wait that was too short for a sleep, up to |ns|: the loop looked at its descriptors, on the
 * CPU. */
static void account_look(struct d9__worker *worker, uint64_t ns)
{
	uint64_t look_ns = ns - worker->park.ns;

	worker->looks_ns += look_ns;
	worker->looked_ns += look_ns;
	d9__loop_time_awake(&worker->loop_time,
			    &(struct d9__loop_awake) {
				    .from_ns = worker->park.ns, .to_ns = ns, .own_ns = look_ns });
}

/* Where the time of a wait that is over went: the thread was ready without a CPU for |ready_ns|. */
static void account_park(struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns, uint64_t ready_ns)
{
	uint64_t left_ns = ns - worker->park.ns - ready_ns, used_ns = 0;

	if (worker->cpu.valid && worker->cpu.tid == worker->park.tid && cpu_ns > worker->cpu.ns)
		used_ns = cpu_ns - worker->cpu.ns;
	if (used_ns > left_ns)
		used_ns = left_ns;
	worker->time.ready_ns += ready_ns;
	worker->time.on_cpu_ns += used_ns;
	worker->waiting_ns += left_ns - used_ns;
	if (ns - worker->park.ns < SLEPT_NS)
		account_look(worker, ns);
	else
		d9__loop_time_waited(&worker->loop_time, worker->park.ns, ns, used_ns, ready_ns);
}

/*
 * The process stood still for |ns| in callbacks of |worker|: in the longest of those that it
 * remembers.
 */
static void take_stopped(struct d9__worker *worker, uint64_t ns)
{
	size_t longest = D9__WORKER_RECENT;
	struct d9__callback_on *on;
	uint64_t longest_ns = 0;

	for (size_t i = 0; ns && i < D9__WORKER_RECENT && i < worker->n_recent; i++) {
		uint64_t call_ns = worker->recent[i].end_ns - worker->recent[i].start_ns;

		if (call_ns <= longest_ns || call_ns < ns)
			continue;
		longest_ns = call_ns;
		longest = i;
	}
	if (longest == D9__WORKER_RECENT)
		return;
	worker->recent[longest].taken_ns =
		d9__u64_min(longest_ns, worker->recent[longest].taken_ns + ns);
	on = d9__callback_on(worker->recent[longest].callback, worker->number);
	if (!on)
		return;
	on->ns -= d9__u64_min(on->ns, ns);
	on->time.blocked_ns -= d9__u64_min(on->time.blocked_ns, ns);
}

/* In waits that are over the thread was ready for |ns| that seemed to be asleep. */
static void ready_in_waits(struct d9__worker *worker, uint64_t ns)
{
	ns = d9__u64_min(worker->waiting_ns, d9__loop_time_ready(&worker->loop_time, ns));
	worker->waiting_ns -= ns;
	worker->time.ready_ns += ns;
	d9__rounds_ready(worker, worker->ready_from_ns, ns);
}

uint64_t d9__timeline_ready_awake(struct d9__worker *worker, uint64_t most_ns)
{
	uint64_t ns = d9__u64_min(worker->unpark.ready_ns, most_ns);

	if (worker->unpark.ready_ns > ns)
		ready_in_waits(worker, worker->unpark.ready_ns - ns);
	worker->unpark.ready_ns = 0;
	return ns;
}

void d9__timeline_ready(struct d9__worker *worker, uint64_t from_ns, uint64_t to_ns,
			uint64_t wait_ns)
{
	worker->ready_from_ns = from_ns;
	worker->wait_sum_ns += wait_ns;
	worker->run_queue_ns += wait_ns;
	/* More than there was: it waited behind the stamp, before the reading was made. */
	if (worker->unpark.valid && wait_ns > to_ns - from_ns)
		worker->ready_behind_ns += wait_ns;
	else if (worker->unpark.valid)
		worker->unpark.ready_ns += wait_ns;
	else
		ready_in_waits(worker, wait_ns);
}

void d9__timeline_source(struct d9__worker *worker, uint64_t ns)
{
	worker->unpark.sources_ns += ns;
}

void d9__timeline_stopped(struct d9__timeline *timeline, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		take_stopped(worker, d9__loop_time_stopped(&worker->loop_time, from_ns, to_ns));
		if (worker->slept.until_ns > from_ns && worker->slept.from_ns < to_ns)
			worker->slept.taken_ns +=
				d9__u64_min(to_ns, worker->slept.until_ns) -
				(from_ns > worker->slept.from_ns ? from_ns : worker->slept.from_ns);
	}
}

void d9__timeline_account_awake(struct d9__worker *worker, uint64_t ns, struct d9__loop_awake awake)
{
	awake.from_ns = worker->unpark.ns;
	awake.to_ns = ns;
	awake.calls_ns = worker->poll_ns - worker->unpark.pieces_ns;
	awake.gap_from_ns = worker->gap.from_ns;
	awake.gap_ns = worker->cpu_seen ? worker->gap.ns : 0;
	take_stopped(worker, d9__loop_time_awake(&worker->loop_time, &awake));
}

/*
 * The thread used |grown_ns| more of CPU since its last reading, and was awake for |wall_ns| of
 * that: the rest it used in waits.  Readings are rounded, one up and one down.  Short looks at
 * descriptors are counted already.
 */
static void account_burnt(struct d9__worker *worker, uint64_t grown_ns, uint64_t wall_ns)
{
	uint64_t more_ns = grown_ns > wall_ns + 2 * CPU_STEP_NS ? grown_ns - wall_ns : 0;
	uint64_t looks_ns = d9__u64_min(more_ns, worker->looks_ns);

	worker->looks_ns -= looks_ns;
	if (more_ns > looks_ns)
		d9__loop_time_burnt(&worker->loop_time, more_ns - looks_ns);
}

static int end_active(struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns)
{
	uint64_t used_ns = cpu_ns > worker->unpark.cpu_ns ? cpu_ns - worker->unpark.cpu_ns : 0;
	uint64_t wall_ns = ns - worker->unpark.ns,
		 told_ns = used_ns + d9__time_period_off_cpu(&worker->period),
		 ready_ns = d9__timeline_ready_awake(
			 worker, worker->cpu_seen ? d9__u64_minus(wall_ns, told_ns) : 0),
		 asleep_ns = slept_ns(worker, wall_ns, told_ns + ready_ns),
		 before_ns = worker->time.on_cpu_ns + worker->time.blocked_ns;
	uint64_t grown = grown_ns(worker, cpu_ns);
	const struct d9__loop_time *time = &worker->loop_time;
	struct d9__loop_awake awake = { .read_ns = worker->period.read_ns,
					.slept_ns = asleep_ns,
					.ready_ns = ready_ns };
	double ratio = 1;
	int err = 0;

	if (time->outside_told_n && worker->cpu_seen)
		err = d9__returns_measure(&worker->returns, time->outside_told_n,
					  time->outside_told_ns, asleep_ns,
					  time->outside_longest_ns, time->outside_longest_at_ns);
	/* It slept for the rest, in a wait that the program itself has around its loop. */
	wall_ns -= asleep_ns;
	worker->parked_ns += asleep_ns;
	worker->waiting_ns += asleep_ns;
	d9__time_period_ready(&worker->period, ready_ns);
	d9__time_period_end(&worker->period, &worker->time, wall_ns, grown);
	awake.own_ns = worker->time.on_cpu_ns + worker->time.blocked_ns - before_ns;
	if (!worker->cpu_seen)
		awake.own_ns = wall_ns;
	d9__timeline_account_awake(worker, ns, awake);
	if (worker->cpu_seen)
		account_burnt(worker, grown, wall_ns);
	if (wall_ns && used_ns < wall_ns)
		ratio = (double)used_ns / (double)wall_ns;
	worker->active_periods++;
	worker->active_ns += wall_ns;
	worker->ratio_sum += ratio;
	worker->long_periods += wall_ns > D9__MS_NS;
	worker->starved_periods += wall_ns > D9__MS_NS && ratio < 0.5;
	if (!worker->cpu_seen)
		return err;
	for (size_t i = 0; i < D9__WORKER_STALLS; i++) {
		struct d9__stall *stall = worker->stalls[i];

		if (stall && !stall->cpu_known && stall->start_ns >= worker->unpark.ns)
			d9__stall_set_cpu(stall, wall_ns, used_ns);
	}
	return err;
}

void d9__timeline_note_round(struct d9__worker *worker, uint64_t ns)
{
	uint64_t wall_ns = ns - worker->unpark.ns, calls = worker->polls - worker->unpark.polls,
		 own_ns;
	struct d9__between between;

	if (wall_ns < D9__LONG_ROUND_NS || wall_ns <= worker->round.ns ||
	    calls < D9__WORKER_RECENT / 4 ||
	    2 * (d9__worker_busy_ns(worker) - worker->unpark.poll_ns) < wall_ns)
		return;
	between = d9__worker_between(worker, worker->unpark.ns, ns);
	/* Time that the kernel took is no part of it. */
	own_ns = d9__u64_minus(wall_ns, worker->unpark.taken_ns + worker->unpark.ready_ns);
	/* Long calls are told for themselves. */
	if (8 * between.longest_ns > own_ns || own_ns < D9__LONG_ROUND_OWN_NS ||
	    own_ns <= worker->round.ns)
		return;
	worker->round.ns = own_ns;
	worker->round.wall_ns = wall_ns;
	worker->round.from_ns = worker->unpark.ns;
	worker->round.calls = calls;
	worker->round.between = between;
}

uint64_t d9__timeline_off_cpu(const struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns,
			      uint32_t tid, uint64_t *from_ns)
{
	uint64_t on_ns = cpu_ns - worker->unpark.cpu_ns + worker->unpark.told_ns;

	*from_ns = worker->unpark.ns;
	if (!worker->unpark.valid || !worker->cpu_seen || cpu_ns < worker->unpark.cpu_ns ||
	    is_handover(worker->unpark.tid, tid) || ns - worker->unpark.ns < D9__MS_NS)
		return 0;
	return on_ns < ns - worker->unpark.ns ? ns - worker->unpark.ns - on_ns : 0;
}

int d9__timeline_park(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		      uint64_t cpu_ns, uint32_t tid)
{
	int err = d9__timeline_close(timeline, worker, ns);

	note_cpu(worker, cpu_ns, tid);
	if (worker->unpark.valid && is_handover(worker->unpark.tid, tid)) {
		worker->handovers++;
		forget_period(worker);
	} else if (worker->unpark.valid) {
		d9__timeline_note_round(worker, ns);
		d9__timeline_end_gap(worker, ns);
		err = end_active(worker, ns, cpu_ns) < 0 ? -ENOMEM : err;
	} else {
		forget_period(worker);
	}
	worker->unpark.valid = false;
	worker->park.valid = true;
	worker->wait_samples = 0;
	worker->park.ns = ns;
	worker->park.tid = tid;
	if (tid)
		worker->tid = tid;
	return err;
}

static void add_wait(struct d9__worker *worker, uint64_t ns, uint64_t wait_ns)
{
	worker->wait_measured++;
	if (wait_ns == 0)
		return;
	if (wait_ns > worker->waits.max)
		worker->wait_max_at_ns = ns;
	worker->wait_sum_ns += wait_ns;
	worker->waits_over_100ns += wait_ns > 100;
	worker->waits_over_1ms += wait_ns > D9__MS_NS;
}

/*
 * Code that runs in a wait is no callback: a signal handler, or a program that drives GLib itself,
 * between query and check.  Looking at descriptors takes less than this.
 */
#define BUSY_WAIT_NS (2 * D9__MS_NS)

static void note_busy_wait(struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns)
{
	uint64_t wall_ns = ns - worker->park.ns, used_ns;

	if (!worker->cpu.valid || worker->cpu.tid != worker->park.tid || cpu_ns <= worker->cpu.ns)
		return;
	used_ns = cpu_ns - worker->cpu.ns;
	if (used_ns > wall_ns)
		used_ns = wall_ns;
	if (used_ns < BUSY_WAIT_NS)
		return;
	worker->busy_waits.n++;
	worker->busy_waits.ns += used_ns;
	if (used_ns > worker->busy_waits.max_ns) {
		worker->busy_waits.max_ns = used_ns;
		worker->busy_waits.max_at_ns = worker->park.ns;
	}
}

/*
 * For how long the thread was ready without a CPU in the wait that ends at |ns|: |wait_ns|
 * (UINT64_MAX: not measured), and what the reading at its begin tells; the rest of that was before.
 */
static uint64_t ready_in_wait(struct d9__worker *worker, uint64_t ns, uint64_t wait_ns)
{
	uint64_t whole_ns = ns - worker->park.ns,
		 measured_ns = wait_ns == UINT64_MAX ? 0 : d9__u64_min(wait_ns, whole_ns),
		 behind_ns = d9__u64_min(worker->ready_behind_ns, whole_ns - measured_ns),
		 before_ns = worker->ready_behind_ns - behind_ns;

	worker->ready_behind_ns = 0;
	d9__rounds_ready(worker, ns, behind_ns);
	if (before_ns)
		ready_in_waits(worker, before_ns);
	return measured_ns + behind_ns;
}

int d9__timeline_unpark(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			uint64_t cpu_ns, uint64_t wait_ns, uint32_t tid)
{
	uint64_t ready_ns = 0;
	int err = 0;

	(void)timeline;
	if (worker->park.valid && !is_handover(worker->park.tid, tid)) {
		note_busy_wait(worker, ns, cpu_ns);
		ready_ns = ready_in_wait(worker, ns, wait_ns);
		account_park(worker, ns, cpu_ns, ready_ns);
	}
	note_cpu(worker, cpu_ns, tid);
	if (!worker->park.valid && !worker->unpark.valid && !worker->polls)
		worker->entered_ns = ns;
	if (worker->park.valid && is_handover(worker->park.tid, tid)) {
		worker->handovers++;
	} else if (worker->park.valid) {
		worker->parks++;
		worker->parked_ns += ns - worker->park.ns;
		err = d9__rounds_unpark(worker, ns, ns - worker->park.ns);
		/* A thread that is put aside while it only looks does not sleep. */
		if (ns - worker->park.ns >= SLEPT_NS + ready_ns) {
			d9__replay_slept(worker, worker->park.ns, ns);
			d9__returns_slept(&worker->returns);
		}
		d9__kernel_backlog_round(&worker->natural, worker->park.ns, ns, ready_ns);
		worker->slept.from_ns = worker->park.ns;
		worker->slept.until_ns = ns;
		worker->slept.taken_ns = ready_ns;
		if (wait_ns != UINT64_MAX) {
			add_wait(worker, ns, wait_ns);
			err = !err && wait_ns ? d9__histogram_add(&worker->waits, wait_ns) : err;
		}
	}
	worker->park.valid = false;
	worker->unpark.valid = true;
	worker->gap.ns = 0;
	worker->unpark_before_ns = worker->unpark.ns;
	worker->unpark.ns = ns;
	worker->unpark.cpu_ns = cpu_ns;
	worker->unpark.cpu_high_ns = worker->cpu.ns;
	worker->unpark.poll_ns = d9__worker_busy_ns(worker);
	worker->unpark.pieces_ns = worker->poll_ns;
	worker->unpark.polls = worker->polls;
	worker->unpark.told_ns = worker->unpark.taken_ns = 0;
	worker->unpark.ready_ns = worker->unpark.sources_ns = 0;
	worker->unpark.tid = tid;
	if (tid)
		worker->tid = tid;
	return err;
}

void d9__worker_goes_on(struct d9__worker *worker, uint64_t ns, uint32_t tid, bool waits)
{
	worker->park.valid = waits;
	worker->unpark.valid = !waits;
	worker->park.ns = worker->unpark.ns = ns;
	worker->park.tid = worker->unpark.tid = worker->tid = tid;
	worker->unpark.cpu_ns = worker->unpark.cpu_high_ns = UINT64_MAX;
	worker->cpu_seen = true;
}
