/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about who waited behind whom. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW "app+0x100 @ app+0x110"
#define TICK "app+0x200 @ app+0x210"
#define WEB  "app+0x400 @ app+0x410"

#define FD    1
#define TIMER 2

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* While |victim| waits for 30 ms, |task| and others are called for 300 us each. */
static void starve(struct story *s, unsigned victim_reason, unsigned others)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_spawn_fd(s, 39000, 1, WEB, 7);
	story_wake(s, 40000, 0, 3, victim_reason);
	for (unsigned i = 0; i < 100; i++)
		story_poll(s, 0, 40000 + 300 * i, 40300 + 300 * i, i % 10 < others ? 100 + i : 1, WEB);
	story_poll(s, 0, 70000, 70010, 3, TICK);
	story_analyse(s);
}

/*
 * Rounds of 5 ms, in which three tasks are called and |left| others are ready; each third round one
 * of those has its turn if |turns|.
 */
static void rounds_of_three(struct story *s, unsigned rounds, unsigned left, bool turns)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, 40000, 0);
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned j = 0; j < 3; j++) {
			uint64_t us = 40000 + 5000 * i + 1600 * j;
			bool others = turns && j == 2 && i % 3 == 2;

			s->queue = 3 - j + left;
			story_poll(s, 0, us, us + 1500, others ? 10 + i % left : 1 + j,
				   others ? TICK : WEB);
		}
	s->queue = 1;
	story_park(s, 0, 40000 + 5000 * rounds, 0);
	story_analyse(s);
}

static void test_events_that_are_ready_and_never_called_are_starved(void)
{
	struct story s;

	rounds_of_three(&s, 200, 2, false);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "unfair");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "has the loop to itself for 998 ms, while others are ready");
	story_free(&s);
}

static void test_events_that_have_their_turn_or_wait_for_few_rounds_are_not_starved(void)
{
	static const struct {
		unsigned rounds, left;
		bool turns;
	} fair[] = { { 200, 2, true }, { 200, 0, false }, { 9, 2, false } };

	for (size_t i = 0; i < sizeof(fair) / sizeof(fair[0]); i++) {
		struct story s;

		rounds_of_three(&s, fair[i].rounds, fair[i].left, fair[i].turns);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "unfair")->check, "");
		story_free(&s);
	}
}

static void test_task_that_is_called_again_and_again_while_others_wait_is_unfair(void)
{
	static const unsigned reasons[] = { FD, TIMER };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		starve(&s, reasons[i], 1);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "unfair");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
		CU_ASSERT(has(story_finding(&s, 0)->message,
			      "app+0x400 was called 90 times for descriptor 7, for 27.0 ms, while "
			      "app+0x200 waited 30.0 ms"));
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "");
		CU_ASSERT_EQUAL(s.findings.by_severity[D9__WARNING], 1);
		story_free(&s);
	}
}

/* Two of 90 calls of the task took 30 ms each, of which others had the CPU for nearly all. */
static void test_calls_that_the_kernel_made_long_hide_no_starvation(void)
{
	uint64_t us = 40000;
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, us, 0, 3, FD);
	for (unsigned i = 0; i < 90; i++) {
		uint64_t taken_us = i % 40 == 20 ? 30000 : 0;

		story_poll(&s, 0, us, us + 300 + taken_us, 1, WEB);
		us += 300 + taken_us;
		if (taken_us)
			story_off_cpu(&s, 0, us, 1, 0, taken_us);
	}
	story_poll(&s, 0, us, us + 10, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "unfair");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "has the loop to itself for 27.0 ms, 90 calls in a row");
	story_free(&s);
}

/*
 * In each of 50 times 100 ms one task is called for 8 ms while another waits; beside that the loop
 * works for |other_us|.
 */
static void starve_in_bursts(struct story *s, uint64_t other_us)
{
	story_begin(s);
	for (unsigned i = 0; i < 50; i++) {
		uint64_t us = 100000 * i;

		story_unpark(s, 0, us, 0);
		story_wake(s, us, 0, 3, FD);
		for (unsigned j = 0; j < 80; j++)
			story_poll(s, 0, us + 100 * j, us + 100 * j + 99, 1, WEB);
		story_poll(s, 0, us + 8000, us + 8010, 3, TICK);
		for (unsigned j = 0; j < other_us / 500; j++)
			story_poll(s, 0, us + 9000 + 500 * j, us + 9499 + 500 * j, 5, SLOW);
		story_park(s, 0, us + 9010 + other_us, 0);
	}
	story_analyse(s);
}

static void test_short_bursts_of_one_task_are_unfair_where_the_loop_does_little_else(void)
{
	struct story s;

	starve_in_bursts(&s, 0);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "unfair");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "has the loop to itself for 7.92 ms, 80 calls in a row");
	story_free(&s);

	starve_in_bursts(&s, 20000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "unfair")->check, "");
	story_free(&s);
}

static void test_starvation_is_told_with_its_whole_length(void)
{
	struct story s;

	story_begin(&s);
	story_wake(&s, 40000, 0, 3, FD);
	for (unsigned i = 0; i < 400; i++)
		story_poll(&s, 0, 40000 + 300 * i, 40300 + 300 * i, 1, WEB);
	story_poll(&s, 0, 160000, 160010, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "unfair");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "has the loop to itself for 120 ms, over 256 calls");
	story_free(&s);
}

static void test_task_with_most_of_the_time_is_unfair_among_calls_that_take_none(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, 40000, 0, 3, FD);
	for (unsigned i = 0; i < 50; i++) {
		story_poll(&s, 0, 40000 + 600 * i, 40590 + 600 * i, 1, WEB);
		if (i % 3)
			story_poll(&s, 0, 40591 + 600 * i, 40595 + 600 * i, 100 + i, TICK);
	}
	story_poll(&s, 0, 70000, 70010, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "unfair");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "");
	story_free(&s);
}

static void test_wait_behind_long_calls_is_no_backlog(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, 40000, 0, 3, FD);
	for (unsigned i = 0; i < 10; i++)
		story_poll(&s, 0, 40000 + 20000 * i, 59990 + 20000 * i, 1 + i % 2, SLOW);
	story_poll(&s, 0, 240000, 240010, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "unfair")->check, "");
	CU_ASSERT_EQUAL(story_effect_of(&s, "wake-delay")->severity, D9__INFO);
	story_free(&s);
}

/* Each of them is short on average, for there are many that take next to nothing. */
static void test_long_calls_among_many_short_ones_are_told_and_no_backlog(void)
{
	struct story s;
	uint64_t us = 40000;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, us, 0, 3, FD);
	story_wake(&s, us, 0, 4, TIMER);
	for (unsigned i = 0; i < 6; i++) {
		for (unsigned j = 0; j < 20; j++, us += 10)
			story_poll(&s, 0, us, us + 9, 100 + j, WEB);
		story_poll(&s, 0, us, us + (i % 2 ? 25000 : 40000), 1 + i % 2, i % 2 ? TICK : SLOW);
		us += i % 2 ? 25000 : 40000;
	}
	story_poll(&s, 0, us, us + 10, 3, WEB);
	story_poll(&s, 0, us + 10, us + 20, 4, WEB);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 2);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 1)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 1)->name, "app+0x200");
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "timer-late")->effect, "app+0x400 up to 196 ms late");
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "wake-delay")->effect, "1 wait over 5 ms");
	story_free(&s);
}

static void test_wait_behind_one_long_call_that_the_kernel_stretched_is_no_backlog(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, 40000, 0, 3, FD);
	for (unsigned i = 0; i < 9; i++)
		story_poll(&s, 0, 40000 + 100 * i, 40090 + 100 * i, 100 + i, TICK);
	story_poll(&s, 0, 41000, 130000, 1, SLOW);
	story_off_cpu(&s, 0, 130000, 1, 0, 64000);
	story_poll(&s, 0, 130010, 130020, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "");
	story_free(&s);
}

/* Three calls of |call_us|, and another callback that was ready |before_us| before each of them ended. */
static void waited_behind(struct story *s, uint64_t call_us, uint64_t before_us)
{
	story_begin(s);
	story_routine(s, 0, 0, 1000);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t end = 300000 + 200000 * i;

		story_poll(s, 0, end - call_us, end, 1, SLOW);
		story_wake(s, end - before_us, 0, 3, FD);
		story_poll(s, 0, end + 5, end + 10, 3, TICK);
	}
	story_analyse(s);
}

static void test_short_stall_is_a_warning_only_if_others_waited_for_long(void)
{
	struct story s;

	waited_behind(&s, 8000, 2000);
	CU_ASSERT_EQUAL(story_finding_of(&s, "long-callback")->severity, D9__INFO);
	CU_ASSERT(has(story_finding_of(&s, "long-callback")->message, "waited up to 2.00 ms behind it"));
	story_free(&s);

	waited_behind(&s, 8000, 7000);
	CU_ASSERT_EQUAL(story_finding_of(&s, "long-callback")->severity, D9__WARNING);
	story_free(&s);
}

/* 20,000 calls of 100 us in |seconds|, then one of 42 ms behind which |waiting| others wait. */
static enum d9__severity one_pause(unsigned seconds, unsigned waiting)
{
	enum d9__severity severity;
	uint64_t us = seconds * 1000000ULL + 10000;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 1, 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t at = 1000 + 50ULL * seconds * i;

		story_poll(&s, 0, at, at + 100, 1, WEB);
		story_park(&s, 0, at + 101, 0);
		story_unpark(&s, 0, at + 50 * seconds - 1, 0);
	}
	for (unsigned i = 0; i < waiting; i++)
		story_wake(&s, us, 0, 10 + i, FD);
	story_poll(&s, 0, us, us + 42000, 1, WEB);
	for (unsigned i = 0; i < waiting; i++)
		story_poll(&s, 0, us + 42001 + i, us + 42002 + i, 10 + i, TICK);
	story_park(&s, 0, us + 43000, 0);
	story_analyse(&s);
	severity = story_finding_of(&s, "long-callback")->severity;
	story_free(&s);
	return severity;
}

static void test_one_pause_in_a_minute_is_a_warning_only_if_others_waited_for_it(void)
{
	CU_ASSERT_EQUAL(one_pause(20, 1), D9__WARNING);
	CU_ASSERT_EQUAL(one_pause(60, 1), D9__INFO);
	CU_ASSERT_EQUAL(one_pause(60, 5), D9__WARNING);
}

/* Of 500 waits for a call three are of 8 ms, in each of which others had the CPU for |taken_us|. */
static enum d9__severity few_waits(uint64_t taken_us)
{
	enum d9__severity severity;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	for (unsigned i = 0; i < 500; i++) {
		uint64_t us = 20000 * i, wait_us = i % 200 == 50 ? 8000 : 10;

		story_wake(&s, us, 0, 3, FD);
		story_poll(&s, 0, us + wait_us, us + wait_us + 20, 3, TICK);
		story_park(&s, 0, us + 9000, 9000 * (i + 1));
		story_unpark(&s, 0, us + 19000, 9000 * (i + 1));
		if (taken_us)
			story_put_aside(&s, 0, us + 19000, taken_us);
	}
	story_analyse(&s);
	severity = taken_us ? story_effect_of(&s, "wake-delay")->severity
			    : story_finding_of(&s, "wake-delay")->severity;
	story_free(&s);
	return severity;
}

static void test_short_waits_are_a_warning_unless_the_machine_is_full(void)
{
	CU_ASSERT_EQUAL(few_waits(0), D9__WARNING);
	CU_ASSERT_EQUAL(few_waits(9900), D9__INFO);
}

/* Three calls of 40 ms, for each of which another waits, and |others| of 2 ms. */
static bool has_gain(unsigned others)
{
	uint64_t us = 0;
	struct story s;
	bool has;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	for (unsigned i = 0; i < 3 + others; i++, us += 100000) {
		uint64_t call_us = i % 100 == 10 || (!others) ? 40000 : 2000;

		story_wake(&s, us + 10, 0, 3, FD);
		story_poll(&s, 0, us, us + call_us, 1, SLOW);
		story_poll(&s, 0, us + call_us, us + call_us + 10, 3, TICK);
		story_park(&s, 0, us + call_us + 20, 0);
		story_unpark(&s, 0, us + 100000, 0);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	has = story_finding(&s, 0)->has_gain;
	story_free(&s);
	return has;
}

static void test_gain_is_of_calls_that_have_most_of_their_callbacks_time(void)
{
	CU_ASSERT(has_gain(0));
	CU_ASSERT_FALSE(has_gain(290));
}

static void test_long_wait_is_not_behind_a_call_that_took_a_small_part_of_it(void)
{
	struct story s;

	waited_behind(&s, 8000, 100000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "long-callback");
	CU_ASSERT_FALSE(has(story_finding_of(&s, "long-callback")->message, "behind it"));
	story_free(&s);
}

static void test_calls_of_many_tasks_are_a_backlog_and_not_unfair(void)
{
	struct story s;

	starve(&s, FD, 4);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "backlog");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "unfair")->check, "");
	story_free(&s);
}

/* Twelve runs of |function| that callback TICK handed over, behind others or, not |busy|, for want of a CPU. */
static void queue_up_on(struct story *s, const char *function, bool busy)
{
	story_begin(s);
	story_spawn(s, 0, 1, TICK, "timer");
	story_routine(s, 0, 0, 100);
	for (unsigned i = 0; i < 12; i++) {
		story_poll(s, 0, 200000 + 100000 * i, 200010 + 100000 * i, 1, TICK);
		if (busy)
			story_helper(s, 250500 + 100000 * i, "app+0x950", 2, 10, 49000);
		story_helper(s, 260000 + 100000 * i, function, 1, 50000, 9000);
	}
	story_analyse(s);
}

static void queue_up(struct story *s, const char *function)
{
	queue_up_on(s, function, true);
}

static void test_work_that_waits_while_no_helper_thread_runs_anything_waits_for_the_machine(void)
{
	struct story s;

	queue_up_on(&s, "app+0x900", false);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "helper-queue")->check, "");
	story_free(&s);
}

static void test_work_that_waits_for_a_helper_thread_is_named_by_its_function(void)
{
	struct story s;

	queue_up(&s, "app+0x900");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "helper-queue");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x900");
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "handed over by app+0x200"));
	story_free(&s);
}

/* A call of |call_us| hands over twelve pieces of work, for a pool of one thread. */
static void queue_up_in_a_call(struct story *s, uint64_t call_us)
{
	story_begin(s);
	story_spawn(s, 0, 1, TICK, "timer");
	story_routine(s, 0, 0, 100);
	story_poll(s, 0, 200000, 200000 + call_us, 1, TICK);
	for (unsigned i = 0; i < 12; i++)
		story_helper(s, 201000 + call_us + 9000 * (i + 1), "app+0x900", 1, call_us + 9000 * i, 9000);
	story_analyse(s);
}

static void test_queue_of_a_helper_thread_is_an_effect_of_the_long_call_that_fills_it(void)
{
	struct story s;

	queue_up_in_a_call(&s, 40000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "helper-queue")->effect,
			       "work it hands over waits 89.5 ms for a helper thread");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "helper-queue")->check, "");
	story_free(&s);

	queue_up_in_a_call(&s, 100);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "helper-queue");
	story_free(&s);
}

static void test_long_job_that_fills_the_helper_threads_is_accused_and_not_who_waits(void)
{
	struct story s;

	story_begin(&s);
	story_spawn(&s, 0, 1, TICK, "timer");
	story_spawn(&s, 0, 2, WEB, "timer");
	story_routine(&s, 0, 0, 100);
	story_poll(&s, 0, 200000, 200010, 2, WEB);
	story_poll(&s, 0, 200010, 200020, 1, TICK);
	story_helper(&s, 500015, "app+0x900", 2, 10, 300000);
	for (unsigned i = 0; i < 30; i++)
		story_helper(&s, 500015 + 1000 * (i + 1), "app+0x900", 1, 300000 + 1000 * i, 1000);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "helper-queue");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->evidence[0].text, "the longest run: 300 ms");
	CU_ASSERT(
		has(story_finding(&s, 0)->message, "those of app+0x200, which take 1.00 ms, wait"));
	story_free(&s);
}

static void test_work_that_gio_runs_is_named_by_who_handed_it_over(void)
{
	struct story s;

	queue_up(&s, "libgio-2.0.so.0+0x900");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x200");
	CU_ASSERT(has(story_finding(&s, 0)->message, "Work handed over by app+0x200 waited 50.0 ms"));
	story_free(&s);
}

static void test_backlog_of_more_calls_than_are_remembered_is_told_with_its_sum(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 40000, 0);
	story_wake(&s, 40000, 0, 3, FD);
	for (unsigned i = 0; i < 1000; i++)
		story_poll(&s, 0, 40000 + 100 * i, 40100 + 100 * i, 100 + i, WEB);
	story_poll(&s, 0, 140000, 140010, 3, TICK);
	story_park(&s, 0, 140011, 0);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "backlog");
	CU_ASSERT(has(story_finding(&s, 0)->message, "behind a backlog of 1,000 short calls"));
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "1,000 calls ran meanwhile for 100 ms, 256 of the last"));
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "task that is called again and again while others wait is unfair",
	  test_task_that_is_called_again_and_again_while_others_wait_is_unfair },
	{ "calls that the kernel made long hide no starvation",
	  test_calls_that_the_kernel_made_long_hide_no_starvation },
	{ "short bursts of one task are unfair where the loop does little else",
	  test_short_bursts_of_one_task_are_unfair_where_the_loop_does_little_else },
	{ "starvation is told with its whole length",
	  test_starvation_is_told_with_its_whole_length },
	{ "task with most of the time is unfair among calls that take none",
	  test_task_with_most_of_the_time_is_unfair_among_calls_that_take_none },
	{ "wait behind long calls is no backlog", test_wait_behind_long_calls_is_no_backlog },
	{ "long calls among many short ones are told and no backlog",
	  test_long_calls_among_many_short_ones_are_told_and_no_backlog },
	{ "wait behind one long call that the kernel stretched is no backlog",
	  test_wait_behind_one_long_call_that_the_kernel_stretched_is_no_backlog },
	{ "events that are ready and never called are starved",
	  test_events_that_are_ready_and_never_called_are_starved },
	{ "events that have their turn or wait for few rounds are not starved",
	  test_events_that_have_their_turn_or_wait_for_few_rounds_are_not_starved },
	{ "short stall is a warning only if others waited for long",
	  test_short_stall_is_a_warning_only_if_others_waited_for_long },
	{ "one pause in a minute is a warning only if others waited for it",
	  test_one_pause_in_a_minute_is_a_warning_only_if_others_waited_for_it },
	{ "short waits are a warning unless the machine is full",
	  test_short_waits_are_a_warning_unless_the_machine_is_full },
	{ "gain is of calls that have most of their callback's time",
	  test_gain_is_of_calls_that_have_most_of_their_callbacks_time },
	{ "long wait is not behind a call that took a small part of it",
	  test_long_wait_is_not_behind_a_call_that_took_a_small_part_of_it },
	{ "calls of many tasks are a backlog and not unfair",
	  test_calls_of_many_tasks_are_a_backlog_and_not_unfair },
	{ "work that waits while no helper thread runs anything waits for the machine",
	  test_work_that_waits_while_no_helper_thread_runs_anything_waits_for_the_machine },
	{ "work that waits for a helper thread is named by its function",
	  test_work_that_waits_for_a_helper_thread_is_named_by_its_function },
	{ "queue of a helper thread is an effect of the long call that fills it",
	  test_queue_of_a_helper_thread_is_an_effect_of_the_long_call_that_fills_it },
	{ "long job that fills the helper threads is accused and not who waits",
	  test_long_job_that_fills_the_helper_threads_is_accused_and_not_who_waits },
	{ "work that GIO runs is named by who handed it over",
	  test_work_that_gio_runs_is_named_by_who_handed_it_over },
	{ "backlog of more calls than are remembered is told with its sum",
	  test_backlog_of_more_calls_than_are_remembered_is_told_with_its_sum },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_waits", tests);
}
