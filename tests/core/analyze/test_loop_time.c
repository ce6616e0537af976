/* SPDX-License-Identifier: Apache-2.0 */
/* How the time of a loop is divided: each instant is in one part, and busy stretches are found. */
#include "config.h"

#include <stdlib.h>

#include "analyze/loop_time.h"
#include "base/time.h"
#include "support/d9_test.h"

#define MS(n) ((n)*D9__MS_NS)

/* Traces do not begin at 0. */
#define START MS(UINT64_C(5000))

#define WINDOWS(n) ((n)*D9__BUSY_WINDOW_NS)

static uint64_t sum(const struct d9__loop_time *time)
{
	return time->asleep_ns + time->wait_cpu_ns + time->wait_ready_ns + time->callback_ns +
	       time->round_ns + time->outside_ns + time->outside_asleep_ns +
	       time->outside_ready_ns + time->stopped_ns + time->lost_ns;
}

static void awake(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns, uint64_t calls_ns,
		  uint64_t own_ns)
{
	d9__loop_time_awake(time, &(struct d9__loop_awake) { .from_ns = from_ns,
							     .to_ns = to_ns,
							     .calls_ns = calls_ns,
							     .own_ns = own_ns });
}

/* ---- parts ---- */

static void test_nothing_recorded_is_no_time(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&time), 0);
	CU_ASSERT_EQUAL(sum(&time), 0);
	CU_ASSERT_EQUAL(time.busy.ns, 0);
}

static void test_wait_without_a_cpu_that_is_told_later_was_no_sleep(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_waited(&time, START, START + MS(10), 0, 0);
	CU_ASSERT_EQUAL(d9__loop_time_ready(&time, MS(4)), MS(4));
	CU_ASSERT_EQUAL(time.asleep_ns, MS(6));
	CU_ASSERT_EQUAL(time.wait_ready_ns, MS(4));
	CU_ASSERT_EQUAL(d9__loop_time_ready(&time, MS(9)), MS(6));
	CU_ASSERT_EQUAL(sum(&time), d9__loop_time_total_ns(&time));
}

static void test_wait_is_sleep_but_for_the_cpu_it_used_and_missed(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_waited(&time, START, START + MS(10), MS(2), MS(3));
	CU_ASSERT_EQUAL(time.wait_ready_ns, MS(3));
	CU_ASSERT_EQUAL(time.wait_cpu_ns, MS(2));
	CU_ASSERT_EQUAL(time.asleep_ns, MS(5));
	/* Where both are more than it lasted, the machine is believed first. */
	d9__loop_time_waited(&time, START + MS(10), START + MS(20), MS(8), MS(7));
	CU_ASSERT_EQUAL(time.wait_ready_ns, MS(10));
	CU_ASSERT_EQUAL(time.wait_cpu_ns, MS(5));
	CU_ASSERT_EQUAL(time.asleep_ns, MS(5));
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&time), MS(20));
}

static void test_time_awake_is_of_callbacks_and_the_round_has_the_rest(void)
{
	struct d9__loop_time time = { 0 };

	awake(&time, START, START + MS(10), MS(7), MS(10));
	CU_ASSERT_EQUAL(time.callback_ns, MS(7));
	CU_ASSERT_EQUAL(time.round_ns, MS(3));
	/* Calls that lasted for longer than it: they began before. */
	awake(&time, START + MS(10), START + MS(12), MS(50), MS(2));
	CU_ASSERT_EQUAL(time.callback_ns, MS(9));
	CU_ASSERT_EQUAL(time.round_ns, MS(3));
	CU_ASSERT_EQUAL(sum(&time), MS(12));
}

/* An awake time of 10 ms from |from_ns| on, with 4 in callbacks. */
static void awake_but(struct d9__loop_time *time, uint64_t from_ns, uint64_t asleep_ns,
		      uint64_t ready_ns)
{
	d9__loop_time_awake(time, &(struct d9__loop_awake) { .from_ns = from_ns,
							     .to_ns = from_ns + MS(10),
							     .calls_ns = MS(4),
							     .own_ns = MS(10) - asleep_ns -
								       ready_ns,
							     .slept_ns = asleep_ns,
							     .ready_ns = ready_ns });
}

/* 10 ms awake, 4 in callbacks, 5 between rounds: it slept for 2 of them. */
static void test_time_between_rounds_is_work_as_far_as_it_did_not_sleep(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_outside(&time, START + MS(5), START + MS(10));
	awake_but(&time, START, MS(2), 0);
	CU_ASSERT_EQUAL(time.callback_ns, MS(4));
	CU_ASSERT_EQUAL(time.round_ns, MS(1));
	CU_ASSERT_EQUAL(time.outside_ns, MS(3));
	CU_ASSERT_EQUAL(time.outside_asleep_ns, MS(2));
	/* It is of that awake time only. */
	awake(&time, START + MS(10), START + MS(20), 0, MS(10));
	CU_ASSERT_EQUAL(time.round_ns, MS(11));
	CU_ASSERT_EQUAL(sum(&time), MS(20));
}

static void test_wait_for_a_cpu_has_its_part_of_callbacks_round_and_between_rounds(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_outside(&time, START + MS(5), START + MS(10));
	awake_but(&time, START, MS(2), MS(4));
	CU_ASSERT_EQUAL(time.callback_ns, MS(4));
	CU_ASSERT_EQUAL(time.round_ns, MS(1));
	CU_ASSERT_EQUAL(time.round_ready_ns, MS(1) / 2);
	CU_ASSERT_EQUAL(time.outside_ready_ns, 3 * MS(1) / 2);
	CU_ASSERT_EQUAL(time.outside_ns, 3 * MS(1) / 2);
	CU_ASSERT_EQUAL(time.outside_asleep_ns, MS(2));
	CU_ASSERT_EQUAL(sum(&time), MS(10));

	/* Callbacks that tell of their own have no part. */
	d9__loop_time_outside(&time, START + MS(15), START + MS(20));
	d9__loop_time_awake(&time, &(struct d9__loop_awake) { .from_ns = START + MS(10),
							      .to_ns = START + MS(20),
							      .calls_ns = MS(4),
							      .read_ns = MS(4),
							      .own_ns = MS(7),
							      .ready_ns = MS(3) });
	CU_ASSERT_EQUAL(time.round_ready_ns, MS(1));
	CU_ASSERT_EQUAL(time.outside_ready_ns, MS(4));
	CU_ASSERT_EQUAL(sum(&time), MS(20));
}

static void test_sleep_between_rounds_is_guessed_only_where_none_was_told(void)
{
	struct d9__loop_time time = { 0 };
	struct d9__loop_awake with_guess = {
		.from_ns = START, .to_ns = START + MS(10), .own_ns = MS(4), .slept_ns = MS(6)
	};

	d9__loop_time_awake(&time, &with_guess);
	CU_ASSERT_EQUAL(time.outside_asleep_ns, MS(6));
	CU_ASSERT_EQUAL(time.round_ns, MS(4));
	with_guess.from_ns = START + MS(10);
	with_guess.to_ns = START + MS(20);
	d9__loop_time_outside(&time, START + MS(18), START + MS(20));
	d9__loop_time_awake(&time, &with_guess);
	CU_ASSERT_EQUAL(time.outside_asleep_ns, MS(8));
	CU_ASSERT_EQUAL(time.outside_ns, 0);
	CU_ASSERT_EQUAL(time.round_ns, MS(12));
	CU_ASSERT_EQUAL(sum(&time), MS(20));
}

static void test_longest_time_between_rounds_is_kept_with_its_begin(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_outside(&time, START, START + MS(3));
	d9__loop_time_outside(&time, START + MS(10), START + MS(19));
	d9__loop_time_outside(&time, START + MS(30), START + MS(34));
	d9__loop_time_outside(&time, START + MS(50), START + MS(40));
	CU_ASSERT_EQUAL(time.outside_n, 4);
	CU_ASSERT_EQUAL(time.outside_first_ns, START);
	d9__loop_time_awake(&time, &(struct d9__loop_awake) { .from_ns = START,
							      .to_ns = START + MS(60),
							      .own_ns = MS(60) });
	CU_ASSERT_EQUAL(time.outside_max_ns, MS(9));
	CU_ASSERT_EQUAL(time.outside_max_at_ns, START + MS(10));
}

/* 30 ms between rounds, of which the thread had the CPU for 10: the kernel ran something else.  How
 * it divided that is not known: the longest was no shorter than the mean. */
static void test_longest_time_between_rounds_is_told_without_what_the_machine_took(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_outside(&time, START, START + MS(24));
	d9__loop_time_outside(&time, START + MS(30), START + MS(36));
	d9__loop_time_awake(&time, &(struct d9__loop_awake) { .from_ns = START,
							      .to_ns = START + MS(40),
							      .own_ns = MS(20),
							      .slept_ns = MS(20) });
	CU_ASSERT_EQUAL(time.outside_ns, MS(10));
	CU_ASSERT_EQUAL(time.outside_max_ns, MS(5));
	CU_ASSERT_EQUAL(time.outside_max_at_ns, START);

	/* The others together cannot have had more than they lasted. */
	d9__loop_time_outside(&time, START + MS(40), START + MS(64));
	d9__loop_time_outside(&time, START + MS(70), START + MS(74));
	d9__loop_time_awake(&time, &(struct d9__loop_awake) { .from_ns = START + MS(40),
							      .to_ns = START + MS(80),
							      .own_ns = MS(26),
							      .ready_ns = MS(10),
							      .slept_ns = MS(14) - MS(10) });
	CU_ASSERT_EQUAL(time.outside_asleep_ns, MS(24));
	CU_ASSERT_EQUAL(time.outside_max_ns, time.outside_ns - MS(10) - MS(4));
	CU_ASSERT_EQUAL(time.outside_max_at_ns, START + MS(40));

	/* Nothing was read at the end of the last one. */
	d9__loop_time_outside(&time, START + MS(80), START + MS(180));
	d9__loop_time_awake(&time, &(struct d9__loop_awake) { .from_ns = START + MS(80),
							      .to_ns = START + MS(180),
							      .own_ns = MS(100),
							      .unread = true });
	CU_ASSERT_EQUAL(time.outside_max_at_ns, START + MS(40));
}

/* 100 ms awake, 80 of them without a callback: others had the CPU for most of it, and nothing tells
 * when. */
static void test_stretch_without_a_callback_has_what_the_rest_cannot_have_had(void)
{
	struct d9__loop_time time = { 0 };
	struct d9__loop_awake awake = { .from_ns = START,
					.to_ns = START + MS(100),
					.own_ns = MS(24),
					.gap_from_ns = START + MS(10),
					.gap_ns = MS(80) };

	d9__loop_time_awake(&time, &awake);
	CU_ASSERT_EQUAL(time.round_n, 0);
	awake.from_ns += MS(100);
	awake.to_ns += MS(100);
	awake.gap_from_ns += MS(100);
	awake.own_ns = MS(30);
	d9__loop_time_awake(&time, &awake);
	CU_ASSERT_EQUAL(time.round_n, 1);
	CU_ASSERT_EQUAL(time.round_max_ns, MS(10));
	CU_ASSERT_EQUAL(time.round_max_at_ns, START + MS(110));
}

static void test_short_times_between_rounds_are_taken_from_rounds_at_the_end(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_between(&time, 1, MS(2));
	awake(&time, START, START + MS(10), MS(4), MS(10));
	d9__loop_time_between(&time, 1, MS(1));
	CU_ASSERT_EQUAL(time.round_ns, MS(6));
	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(time.round_ns, MS(3));
	CU_ASSERT_EQUAL(time.outside_ns, MS(3));
	d9__loop_time_between(&time, 1, MS(100));
	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(time.outside_ns, MS(6));
	CU_ASSERT_EQUAL(sum(&time), MS(10));
}

static void test_what_was_burnt_in_waits_is_no_sleep(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_waited(&time, START, START + MS(10), 0, 0);
	d9__loop_time_burnt(&time, MS(4));
	CU_ASSERT_EQUAL(time.wait_cpu_ns, MS(4));
	CU_ASSERT_EQUAL(time.asleep_ns, MS(6));
	d9__loop_time_burnt(&time, MS(100));
	CU_ASSERT_EQUAL(time.wait_cpu_ns, MS(10));
	CU_ASSERT_EQUAL(sum(&time), MS(10));
}

static void test_time_that_no_event_tells_of_is_not_recorded(void)
{
	struct d9__loop_time time = { 0 };

	awake(&time, START, START + MS(10), MS(10), MS(10));
	d9__loop_time_waited(&time, START + MS(15), START + MS(20), 0, 0);
	CU_ASSERT_EQUAL(time.lost_ns, MS(5));
	d9__loop_time_lost(&time, START + MS(18), START + MS(30));
	CU_ASSERT_EQUAL(time.lost_ns, MS(15));
	d9__loop_time_lost(&time, START + MS(32), START + MS(33));
	CU_ASSERT_EQUAL(time.lost_ns, MS(18));
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&time), MS(33));
	CU_ASSERT_EQUAL(sum(&time), MS(33));
}

static void test_time_that_is_told_twice_counts_once(void)
{
	struct d9__loop_time time = { 0 };

	awake(&time, START, START + MS(10), MS(10), MS(10));
	d9__loop_time_waited(&time, START + MS(5), START + MS(20), 0, 0);
	CU_ASSERT_EQUAL(time.asleep_ns, MS(10));
	awake(&time, START + MS(2), START + MS(18), MS(16), MS(16));
	d9__loop_time_waited(&time, START + MS(30), START + MS(25), MS(1), MS(1));
	d9__loop_time_lost(&time, START, START + MS(20));
	CU_ASSERT_EQUAL(time.callback_ns, MS(10));
	CU_ASSERT_EQUAL(time.lost_ns, 0);
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&time), MS(20));
	CU_ASSERT_EQUAL(sum(&time), MS(20));
}

/* ---- whatever comes ---- */

static uint64_t next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* From nothing over microseconds and seconds to hours. */
static uint64_t some_ns(uint64_t *state)
{
	static const uint64_t most[] = {
		1, D9__US_NS, D9__MS_NS, 300 * D9__MS_NS, 5 * D9__SECOND_NS, 7200 * D9__SECOND_NS
	};
	uint64_t of = most[next(state) % 6];

	return (next(state) << 20 ^ next(state)) % of;
}

static void something_happens(struct d9__loop_time *time, uint64_t *state, uint64_t *now_ns)
{
	uint64_t from_ns = *now_ns, to_ns;

	switch (next(state) % 16) {
	case 0: /* a gap */
		from_ns += some_ns(state);
		break;
	case 1: /* an overlap */
		from_ns -= some_ns(state) % (START / 2);
		break;
	}
	to_ns = next(state) % 16 ? from_ns + some_ns(state)
				 : from_ns - some_ns(state) % (START / 2);
	switch (next(state) % 8) {
	case 0:
	case 1:
	case 2:
		d9__loop_time_waited(time, from_ns, to_ns, some_ns(state), some_ns(state));
		break;
	case 3:
		d9__loop_time_outside(time, from_ns, to_ns);
		return;
	case 4:
		d9__loop_time_between(time, 1, some_ns(state));
		return;
	case 5:
		d9__loop_time_burnt(time, some_ns(state));
		return;
	case 6:
		d9__loop_time_lost(time, from_ns, to_ns);
		break;
	default:
		d9__loop_time_awake(time, &(struct d9__loop_awake) { .from_ns = from_ns,
								     .to_ns = to_ns,
								     .calls_ns = some_ns(state),
								     .own_ns = some_ns(state),
								     .slept_ns = some_ns(state),
								     .ready_ns = some_ns(state),
								     .read_ns = some_ns(state) });
	}
	if (to_ns > *now_ns)
		*now_ns = to_ns;
}

static void test_parts_sum_to_the_whole_whatever_comes(void)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct d9__loop_time time = { 0 };
		uint64_t state = seed, now_ns = START;

		for (unsigned i = 0; i < 300; i++) {
			something_happens(&time, &state, &now_ns);
			if (sum(&time) != d9__loop_time_total_ns(&time) ||
			    time.busy.longest_ns > time.busy.ns ||
			    time.busy.ns > d9__loop_time_total_ns(&time))
				CU_FAIL_FATAL("parts do not sum to the whole");
		}
		d9__loop_time_finish(&time);
		CU_ASSERT_EQUAL(sum(&time), d9__loop_time_total_ns(&time));
		CU_ASSERT(d9__loop_time_total_ns(&time) > 0);
	}
}

/* With a step for each window of 250 ms, one of them would take minutes. */
static void test_times_of_many_years_are_divided_at_once(void)
{
	const uint64_t long_ns = UINT64_C(1) << 60;
	struct d9__loop_time time = { 0 };

	awake(&time, START, START + MS(10), MS(10), MS(10));
	awake(&time, START + MS(10), START + long_ns, long_ns, long_ns - START);
	CU_ASSERT(time.busy.longest_ns > long_ns - START - WINDOWS(2));
	d9__loop_time_waited(&time, START + long_ns, START + 2 * long_ns, 0, 0);
	d9__loop_time_waited(&time, START + 4 * long_ns, START + 5 * long_ns, 0, 0);
	d9__loop_time_lost(&time, START + 5 * long_ns, START + 7 * long_ns);
	awake(&time, START + 7 * long_ns, START + 8 * long_ns, 0, 0);
	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&time), 8 * long_ns);
	CU_ASSERT_EQUAL(sum(&time), 8 * long_ns);
	CU_ASSERT_EQUAL(time.lost_ns, 4 * long_ns);
}

/* ---- busy stretches ---- */

/* |n| windows of which the loop is awake for |percent|, and has the CPU for that; returns the end.
 */
static uint64_t windows(struct d9__loop_time *time, uint64_t from_ns, unsigned n, unsigned percent)
{
	for (unsigned i = 0; i < n; i++, from_ns += D9__BUSY_WINDOW_NS) {
		uint64_t own_ns = D9__BUSY_WINDOW_NS / 100 * percent;

		awake(time, from_ns, from_ns + own_ns, own_ns, own_ns);
		d9__loop_time_waited(time, from_ns + own_ns, from_ns + D9__BUSY_WINDOW_NS, 0, 0);
	}
	return from_ns;
}

static void test_loop_is_busy_from_four_fifths_of_the_time_on(void)
{
	struct d9__loop_time busy = { 0 }, idle = { 0 };

	windows(&busy, START, 8, 80);
	windows(&idle, START, 8, 79);
	d9__loop_time_finish(&busy);
	d9__loop_time_finish(&idle);
	CU_ASSERT_EQUAL(busy.busy.ns, WINDOWS(8));
	CU_ASSERT_EQUAL(busy.busy.longest_ns, WINDOWS(8));
	CU_ASSERT_EQUAL(idle.busy.ns, 0);
	CU_ASSERT_EQUAL(idle.busy.longest_ns, 0);
}

static void test_longest_busy_stretch_is_kept_with_its_begin(void)
{
	struct d9__loop_time time = { 0 };
	uint64_t ns = windows(&time, START, 3, 90), longest_ns;

	longest_ns = windows(&time, ns, 1, 10);
	ns = windows(&time, longest_ns, 5, 95);
	ns = windows(&time, ns, 2, 0);
	windows(&time, ns, 4, 100);
	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(time.busy.ns, WINDOWS(3 + 5 + 4));
	CU_ASSERT_EQUAL(time.busy.longest_ns, WINDOWS(5));
	CU_ASSERT_EQUAL(time.busy.longest_from_ns, longest_ns);
}

static void test_time_that_was_not_recorded_breaks_a_busy_stretch(void)
{
	for (unsigned told = 0; told < 2; told++) {
		struct d9__loop_time time = { 0 };
		uint64_t ns = windows(&time, START, 3, 100);

		if (told)
			d9__loop_time_lost(&time, ns, ns + MS(60000));
		windows(&time, ns + MS(60000), 2, 100);
		d9__loop_time_finish(&time);
		CU_ASSERT_EQUAL(time.busy.ns, WINDOWS(5));
		CU_ASSERT_EQUAL(time.busy.longest_ns, WINDOWS(3));
		CU_ASSERT_EQUAL(time.busy.longest_from_ns, START);
	}
}

/* Of each 250 ms the machine had 125, in waits and in callbacks alike. */
static void test_what_the_machine_took_makes_no_loop_busy_and_none_idle(void)
{
	struct d9__loop_time busy = { 0 }, idle = { 0 };

	for (uint64_t ns = START; ns < START + WINDOWS(4); ns += D9__BUSY_WINDOW_NS) {
		awake(&busy, ns, ns + MS(150), MS(150), MS(100));
		d9__loop_time_waited(&busy, ns + MS(150), ns + MS(250), 0, MS(75));
		awake(&idle, ns, ns + MS(150), MS(150), MS(99));
		d9__loop_time_waited(&idle, ns + MS(150), ns + MS(250), 0, MS(74));
	}
	d9__loop_time_finish(&busy);
	d9__loop_time_finish(&idle);
	CU_ASSERT_EQUAL(busy.busy.longest_ns, WINDOWS(4));
	CU_ASSERT_EQUAL(idle.busy.ns, 0);
}

static void test_window_of_which_the_machine_had_nearly_all_tells_nothing(void)
{
	struct d9__loop_time time = { 0 };
	uint64_t ns = windows(&time, START, 3, 100);

	/* Between those that tell, it neither breaks the stretch nor makes it longer. */
	awake(&time, ns, ns + D9__BUSY_WINDOW_NS, D9__BUSY_WINDOW_NS, MS(62));
	ns = windows(&time, ns + D9__BUSY_WINDOW_NS, 2, 100);
	CU_ASSERT_EQUAL(time.busy.ns, WINDOWS(5));
	CU_ASSERT_EQUAL(time.busy.longest_ns, WINDOWS(5));
	d9__loop_time_waited(&time, ns, ns + D9__BUSY_WINDOW_NS, 0, MS(188));
	ns += D9__BUSY_WINDOW_NS;
	CU_ASSERT_EQUAL(time.window.run_ns, WINDOWS(5));
	/* From a quarter on that is left, it does. */
	d9__loop_time_waited(&time, ns, ns + D9__BUSY_WINDOW_NS, 0, MS(187));
	CU_ASSERT_EQUAL(time.window.run_ns, 0);
}

static void test_sleep_in_a_callback_keeps_a_loop_busy_and_sleep_between_rounds_does_not(void)
{
	struct d9__loop_time inside = { 0 }, outside = { 0 };

	for (uint64_t ns = START; ns < START + WINDOWS(4); ns += D9__BUSY_WINDOW_NS) {
		awake(&inside, ns, ns + D9__BUSY_WINDOW_NS, MS(240), MS(250));
		d9__loop_time_outside(&outside, ns, ns + MS(240));
		d9__loop_time_awake(&outside,
				    &(struct d9__loop_awake) { .from_ns = ns,
							       .to_ns = ns + D9__BUSY_WINDOW_NS,
							       .own_ns = MS(10),
							       .slept_ns = MS(240) });
	}
	d9__loop_time_finish(&inside);
	d9__loop_time_finish(&outside);
	CU_ASSERT_EQUAL(inside.busy.ns, WINDOWS(4));
	CU_ASSERT_EQUAL(outside.busy.ns, 0);
	CU_ASSERT_EQUAL(outside.outside_asleep_ns, 4 * MS(240));
}

static void test_waits_that_burn_a_cpu_are_busy(void)
{
	struct d9__loop_time told = { 0 }, later = { 0 };

	for (uint64_t ns = START; ns < START + WINDOWS(4); ns += D9__BUSY_WINDOW_NS) {
		d9__loop_time_waited(&told, ns, ns + D9__BUSY_WINDOW_NS, MS(200), 0);
		d9__loop_time_waited(&later, ns, ns + MS(249), 0, 0);
		d9__loop_time_burnt(&later, MS(249));
		awake(&later, ns + MS(249), ns + MS(250), MS(1), MS(1));
	}
	d9__loop_time_finish(&told);
	d9__loop_time_finish(&later);
	CU_ASSERT_EQUAL(told.busy.ns, WINDOWS(4));
	CU_ASSERT_EQUAL(later.busy.ns, WINDOWS(4));
}

/* One call of two seconds, in the middle of a window. */
static void test_long_time_is_spread_over_the_windows_that_it_covers(void)
{
	struct d9__loop_time time = { 0 };

	d9__loop_time_waited(&time, START, START + MS(125), 0, 0);
	awake(&time, START + MS(125), START + MS(2125), MS(2000), MS(2000));
	d9__loop_time_waited(&time, START + MS(2125), START + MS(2500), 0, 0);
	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(time.busy.ns, MS(1750));
	CU_ASSERT_EQUAL(time.busy.longest_ns, MS(1750));
	CU_ASSERT_EQUAL(time.busy.longest_from_ns, START + MS(250));
}

static void test_last_window_counts_for_as_long_as_it_lasted(void)
{
	struct d9__loop_time time = { 0 };
	uint64_t ns = windows(&time, START, 2, 90);

	awake(&time, ns, ns + MS(40), MS(40), MS(40));
	CU_ASSERT_EQUAL(time.busy.ns, WINDOWS(2));
	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(time.busy.ns, WINDOWS(2) + MS(40));
	CU_ASSERT_EQUAL(time.busy.longest_ns, WINDOWS(2) + MS(40));
}

/* Stopped for 3 s inside a call, as is told before the call ends or after it. */
static void test_stop_of_the_process_is_no_busy_time(void)
{
	for (int after = 0; after < 2; after++) {
		struct d9__loop_time time = { 0 };
		uint64_t ns = windows(&time, START, 2, 100);

		if (!after)
			d9__loop_time_stopped(&time, ns, ns + WINDOWS(12));
		awake(&time, ns, ns + WINDOWS(12), WINDOWS(12), WINDOWS(12));
		if (after)
			d9__loop_time_stopped(&time, ns, ns + WINDOWS(12));
		windows(&time, ns + WINDOWS(12), 3, 100);
		d9__loop_time_finish(&time);
		CU_ASSERT_EQUAL(time.stopped_ns, WINDOWS(12));
		CU_ASSERT_EQUAL(time.busy.ns, WINDOWS(5));
		CU_ASSERT_EQUAL(time.busy.longest_ns, WINDOWS(5));
		CU_ASSERT_EQUAL(sum(&time), d9__loop_time_total_ns(&time));
	}
}

static void test_stop_of_the_process_in_a_wait_takes_no_busy_time(void)
{
	struct d9__loop_time time = { 0 };
	uint64_t ns = windows(&time, START, 4, 100);

	d9__loop_time_waited(&time, ns, ns + WINDOWS(8), 0, 0);
	d9__loop_time_stopped(&time, ns + WINDOWS(1), ns + WINDOWS(7));
	d9__loop_time_finish(&time);
	CU_ASSERT_EQUAL(time.stopped_ns, WINDOWS(6));
	CU_ASSERT_EQUAL(time.asleep_ns, WINDOWS(2));
	CU_ASSERT_EQUAL(time.busy.ns, WINDOWS(4));
	CU_ASSERT_EQUAL(time.busy.longest_ns, WINDOWS(4));
}

static CU_TestInfo tests[] = {
	{ "a stop of the process is no busy time", test_stop_of_the_process_is_no_busy_time },
	{ "a stop of the process in a wait takes no busy time",
	  test_stop_of_the_process_in_a_wait_takes_no_busy_time },
	{ "nothing recorded is no time", test_nothing_recorded_is_no_time },
	{ "a wait without a CPU that is told later was no sleep",
	  test_wait_without_a_cpu_that_is_told_later_was_no_sleep },
	{ "a wait is sleep but for the CPU it used and missed",
	  test_wait_is_sleep_but_for_the_cpu_it_used_and_missed },
	{ "time awake is of callbacks, and the round has the rest",
	  test_time_awake_is_of_callbacks_and_the_round_has_the_rest },
	{ "time between rounds is work as far as it did not sleep",
	  test_time_between_rounds_is_work_as_far_as_it_did_not_sleep },
	{ "stretch without a callback has what the rest cannot have had",
	  test_stretch_without_a_callback_has_what_the_rest_cannot_have_had },
	{ "wait for a CPU has its part of callbacks, round and between rounds",
	  test_wait_for_a_cpu_has_its_part_of_callbacks_round_and_between_rounds },
	{ "sleep between rounds is guessed only where none was told",
	  test_sleep_between_rounds_is_guessed_only_where_none_was_told },
	{ "longest time between rounds is told without what the machine took",
	  test_longest_time_between_rounds_is_told_without_what_the_machine_took },
	{ "the longest time between rounds is kept with its begin",
	  test_longest_time_between_rounds_is_kept_with_its_begin },
	{ "short times between rounds are taken from rounds at the end",
	  test_short_times_between_rounds_are_taken_from_rounds_at_the_end },
	{ "what was burnt in waits is no sleep", test_what_was_burnt_in_waits_is_no_sleep },
	{ "time that no event tells of is not recorded",
	  test_time_that_no_event_tells_of_is_not_recorded },
	{ "time that is told twice counts once", test_time_that_is_told_twice_counts_once },
	{ "parts sum to the whole whatever comes", test_parts_sum_to_the_whole_whatever_comes },
	{ "times of many years are divided at once", test_times_of_many_years_are_divided_at_once },
	{ "a loop is busy from four fifths of the time on",
	  test_loop_is_busy_from_four_fifths_of_the_time_on },
	{ "the longest busy stretch is kept with its begin",
	  test_longest_busy_stretch_is_kept_with_its_begin },
	{ "time that was not recorded breaks a busy stretch",
	  test_time_that_was_not_recorded_breaks_a_busy_stretch },
	{ "what the machine took makes no loop busy and none idle",
	  test_what_the_machine_took_makes_no_loop_busy_and_none_idle },
	{ "a window of which the machine had nearly all tells nothing",
	  test_window_of_which_the_machine_had_nearly_all_tells_nothing },
	{ "sleep in a callback keeps a loop busy, and sleep between rounds does not",
	  test_sleep_in_a_callback_keeps_a_loop_busy_and_sleep_between_rounds_does_not },
	{ "waits that burn a CPU are busy", test_waits_that_burn_a_cpu_are_busy },
	{ "a long time is spread over the windows that it covers",
	  test_long_time_is_spread_over_the_windows_that_it_covers },
	{ "the last window counts for as long as it lasted",
	  test_last_window_counts_for_as_long_as_it_lasted },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("loop_time", tests);
}
