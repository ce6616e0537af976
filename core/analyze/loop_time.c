/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/loop_time.h"
#include "base/time.h"
#include "base/u64.h"

static uint64_t take(uint64_t *left, uint64_t ns)
{
	uint64_t taken = d9__u64_min(*left, ns);

	*left -= taken;
	return taken;
}

/* ---- windows ---- */

/* The open window, and |more_ns| behind it that are like it, are over. */
static void judge(struct d9__loop_time *time, uint64_t length_ns, uint64_t more_ns)
{
	uint64_t own_ns = time->window.own_ns, known_ns = own_ns + time->window.asleep_ns;

	/* Where the machine had the thread for most of it, too little is left to judge by. */
	if (4 * known_ns < length_ns)
		return;
	if (100 * own_ns < D9__BUSY_PERCENT * known_ns) {
		time->window.run_ns = 0;
		return;
	}
	if (!time->window.run_ns)
		time->window.run_from_ns = time->window.from_ns;
	time->window.run_ns += length_ns + more_ns;
	time->busy.ns += length_ns + more_ns;
	if (time->window.run_ns <= time->busy.longest_ns)
		return;
	time->busy.longest_ns = time->window.run_ns;
	time->busy.longest_from_ns = time->window.run_from_ns;
}

static void begin(struct d9__loop_time *time, uint64_t ns)
{
	time->window.from_ns = ns;
	time->window.own_ns = time->window.asleep_ns = 0;
}

/* Nothing follows the open window for a while. */
static void end_window(struct d9__loop_time *time)
{
	if (time->window.from_ns && time->last_ns > time->window.from_ns)
		judge(time, time->last_ns - time->window.from_ns, 0);
	time->window.from_ns = 0;
}

/* The part of |ns|, which are spread evenly over |all_ns|, that lies in |part_ns| of these. */
static uint64_t part_of(uint64_t ns, uint64_t part_ns, uint64_t all_ns)
{
	return part_ns == all_ns ? ns : (uint64_t)((double)ns * (double)part_ns / (double)all_ns);
}

/* From |from_ns| to |to_ns| the thread needed |own_ns|, and slept for |asleep_ns|. */
static void spread(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns, uint64_t own_ns,
		   uint64_t asleep_ns)
{
	uint64_t all_ns = to_ns - from_ns;

	if (!time->window.from_ns)
		begin(time, from_ns);
	while (to_ns - time->window.from_ns >= D9__BUSY_WINDOW_NS) {
		uint64_t end_ns = time->window.from_ns + D9__BUSY_WINDOW_NS;
		uint64_t part_ns = end_ns > from_ns ? end_ns - from_ns : 0, more_ns = 0;

		time->window.own_ns += part_of(own_ns, part_ns, all_ns);
		time->window.asleep_ns += part_of(asleep_ns, part_ns, all_ns);
		/* One that begins here may be one of many that are alike. */
		if (part_ns == D9__BUSY_WINDOW_NS)
			more_ns = (to_ns - end_ns) / D9__BUSY_WINDOW_NS * D9__BUSY_WINDOW_NS;
		judge(time, D9__BUSY_WINDOW_NS, more_ns);
		from_ns = end_ns > from_ns ? end_ns : from_ns;
		begin(time, end_ns + more_ns);
		from_ns += more_ns;
	}
	time->window.own_ns += part_of(own_ns, to_ns - from_ns, all_ns);
	time->window.asleep_ns += part_of(asleep_ns, to_ns - from_ns, all_ns);
}

/* ---- stops ---- */

/* A stop is no shorter. */
#define STOP_NS (200 * D9__MS_NS)

/* Take a stop out of the busy stretches, the one that goes on among them. */
static void shorten_busy(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = to_ns - from_ns;

	time->busy.ns -= d9__u64_min(time->busy.ns, ns);
	if (time->busy.longest_from_ns < to_ns &&
	    time->busy.longest_from_ns + time->busy.longest_ns > from_ns)
		time->busy.longest_ns -= d9__u64_min(time->busy.longest_ns, ns);
	if (time->window.run_from_ns < to_ns)
		time->window.run_ns -= d9__u64_min(time->window.run_ns, ns);
}

/* Take out of |part| what lies between two moments; how much of that was in callbacks. */
static uint64_t stand_still(struct d9__loop_time *time, const struct d9__loop_long *part,
			    uint64_t from_ns, uint64_t to_ns)
{
	uint64_t start_ns = part->from_ns > from_ns ? part->from_ns : from_ns;
	uint64_t end_ns = d9__u64_min(part->to_ns, to_ns),
		 ns = end_ns > start_ns ? end_ns - start_ns : 0;
	uint64_t left_ns = ns, in_calls_ns = 0;

	if (part->waited) {
		left_ns -= take(&time->asleep_ns, left_ns);
	} else {
		in_calls_ns = take(&time->callback_ns, d9__u64_min(left_ns, part->calls_ns));
		left_ns -= in_calls_ns;
		left_ns -= take(&time->round_ns, left_ns);
		left_ns -= take(&time->outside_asleep_ns, left_ns);
		left_ns -= take(&time->outside_ready_ns, left_ns);
		left_ns -= take(&time->outside_ns, left_ns);
	}
	time->stopped_ns += ns - left_ns;
	if (!part->waited && ns)
		shorten_busy(time, start_ns, end_ns);
	return in_calls_ns;
}

/* A time without an event is over, which the newest stop may lie in; how much of it was in
 * callbacks. */
static uint64_t end_long(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns,
			 uint64_t calls_ns, bool waited)
{
	uint64_t in_calls_ns = 0;

	if (to_ns - from_ns < STOP_NS)
		return 0;
	time->newest_long = (struct d9__loop_long) { from_ns, to_ns, calls_ns, waited };
	if (time->stop.to_ns)
		in_calls_ns =
			stand_still(time, &time->newest_long, time->stop.from_ns, time->stop.to_ns);
	if (time->stop.to_ns <= to_ns)
		time->stop.from_ns = time->stop.to_ns = 0;
	return in_calls_ns;
}

uint64_t d9__loop_time_stopped(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns > time->last_ns) {
		time->stop.from_ns = from_ns;
		time->stop.to_ns = to_ns;
	}
	return stand_still(time, &time->newest_long, from_ns, to_ns);
}

/* ---- parts ---- */

static void reach(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns)
{
	if (!time->last_ns)
		time->first_ns = time->last_ns = from_ns;
	/* A gap is in no other part. */
	if (from_ns > time->last_ns) {
		time->lost_ns += from_ns - time->last_ns;
		end_window(time);
		time->window.run_ns = 0;
	}
	time->last_ns = to_ns;
}

/* The part of a time up to |to_ns| that is not divided yet begins at |*from_ns|; false: there is
 * none. */
static bool is_new(const struct d9__loop_time *time, uint64_t *from_ns, uint64_t to_ns)
{
	if (*from_ns < time->last_ns)
		*from_ns = time->last_ns;
	return *from_ns < to_ns;
}

void d9__loop_time_waited(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns,
			  uint64_t cpu_ns, uint64_t ready_ns)
{
	uint64_t left_ns;

	if (!is_new(time, &from_ns, to_ns))
		return;
	reach(time, from_ns, to_ns);
	left_ns = to_ns - from_ns;
	time->wait_ready_ns += take(&left_ns, ready_ns);
	cpu_ns = take(&left_ns, cpu_ns);
	time->wait_cpu_ns += cpu_ns;
	time->asleep_ns += left_ns;
	spread(time, from_ns, to_ns, cpu_ns, left_ns);
	end_long(time, from_ns, to_ns, 0, true);
}

/*
 * Of all the times between rounds of an awake time |at_work_ns| were spent at work: for how long
 * the longest of these were is not known, but no shorter than their mean, and what the longest by
 * the clock had if the others did nothing else.
 */
static void note_longest(struct d9__loop_time *time, uint64_t at_work_ns)
{
	uint64_t others_ns = time->outside_told_ns - time->outside_longest_ns;
	uint64_t mean_ns = at_work_ns / time->outside_told_n;
	uint64_t ns = at_work_ns > others_ns + mean_ns ? at_work_ns - others_ns : mean_ns;

	if (ns <= time->outside_max_ns)
		return;
	time->outside_max_ns = ns;
	time->outside_max_at_ns = time->outside_longest_at_ns;
}

/* Of the time between rounds, in |*left_ns|, the thread slept for |asleep_ns|; the rest of
 * |*left_ns| is the round's.  Returns how long it did not sleep. */
static uint64_t divide_outside(struct d9__loop_time *time, uint64_t *left_ns, uint64_t *asleep_ns)
{
	uint64_t outside_ns = take(left_ns, time->outside_told_ns);

	*asleep_ns = time->outside_told_ns ? d9__u64_min(outside_ns, *asleep_ns)
					   : take(left_ns, *asleep_ns);
	time->outside_asleep_ns += *asleep_ns;
	return time->outside_told_ns ? outside_ns - *asleep_ns : 0;
}

/*
 * The thread was awake between rounds for |outside_ns|: of what it was ready without a CPU, these
 * and the round, of |round_ns|, have their parts.
 */
static void divide_ready(struct d9__loop_time *time, const struct d9__loop_awake *awake,
			 uint64_t calls_ns, uint64_t round_ns, uint64_t outside_ns)
{
	uint64_t all_ns = calls_ns + round_ns + outside_ns,
		 ready_ns = d9__u64_min(awake->ready_ns, all_ns), taken_ns;

	if (!all_ns)
		return;
	taken_ns = part_of(ready_ns, outside_ns, all_ns);
	time->outside_ready_ns += taken_ns;
	time->outside_ns += outside_ns - taken_ns;
	time->round_ready_ns += part_of(ready_ns, round_ns, all_ns);
	if (time->outside_told_n && !awake->unread)
		note_longest(time, outside_ns - taken_ns);
}

/*
 * Of an awake time the stretch without a callback has what the thread needed itself, but for what
 * the rest of it can have had.  A time between rounds has an account of its own.
 */
static void note_gap(struct d9__loop_time *time, const struct d9__loop_awake *awake)
{
	uint64_t all_ns = awake->to_ns - awake->from_ns, ns;

	if (awake->gap_ns < D9__LONG_STRETCH_NS || awake->gap_ns > all_ns ||
	    awake->own_ns > all_ns ||
	    time->outside_told_ns)
		return;
	ns = awake->own_ns - d9__u64_min(awake->own_ns, all_ns - awake->gap_ns);
	if (ns < D9__LONG_STRETCH_NS)
		return;
	time->round_n++;
	time->round_long_ns += ns;
	if (ns <= time->round_max_ns)
		return;
	time->round_max_ns = ns;
	time->round_max_at_ns = awake->gap_from_ns;
}

uint64_t d9__loop_time_awake(struct d9__loop_time *time, const struct d9__loop_awake *awake)
{
	uint64_t from_ns = awake->from_ns, left_ns, slept_ns, calls_ns, outside_ns;

	if (!is_new(time, &from_ns, awake->to_ns))
		return 0;
	reach(time, from_ns, awake->to_ns);
	left_ns = awake->to_ns - from_ns;
	calls_ns = take(&left_ns, awake->calls_ns);
	time->callback_ns += calls_ns;
	note_gap(time, awake);
	slept_ns = awake->slept_ns;
	outside_ns = divide_outside(time, &left_ns, &slept_ns);
	time->round_ns += left_ns;
	divide_ready(time, awake, calls_ns - d9__u64_min(calls_ns, awake->read_ns), left_ns,
		     outside_ns);
	time->outside_told_ns = time->outside_told_n = time->outside_longest_ns = 0;
	spread(time, from_ns, awake->to_ns, awake->own_ns, slept_ns);
	return end_long(time, from_ns, awake->to_ns, calls_ns, false);
}

void d9__loop_time_outside(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;

	time->outside_told_ns += ns;
	time->outside_told_n++;
	if (time->outside_n++ == 0)
		time->outside_first_ns = from_ns;
	time->outside_last_ns = to_ns;
	if (ns <= time->outside_longest_ns)
		return;
	time->outside_longest_ns = ns;
	time->outside_longest_at_ns = from_ns;
}

void d9__loop_time_outside_held(struct d9__loop_time *time, uint64_t ns)
{
	time->outside_held_ns += ns;
}

void d9__loop_time_between(struct d9__loop_time *time, uint64_t n, uint64_t ns)
{
	time->outside_short_n += n;
	time->between_ns += ns;
}

void d9__loop_time_burnt(struct d9__loop_time *time, uint64_t ns)
{
	ns = take(&time->asleep_ns, ns);
	time->wait_cpu_ns += ns;
	time->window.own_ns += take(&time->window.asleep_ns, ns);
}

uint64_t d9__loop_time_ready(struct d9__loop_time *time, uint64_t ns)
{
	ns = take(&time->asleep_ns, ns);
	time->wait_ready_ns += ns;
	take(&time->window.asleep_ns, ns);
	return ns;
}

void d9__loop_time_lost(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns)
{
	if (!is_new(time, &from_ns, to_ns))
		return;
	/* The first begins the loop's time, the second skips to the end. */
	reach(time, from_ns, from_ns);
	reach(time, to_ns, to_ns);
}

void d9__loop_time_finish(struct d9__loop_time *time)
{
	end_window(time);
	time->outside_short_ns = take(&time->round_ns, time->between_ns);
	time->outside_ns += time->outside_short_ns;
	time->between_ns = 0;
}

void d9__loop_time_subtract(struct d9__loop_time *time, const struct d9__loop_time *before)
{
	if (before->last_ns)
		time->first_ns = d9__u64_min(before->last_ns, time->last_ns);
	take(&time->asleep_ns, before->asleep_ns);
	take(&time->wait_cpu_ns, before->wait_cpu_ns);
	take(&time->wait_ready_ns, before->wait_ready_ns);
	take(&time->callback_ns, before->callback_ns);
	take(&time->round_ns, before->round_ns);
	take(&time->outside_ns, before->outside_ns);
	take(&time->round_ready_ns, before->round_ready_ns);
	take(&time->outside_asleep_ns, before->outside_asleep_ns);
	take(&time->outside_ready_ns, before->outside_ready_ns);
	take(&time->outside_held_ns, before->outside_held_ns);
	take(&time->outside_n, before->outside_n);
	take(&time->outside_short_n, before->outside_short_n);
	take(&time->round_n, before->round_n);
	take(&time->round_long_ns, before->round_long_ns);
	take(&time->stopped_ns, before->stopped_ns);
	take(&time->lost_ns, before->lost_ns);
	take(&time->busy.ns, before->busy.ns);
}

uint64_t d9__loop_time_total_ns(const struct d9__loop_time *time)
{
	return time->last_ns - time->first_ns;
}
