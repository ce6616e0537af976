/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: the recorded queue of a loop is run again without one callback, for shorter waits. */
#include "config.h"

#include <string.h>

#include "analyze/replay.h"
#include "story.h"
#include "support/d9_test.h"

#define SLOW  "app+0x100 @ app+0x110"
#define TICK  "app+0x200 @ app+0x210"
#define OTHER "app+0x300 @ app+0x310"

#define FD	     1
#define TIMER	     2
#define CROSS_THREAD 5
#define OUTSIDE	     255

/* Without the callback at |place|. */
static struct d9__gain gain_without(const struct story *s, const char *place)
{
	struct d9__gain gain = { .waits = 0 };

	CU_ASSERT_EQUAL(d9__replay_gain(&s->analysis, story_callback(s, place), false, &gain), 1);
	return gain;
}

/* Quantiles are those of buckets. */
static void check_near(uint64_t ns, uint64_t us)
{
	CU_ASSERT(ns <= us * 1000 + us * 5 && ns + us * 5 >= us * 1000);
}

static void check_longest(const struct d9__gain *gain, uint64_t before_us, uint64_t after_us)
{
	check_near(gain->longest.before_ns, before_us);
	check_near(gain->longest.after_ns, after_us);
	CU_ASSERT_EQUAL(gain->longest.after_least_ns, gain->longest.after_ns);
}

static void test_timers_due_behind_a_long_call_run_at_their_deadlines(void)
{
	struct d9__gain gain;
	struct story s;
	char text[160];

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 10000, 0, 2, TIMER);
	story_wake_by(&s, 12000, 0, 3, TIMER);
	story_wake_by(&s, 20000, 0, 4, TIMER);
	story_poll(&s, 0, 0, 50000, 1, SLOW);
	/* At 12 the call of 10 still ran. */
	story_poll(&s, 0, 50000, 55000, 2, TICK);
	story_poll(&s, 0, 55000, 56000, 3, TICK);
	story_poll(&s, 0, 56000, 57000, 4, TICK);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	CU_ASSERT_EQUAL(gain.waits, 3);
	CU_ASSERT_EQUAL(gain.changed, 3);
	check_longest(&gain, 43000, 3000);
	CU_ASSERT_STRING_EQUAL(d9__gain_text(&gain, text, sizeof(text)),
			       "callbacks would wait 3.00 ms, not 43.0 ms (longest)");
	CU_ASSERT_TRUE(story_finding_of(&s, "long-callback")->has_gain);
	CU_ASSERT_EQUAL(story_finding_of(&s, "long-callback")->gain.longest.before_ns, 43000000);
	story_free(&s);
}

static void test_what_the_loop_found_itself_was_ready_as_much_earlier(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	for (unsigned i = 1; i <= 3; i++)
		story_wake_by(&s, 0, 0, i, FD);
	story_poll(&s, 0, 0, 5000, 2, TICK);
	story_poll(&s, 0, 5000, 25000, 1, SLOW);
	story_poll(&s, 0, 25000, 26000, 3, TICK);
	/* It looks again without a sleep, and finds more: that waited behind nothing that is left
	 * out. */
	story_park(&s, 0, 26000, 0);
	story_unpark(&s, 0, 26010, 0);
	story_wake_by(&s, 26010, 0, 2, FD);
	story_wake_by(&s, 26010, 0, 3, FD);
	story_poll(&s, 0, 26010, 29010, 2, TICK);
	story_poll(&s, 0, 29010, 29020, 3, TICK);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	/* Its own wait is none of those. */
	CU_ASSERT_EQUAL(gain.waits, 2);
	CU_ASSERT_EQUAL(gain.changed, 1);
	/* 25 ms become 5, as the call before it remains. */
	check_longest(&gain, 25000, 5000);
	story_free(&s);
}

static void test_loop_that_slept_is_no_longer_ahead(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, 0, 20000, 1, SLOW);
	story_wake_by(&s, 15000, OUTSIDE, 2, CROSS_THREAD);
	story_poll(&s, 0, 20000, 21000, 2, TICK);
	story_park(&s, 0, 21000, 0);
	story_unpark(&s, 0, 30000, 0);
	story_wake_by(&s, 30000, OUTSIDE, 2, CROSS_THREAD);
	story_wake_by(&s, 30000, OUTSIDE, 3, CROSS_THREAD);
	story_poll(&s, 0, 30000, 38000, 2, TICK);
	story_poll(&s, 0, 38000, 38100, 3, TICK);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	/* The wait for the call of 8 ms stays. */
	CU_ASSERT_EQUAL(gain.changed, 1);
	check_longest(&gain, 8000, 8000);
	story_free(&s);
}

static void test_what_the_kernel_took_goes_with_the_call(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 0, 0, 2, TIMER);
	story_poll(&s, 0, 0, 20000, 1, SLOW);
	story_off_cpu(&s, 0, 20000, 1, 3000, 12000);
	story_poll(&s, 0, 20000, 20100, 2, TICK);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	check_longest(&gain, 20000, 0);
	story_free(&s);
}

static void test_many_short_calls_are_left_out_together(void)
{
	struct d9__gain gain;
	struct story s;

	/* 50 calls of 0.2 ms, and one that waits for all. */
	story_begin(&s);
	for (unsigned round = 0; round < 2; round++) {
		uint64_t us = 100000 * round;

		story_unpark(&s, 0, us, 0);
		story_wake_by(&s, us, 0, 2, FD);
		for (unsigned i = 0; i < 50; i++)
			story_poll(&s, 0, us + 200 * i, us + 200 * i + 200, 1, SLOW);
		story_poll(&s, 0, us + 10000, us + 10010, 2, TICK);
		story_park(&s, 0, us + 10020, 0);
	}
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	CU_ASSERT_EQUAL(gain.changed, 2);
	/* Also those in the first round that had passed before they were noticed. */
	check_longest(&gain, 10000, 0);
	story_free(&s);
}

static void test_wakes_of_other_loops_give_two_bounds(void)
{
	struct d9__gain gain;
	struct story s;
	char text[160];

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_unpark(&s, 1, 0, 0);
	story_poll(&s, 0, 0, 40000, 1, SLOW);
	/* Worker 1 woke it in the middle, and might have done so earlier. */
	story_wake_by(&s, 30000, 1, 2, CROSS_THREAD);
	story_wake_by(&s, 32000, OUTSIDE, 3, CROSS_THREAD);
	story_poll(&s, 0, 40000, 44000, 2, TICK);
	story_poll(&s, 0, 44000, 44100, 3, OTHER);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	check_near(gain.longest.before_ns, 12000);
	/* It runs to 34 where its own wake stays, else to 4, before the other was woken. */
	check_near(gain.longest.after_ns, 2000);
	CU_ASSERT_EQUAL(gain.longest.after_least_ns, 0);
	CU_ASSERT_STRING_EQUAL(d9__gain_text(&gain, text, sizeof(text)),
			       "callbacks would wait 0 ns to 2.00 ms, not 12.0 ms (longest)");
	story_free(&s);
}

static void test_who_was_ready_first_runs_while_the_loop_would_sleep_for_another(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 5000, OUTSIDE, 3, CROSS_THREAD);
	story_wake_by(&s, 20000, 0, 2, TIMER);
	story_wake_by(&s, 26000, OUTSIDE, 4, CROSS_THREAD);
	story_poll(&s, 0, 0, 30000, 1, SLOW);
	story_poll(&s, 0, 30000, 38000, 2, TICK);
	story_poll(&s, 0, 38000, 38100, 3, OTHER);
	story_poll(&s, 0, 38100, 38200, 4, OTHER);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	/* The one from 26 on waits for the timer's, which ends at 28. */
	check_longest(&gain, 33000, 2100);
	story_free(&s);
}

static void test_callback_that_nobody_waited_for_has_no_gain(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, 0, 60000, 1, SLOW);
	story_park(&s, 0, 60000, 0);
	story_unpark(&s, 0, 90000, 0);
	story_wake_by(&s, 89999, 0, 2, TIMER);
	story_poll(&s, 0, 90000, 90100, 2, TICK);
	story_analyse(&s);
	CU_ASSERT_EQUAL(d9__replay_gain(&s.analysis, story_callback(&s, SLOW), false, &gain), 0);
	CU_ASSERT_FALSE(story_finding_of(&s, "long-callback")->has_gain);
	story_free(&s);
}

static void test_look_that_takes_long_is_no_sleep_for_who_was_ready(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 5000, 0, 2, TIMER);
	story_poll(&s, 0, 0, 30000, 1, SLOW);
	story_park(&s, 0, 30000, 0);
	story_unpark(&s, 0, 30060, 0);
	story_poll(&s, 0, 30100, 30200, 2, TICK);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	check_longest(&gain, 25100, 0);
	story_free(&s);
}

static void test_looks_in_between_are_no_sleep_for_one_that_waits_through_all(void)
{
	struct d9__gain gain;
	struct story s;

	/* Found in the first round, and run last: of what is called in each round the loop finds
	 * more whenever it looks. */
	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 0, 0, 2, FD);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t us = 30000 * i;

		story_wake_by(&s, us, 0, 1, FD);
		story_poll(&s, 0, us, us + 29000, 1, SLOW);
		story_park(&s, 0, us + 29000, 0);
		story_unpark(&s, 0, us + 29060, 0);
	}
	story_wake_by(&s, 149060, 0, 3, FD);
	story_poll(&s, 0, 149060, 149100, 2, TICK);
	story_poll(&s, 0, 149100, 149200, 3, OTHER);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	/* The loop's own time between the calls remains. */
	check_longest(&gain, 149060, 4060);
	story_free(&s);
}

static void test_thread_that_is_put_aside_in_a_look_does_not_sleep(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 20000, OUTSIDE, 3, CROSS_THREAD);
	story_poll(&s, 0, 0, 30000, 1, SLOW);
	story_park(&s, 0, 30000, 0);
	story_unpark_waited(&s, 0, 34010, 4000);
	/* A descriptor that it found at that look may have been ready for long. */
	story_wake_by(&s, 34010, 0, 2, FD);
	story_poll(&s, 0, 34010, 34020, 2, TICK);
	story_poll(&s, 0, 34020, 34030, 3, OTHER);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	check_longest(&gain, 14020, 0);
	story_free(&s);
}

static void test_timeout_that_counts_from_before_the_round_ends_earlier(void)
{
	struct d9__gain gain;
	struct story s;

	/* The timer is due at 20: a loop that looked at the clock before the call sleeps until 50.
	 */
	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 20000, 0, 2, TIMER);
	story_wake_by(&s, 35000, OUTSIDE, 3, CROSS_THREAD);
	story_poll(&s, 0, 0, 15000, 1, SLOW);
	story_park(&s, 0, 15000, 0);
	story_unpark(&s, 0, 36000, 0);
	story_poll(&s, 0, 36000, 36100, 2, TICK);
	story_poll(&s, 0, 36100, 36200, 3, OTHER);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	check_longest(&gain, 16000, 1000);
	story_free(&s);
}

static void test_timers_stay_as_late_as_a_loop_with_nothing_to_do_is(void)
{
	struct d9__gain gain;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	/* Twice 2 ms late, twice 4. */
	for (unsigned i = 1; i <= 4; i++) {
		uint64_t us = 20000 * i;

		story_wake_by(&s, us - 2000 * (i % 2 + 1), 0, 1, TIMER);
		story_park(&s, 0, us - 10000, 0);
		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us, us + 100, 1, SLOW);
	}
	story_wake_by(&s, 90000, 0, 2, TIMER);
	story_poll(&s, 0, 82000, 112000, 1, SLOW);
	story_poll(&s, 0, 112000, 112100, 2, TICK);
	story_analyse(&s);
	gain = gain_without(&s, SLOW);
	check_longest(&gain, 22000, 3000);
	story_free(&s);
}

static void test_round_goes_with_its_calls_whatever_the_machine_took_from_it(void)
{
	struct d9__gain gain;
	struct story s;

	/* Ten calls of 2 ms; behind each the thread has no CPU for 4 ms. */
	for (unsigned outside = 0; outside < 2; outside++) {
		story_begin(&s);
		story_unpark(&s, 0, 0, 0);
		story_wake_by(&s, 0, 0, 2, TIMER);
		for (unsigned i = 0; i < 10; i++) {
			story_poll(&s, 0, 6000 * i, 6000 * i + 2000, 1, SLOW);
			/* Or does something else beside its loop. */
			if (outside && i < 9)
				story_outside(&s, 0, 6000 * i + 2000, 6000 * i + 6000);
		}
		story_poll(&s, 0, 56000, 56100, 2, TICK);
		story_analyse(&s);
		gain = gain_without(&s, SLOW);
		check_longest(&gain, 56000, outside ? 36000 : 0);
		story_free(&s);
	}
}

static void test_without_its_sleep_a_call_still_computes(void)
{
	struct d9__gain whole, awake;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_wake_by(&s, 0, 0, 2, TIMER);
	story_poll(&s, 0, 0, 20000, 1, SLOW);
	story_off_cpu_switched(&s, 0, 20000, 1, 15000, 0, 1);
	story_poll(&s, 0, 20000, 20100, 2, TICK);
	story_analyse(&s);
	whole = gain_without(&s, SLOW);
	check_longest(&whole, 20000, 0);
	CU_ASSERT_EQUAL(d9__replay_gain(&s.analysis, story_callback(&s, SLOW), true, &awake), 1);
	check_longest(&awake, 20000, 5000);
	/* The finding says that it need not sleep. */
	CU_ASSERT_EQUAL(story_finding_of(&s, "blocked-callback")->gain.longest.after_ns,
			awake.longest.after_ns);
	story_free(&s);
}

static void test_calls_for_other_tasks_wait_for_each_other(void)
{
	struct d9__gain gain;
	struct story s;
	char text[160];

	/* Ten rounds of 40 clients, with one callback for all, which computes for 0.1 ms. */
	story_begin(&s);
	for (unsigned round = 0; round < 10; round++) {
		uint64_t us = 200000 * round + 1;

		story_unpark(&s, 0, us, 0);
		/* Found a moment before the wait's end is stamped. */
		for (unsigned i = 0; i < 40; i++)
			story_wake_by(&s, us - 1, 0, 1 + i, FD);
		for (unsigned i = 0; i < 40; i++) {
			story_poll(&s, 0, us + 1600 * i, us + 1600 * i + 1600, 1 + i, SLOW);
			story_off_cpu_switched(&s, 0, us + 1600 * i + 1600, 1 + i, 1500, 0, 1);
		}
		story_park(&s, 0, us + 64000, 0);
	}
	story_analyse(&s);
	CU_ASSERT_EQUAL(d9__replay_gain(&s.analysis, story_callback(&s, SLOW), true, &gain), 1);
	CU_ASSERT_STRING_EQUAL(d9__gain_text(&gain, text, sizeof(text)),
			       "callbacks would wait 3.90 ms, not 62.4 ms (p99)");
	CU_ASSERT_TRUE(story_finding_of(&s, "blocked-callback")->has_gain);
	story_free(&s);
}

static void test_calls_for_one_task_wait_for_nobody_else(void)
{
	struct d9__gain gain;
	struct story s;

	/* Due again before its call has ended. */
	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	for (unsigned i = 0; i < 10; i++) {
		story_wake_by(&s, 10000 * i, 0, 1, TIMER);
		story_poll(&s, 0, 30000 * i, 30000 * i + 30000, 1, SLOW);
	}
	story_analyse(&s);
	CU_ASSERT_EQUAL(d9__replay_gain(&s.analysis, story_callback(&s, SLOW), false, &gain), 0);
	story_free(&s);
}

/* ---- a queue of which everything is known ---- */

#define JOBS 3000

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

struct job {
	uint64_t ready_us, own_us;
	bool slow;
};

/* The jobs in their order; told as a story if |s|.  Each one's wait, without the own time of slow
 * ones if |without|. */
static void run_queue(struct story *s, const struct job *jobs, bool without, uint64_t *waits_us)
{
	uint64_t free_us = 0, start_us, own_us;

	for (unsigned i = 0; i < JOBS; i++, free_us = start_us + own_us) {
		own_us = without && jobs[i].slow ? 0 : jobs[i].own_us;
		start_us = jobs[i].ready_us > free_us ? jobs[i].ready_us : free_us;
		waits_us[i] = start_us - jobs[i].ready_us;
		if (!s)
			continue;
		if (start_us > free_us + 20) {
			story_park(s, 0, free_us, 0);
			story_unpark(s, 0, start_us, 0);
		}
		story_wake_by(s, jobs[i].ready_us, OUTSIDE, 100 + i, CROSS_THREAD);
		story_poll(s, 0, start_us, start_us + own_us, 100 + i, jobs[i].slow ? SLOW : TICK);
	}
}

static void test_replay_of_a_queue_is_exact(void)
{
	static struct job jobs[JOBS];
	static uint64_t before_us[JOBS], after_us[JOBS];
	struct d9__histogram after = { .count = 0 };
	uint64_t ready_us = 1000, longest_us = 0;
	uint32_t state = 7;
	struct d9__gain gain;
	struct story s;

	for (unsigned i = 0; i < JOBS; i++) {
		ready_us += next_random(&state) % 2000;
		jobs[i] = (struct job) { ready_us, 100 + next_random(&state) % 1200, i % 37 == 5 };
		if (jobs[i].slow)
			jobs[i].own_us = 10000 + next_random(&state) % 15000;
	}
	story_begin(&s);
	run_queue(&s, jobs, false, before_us);
	story_analyse(&s);
	run_queue(NULL, jobs, true, after_us);
	/* Waits of 0 are none; what does not wait any more counts with 0.  Of the jobs that are
	 * left out each is another task's, so that they wait for each other, but for the
	 * first. */
	for (unsigned i = 0, n_slow = 0; i < JOBS; i++) {
		if (!before_us[i] || (jobs[i].slow && n_slow++ == 0))
			continue;
		CU_ASSERT_EQUAL_FATAL(d9__histogram_add(&after, after_us[i] * 1000), 0);
		if (before_us[i] > longest_us)
			longest_us = before_us[i];
	}
	gain = gain_without(&s, SLOW);
	CU_ASSERT_EQUAL(gain.waits, after.count);
	check_near(gain.p99.after_ns, d9__histogram_quantile(&after, 0.99) / 1000);
	check_near(gain.p999.after_ns, d9__histogram_quantile(&after, 0.999) / 1000);
	check_longest(&gain, longest_us, after.max / 1000);
	/* There was something to gain. */
	CU_ASSERT(2 * after.max < longest_us * 1000);
	d9__histogram_release(&after);
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "timers due behind a long call run at their deadlines",
	  test_timers_due_behind_a_long_call_run_at_their_deadlines },
	{ "what the loop found itself was ready as much earlier",
	  test_what_the_loop_found_itself_was_ready_as_much_earlier },
	{ "loop that slept is no longer ahead", test_loop_that_slept_is_no_longer_ahead },
	{ "what the kernel took goes with the call", test_what_the_kernel_took_goes_with_the_call },
	{ "many short calls are left out together", test_many_short_calls_are_left_out_together },
	{ "wakes of other loops give two bounds", test_wakes_of_other_loops_give_two_bounds },
	{ "who was ready first runs while the loop would sleep for another",
	  test_who_was_ready_first_runs_while_the_loop_would_sleep_for_another },
	{ "callback that nobody waited for has no gain",
	  test_callback_that_nobody_waited_for_has_no_gain },
	{ "look that takes long is no sleep for who was ready",
	  test_look_that_takes_long_is_no_sleep_for_who_was_ready },
	{ "looks in between are no sleep for one that waits through all",
	  test_looks_in_between_are_no_sleep_for_one_that_waits_through_all },
	{ "thread that is put aside in a look does not sleep",
	  test_thread_that_is_put_aside_in_a_look_does_not_sleep },
	{ "timeout that counts from before the round ends earlier",
	  test_timeout_that_counts_from_before_the_round_ends_earlier },
	{ "timers stay as late as a loop with nothing to do is",
	  test_timers_stay_as_late_as_a_loop_with_nothing_to_do_is },
	{ "round goes with its calls, whatever the machine took from it",
	  test_round_goes_with_its_calls_whatever_the_machine_took_from_it },
	{ "without its sleep a call still computes", test_without_its_sleep_a_call_still_computes },
	{ "calls for other tasks wait for each other",
	  test_calls_for_other_tasks_wait_for_each_other },
	{ "calls for one task wait for nobody else", test_calls_for_one_task_wait_for_nobody_else },
	{ "replay of a queue is exact", test_replay_of_a_queue_is_exact },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("replay", tests);
}
