/* SPDX-License-Identifier: Apache-2.0 */
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

static void test_slow_handler_is_the_first_finding_and_names_who_waited(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 40000, 5000);
	story_wake(&s, 40000, 0, 1, FD);
	story_wake(&s, 40000, 0, 2, FD);
	story_wake(&s, 60000, 0, 3, TIMER);
	story_poll(&s, 0, 40001, 100001, 1, SLOW);
	story_poll(&s, 0, 100002, 100010, 2, WEB);
	story_poll(&s, 0, 100011, 100020, 3, TICK);
	story_park(&s, 0, 100021, 65000);
	story_analyse(&s);

	const struct d9__finding *first = story_finding(&s, 0);

	CU_ASSERT_STRING_EQUAL(first->check, "long-callback");
	CU_ASSERT_EQUAL(first->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(first->name, "app+0x100");
	CU_ASSERT(has(first->message, "app+0x100 blocked worker 0 for 60.0 ms"));
	CU_ASSERT(has(first->evidence[0].text, "2 waited behind it"));
	CU_ASSERT(has(first->evidence[0].text, "app+0x400 60.0 ms"));
	CU_ASSERT(has(first->evidence[0].text, "app+0x200 40.0 ms (timer)"));
	CU_ASSERT(has(first->evidence[0].text, "on the CPU"));
	CU_ASSERT_EQUAL(first->evidence[0].at_ns, UINT64_C(5040001000));
	story_free(&s);
}

static void test_callback_that_waits_is_told_from_one_that_computes(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 40000, 5000);
	story_poll(&s, 0, 40001, 100001, 1, SLOW);
	story_park(&s, 0, 100021, 5020);
	story_analyse(&s);

	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "off the CPU"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "Make the call in it that waits asynchronous"));
	story_free(&s);
}

/* Return the finding about one call of 60 ms that was off the CPU like that. */
static void off_cpu_story(struct story *s, uint64_t blocked_us, uint64_t run_queue_us)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_wake(s, 40000, 0, 2, FD);
	story_poll(s, 0, 40001, 100001, 1, SLOW);
	story_off_cpu(s, 0, 100001, 1, blocked_us, run_queue_us);
	story_poll(s, 0, 100002, 100010, 2, WEB);
	story_analyse(s);
}

static void test_call_that_slept_is_a_blocked_callback_and_no_long_one(void)
{
	struct story s;

	off_cpu_story(&s, 58000, 1000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT(has(story_finding(&s, 0)->message, "waited 58.0 ms for something while worker 0"));
	CU_ASSERT(has(story_finding(&s, 0)->message, "(1 of 1 calls did for over 1.00 ms; 58.0 ms in all)"));
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "slept for 58.0 ms of 60.0 ms"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
}

static void test_call_that_slept_for_pages_from_the_disk_is_told_so(void)
{
	static const uint64_t faults[] = { 200, 2 };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		story_begin(&s);
		story_routine(&s, 0, 0, 300);
		story_poll(&s, 0, 40001, 100001, 1, SLOW);
		story_disk(&s, 0, 100001, 1, 58000, faults[i]);
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
		/* Two pages do not take 58 ms. */
		CU_ASSERT(has(story_finding(&s, 0)->message, i ? "waited 58.0 ms for something"
							       : "waited 58.0 ms for pages from the disk"));
		CU_ASSERT(has(story_finding(&s, 0)->advice, "mlock()") == !i);
		story_free(&s);
	}
}

/* Calls of |own_us| of which |blocked_us| are slept, in turns, of one callback. */
static void sleep_and_compute(struct story *s, const uint64_t own_us[2], const uint64_t blocked_us[2])
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	for (unsigned i = 0; i < 6; i++) {
		uint64_t us = 40000 + 200000 * i;

		story_poll(s, 0, us, us + own_us[i % 2], 1, SLOW);
		story_off_cpu(s, 0, us + own_us[i % 2], 1, blocked_us[i % 2], 0);
	}
	story_analyse(s);
}

static void test_callback_that_sleeps_and_computes_is_told_once_by_what_it_does_for_longer(void)
{
	static const uint64_t own_us[] = { 60000, 40000 }, sleeps[] = { 50000, 10000 }, computes[] = { 35000, 5000 };
	struct story s;

	sleep_and_compute(&s, own_us, sleeps);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
	sleep_and_compute(&s, own_us, computes);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	story_free(&s);
}

static void test_calls_that_sleep_for_less_than_the_limit_are_not_counted_with_those_that_do_for_more(void)
{
	static const uint64_t own_us[] = { 60000, 1500 }, blocked_us[] = { 50000, 900 };
	struct story s;

	sleep_and_compute(&s, own_us, blocked_us);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "sleeps 50.0 ms inside, 3 of 6 calls");
	story_free(&s);
}

static void test_of_a_call_that_slept_and_one_that_computed_the_longer_is_first(void)
{
	struct story s;

	for (unsigned i = 0; i < 2; i++) {
		story_begin(&s);
		story_routine(&s, 0, 0, 300);
		story_poll(&s, 0, 40001, 100001, 1, SLOW);
		story_off_cpu(&s, 0, 100001, 1, 58000, 1000);
		story_poll(&s, 0, 100002, i ? 155002 : 190002, 2, WEB);
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, i)->check, "long-callback");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, !i)->check, "blocked-callback");
		story_free(&s);
	}
}

static void test_call_that_slept_and_was_preempted_too_is_told_once(void)
{
	struct story s;

	/* It slept for all of the time that was its own. */
	off_cpu_story(&s, 25000, 34000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT(has(story_finding(&s, 0)->message, "waited 25.0 ms for something"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);

	off_cpu_story(&s, 10, 59980);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	story_free(&s);
}

static void test_call_that_the_kernel_put_aside_is_told_as_information(void)
{
	struct story s;

	off_cpu_story(&s, 0, 57000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	CU_ASSERT_EQUAL(story_finding_of(&s, "long-callback")->severity, D9__INFO);
	story_free(&s);
}

static void test_call_that_slept_a_little_is_a_long_one(void)
{
	struct story s;

	off_cpu_story(&s, 9000, 1000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	story_free(&s);
}

static void test_innocent_trace_gives_no_finding(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.libevent.capabilities", "poll=full,park=on,wake=full,task_end=partial");
	story_say(&s, "loop.libevent.degraded", "");
	story_spawn(&s, 0, 9, "app+0x900 @ app+0x910", "io");
	story_routine(&s, 0, 0, 2000);
	story_routine(&s, 1, 50, 2000);
	story_queue(&s, 500, 3);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 0);
	story_free(&s);
}

static void test_event_that_was_ready_before_the_loop_ran_was_not_late(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.libevent.capabilities", "poll=full,park=on,wake=full,task_end=partial");
	story_say(&s, "loop.libevent.degraded", "");
	story_wake(&s, 0, 0, 9, FD);
	story_unpark(&s, 0, 50000, 5000);
	story_poll(&s, 0, 50002, 50007, 9, "app+0x900 @ app+0x910");
	story_park(&s, 0, 50008, 5008);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 0);
	CU_ASSERT_EQUAL(s.analysis.latency.over_5ms, 1);
	story_free(&s);
}

static void test_loop_of_always_long_callbacks_reports_only_the_absolute_limit(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 200; i++)
		story_poll(&s, 0, 10000 * i, 10000 * i + 4000, 1, SLOW);
	story_analyse(&s);

	/* 4 ms is what this loop does: no outlier. */
	CU_ASSERT_EQUAL(s.findings.n, 0);
	story_free(&s);
}

static void test_outlier_below_ten_milliseconds_is_found_by_the_loops_own_distribution(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_poll(&s, 0, 40000, 44000, 1, SLOW);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__INFO);
	story_free(&s);
}

/* One call of 18 ms among 300 short ones, in a process that lost the CPU |switches| times. */
static enum d9__severity severity_of_outlier(uint64_t switches)
{
	enum d9__severity severity;
	struct story s;

	story_begin(&s);
	story_usage(&s, 0, 100);
	for (unsigned i = 0; i < 300; i++)
		story_poll(&s, 0, 10 + 100 * i, 15 + 100 * i, 1, SLOW);
	story_poll(&s, 0, 40000, 58000, 1, SLOW);
	story_usage(&s, 60000, 100 + switches);
	story_analyse(&s);
	severity = story_finding_of(&s, "long-callback")->severity;
	story_free(&s);
	return severity;
}

static void test_call_that_the_kernel_interrupted_is_no_fault_of_its_callback(void)
{
	CU_ASSERT_EQUAL(severity_of_outlier(1), D9__WARNING);
	CU_ASSERT_EQUAL(severity_of_outlier(2), D9__INFO);
}

static void test_waits_behind_a_long_call_are_told_with_the_call(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, 40500, 0, 3, FD);
	story_poll(&s, 0, 40001, 100001, 1, SLOW);
	story_poll(&s, 0, 100002, 100010, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 1);
	CU_ASSERT_EQUAL(story_finding_of(&s, "long-callback")->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->brief, "blocks the loop 60.0 ms, 1 of 1 calls");
	CU_ASSERT_EQUAL(story_finding_of(&s, "long-callback")->task, 1);
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "wake-delay")->effect, "1 wait over 5 ms");
	CU_ASSERT_EQUAL(story_effect_of(&s, "wake-delay")->severity, D9__INFO);
	CU_ASSERT_EQUAL(s.findings.by_severity[D9__CRITICAL], 1);
	CU_ASSERT_EQUAL(s.findings.by_severity[D9__INFO], 0);
	story_free(&s);
}

/*
 * In each of |rounds| rounds 100 descriptors are ready at once, and each has a call of |call_us|;
 * |n| rounds of the last begin with one that takes |long_us|.  How that is told.
 */
static int severity_at_full_load(unsigned rounds, uint64_t call_us, unsigned n, uint64_t long_us)
{
	uint64_t us = 0;
	struct story s;
	int severity;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	us = 40000;
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < 100; i++)
			story_wake(&s, us, 0, 1000 + i, FD);
		for (unsigned i = 0; i < 100; i++) {
			uint64_t taken_us = i == 0 && round + n >= rounds ? long_us : call_us;

			story_poll(&s, 0, us, us + taken_us, 1000 + i, WEB);
			us += taken_us;
		}
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "long-callback");
	severity = story_finding_of(&s, "long-callback")->severity;
	story_free(&s);
	return severity;
}

static void test_long_call_of_a_loop_in_which_all_wait_for_their_turn_is_a_note(void)
{
	/* One of 6 ms, behind which 99 wait: in a short time, and where others wait long, too. */
	CU_ASSERT_EQUAL(severity_at_full_load(10, 30, 1, 6000), D9__WARNING);
	CU_ASSERT_EQUAL(severity_at_full_load(1000, 30, 1, 6000), D9__INFO);
	CU_ASSERT_EQUAL(severity_at_full_load(1000, 30, 1, 12000), D9__WARNING);
	/* Several of 3 ms: others wait for 5 ms and more behind them, or all do. */
	CU_ASSERT_EQUAL(severity_at_full_load(1000, 30, 3, 3000), D9__WARNING);
	CU_ASSERT_EQUAL(severity_at_full_load(100, 70, 3, 3000), D9__INFO);
}

static void test_many_short_calls_in_a_round_are_a_backlog_and_no_long_callback(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	for (unsigned i = 0; i < 100; i++)
		story_wake(&s, 40000, 0, 1000 + i, FD);
	for (unsigned i = 0; i < 100; i++)
		story_poll(&s, 0, 40000 + 300 * i, 40300 + 300 * i, 1000 + i, WEB);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "backlog");
	CU_ASSERT_EQUAL(s.findings.n, 1);
	CU_ASSERT_EQUAL(story_effect_of(&s, "wake-delay")->severity, D9__INFO);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT(has(story_finding(&s, 0)->message, "99 short calls"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
}

static void test_long_call_is_judged_without_what_the_kernel_took(void)
{
	struct story s;
	const struct d9__finding *found;

	off_cpu_story(&s, 0, 20000);
	found = story_finding_of(&s, "long-callback");
	CU_ASSERT_EQUAL(found->severity, D9__WARNING);
	CU_ASSERT(has(found->advice, "it computes."));
	CU_ASSERT(has(found->message, "for 40.0 ms of its own, 60.0 ms in all (20.0 ms preempted)"));
	story_free(&s);
}

static void test_wait_behind_calls_that_the_kernel_interrupted_is_no_backlog(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, 40000, 0, 3, FD);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t us = 40001 + 5001 * i;

		story_poll(&s, 0, us, us + 5000, 100 + i, SLOW);
		story_off_cpu(&s, 0, us + 5000, 100 + i, 0, 4900);
	}
	story_poll(&s, 0, 90100, 90110, 3, WEB);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "");
	CU_ASSERT(story_finding_of(&s, "wake-delay")->severity >= D9__INFO);
	CU_ASSERT_EQUAL(s.analysis.latency.behind_kernel, 1);
	story_free(&s);
}

static void test_late_timer_names_what_ran_before_it(void)
{
	struct story s;
	const struct d9__finding *late;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, 42000, 0, 3, TIMER);
	story_poll(&s, 0, 40001, 65001, 1, SLOW);
	story_poll(&s, 0, 65002, 65010, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_EQUAL(s.findings.n, 1);
	late = story_effect_of(&s, "timer-late");
	CU_ASSERT_STRING_EQUAL(late->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(late->effect, "app+0x200 up to 23.0 ms late");
	CU_ASSERT(has(late->message, "app+0x200 ran 23.0 ms late because app+0x100 ran for 23.0 ms"));
	/* One cause, one warning. */
	CU_ASSERT_EQUAL(late->severity, D9__INFO);
	story_free(&s);
}

static void test_wait_while_nothing_ran_blames_no_callback(void)
{
	struct story s;
	const struct d9__finding *delay;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_wake(&s, 40000, 0, 2, FD);
	story_poll(&s, 0, 70000, 70010, 2, WEB);
	story_analyse(&s);

	delay = story_finding_of(&s, "wake-delay");
	CU_ASSERT_STRING_EQUAL(delay->name, "app+0x400");
	CU_ASSERT(has(delay->evidence[0].text, "1 while their worker ran little or nothing"));
	CU_ASSERT(has(delay->evidence[1].text, "no callback ran on its worker meanwhile"));
	story_free(&s);
}

/* One long wait among |n| calls, while the worker ran nothing. */
static enum d9__severity severity_of_wait(unsigned n)
{
	enum d9__severity severity;
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, n);
	story_wake(&s, 400000, 0, 2, FD);
	story_poll(&s, 0, 460000, 460010, 2, WEB);
	story_analyse(&s);
	severity = story_finding_of(&s, "wake-delay")->severity;
	story_free(&s);
	return severity;
}

static void test_rare_wait_while_nothing_ran_does_not_stand_before_a_cause(void)
{
	CU_ASSERT_EQUAL(severity_of_wait(300), D9__CRITICAL);
	CU_ASSERT_EQUAL(severity_of_wait(2000), D9__WARNING);
}

static void test_deep_global_queue_is_found(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 100);
	story_queue(&s, 500, 255);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "queue-depth");
	CU_ASSERT(has(story_finding(&s, 0)->message, "At least 255"));
	story_free(&s);
}

static void test_deep_queue_behind_a_long_call_is_its_effect(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 100);
	story_start(&s, 0, 20000, 1, SLOW);
	story_queue(&s, 50000, 200);
	story_end(&s, 0, 80000);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "queue-depth")->effect, "200 pieces of work waited");
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "slow handler is the first finding and names who waited",
	  test_slow_handler_is_the_first_finding_and_names_who_waited },
	{ "callback that waits is told from one that computes",
	  test_callback_that_waits_is_told_from_one_that_computes },
	{ "call that slept is a blocked callback and no long one",
	  test_call_that_slept_is_a_blocked_callback_and_no_long_one },
	{ "call that slept for pages from the disk is told so", test_call_that_slept_for_pages_from_the_disk_is_told_so },
	{ "callback that sleeps and computes is told once, by what it does for longer",
	  test_callback_that_sleeps_and_computes_is_told_once_by_what_it_does_for_longer },
	{ "calls that sleep for less than the limit are not counted with those that do for more",
	  test_calls_that_sleep_for_less_than_the_limit_are_not_counted_with_those_that_do_for_more },
	{ "call that the kernel put aside is told as information",
	  test_call_that_the_kernel_put_aside_is_told_as_information },
	{ "of a call that slept and one that computed the longer is first",
	  test_of_a_call_that_slept_and_one_that_computed_the_longer_is_first },
	{ "call that slept and was preempted too is told once",
	  test_call_that_slept_and_was_preempted_too_is_told_once },
	{ "call that slept a little is a long one", test_call_that_slept_a_little_is_a_long_one },
	{ "innocent trace gives no finding", test_innocent_trace_gives_no_finding },
	{ "event that was ready before the loop ran was not late",
	  test_event_that_was_ready_before_the_loop_ran_was_not_late },
	{ "loop of always long callbacks reports only the absolute limit",
	  test_loop_of_always_long_callbacks_reports_only_the_absolute_limit },
	{ "outlier below ten milliseconds is found by the loop's own distribution",
	  test_outlier_below_ten_milliseconds_is_found_by_the_loops_own_distribution },
	{ "call that the kernel interrupted is no fault of its callback",
	  test_call_that_the_kernel_interrupted_is_no_fault_of_its_callback },
	{ "waits behind a long call are told with the call",
	  test_waits_behind_a_long_call_are_told_with_the_call },
	{ "long call of a loop in which all wait for their turn is a note",
	  test_long_call_of_a_loop_in_which_all_wait_for_their_turn_is_a_note },
	{ "many short calls in a round are a backlog and no long callback",
	  test_many_short_calls_in_a_round_are_a_backlog_and_no_long_callback },
	{ "long call is judged without what the kernel took",
	  test_long_call_is_judged_without_what_the_kernel_took },
	{ "wait behind calls that the kernel interrupted is no backlog",
	  test_wait_behind_calls_that_the_kernel_interrupted_is_no_backlog },
	{ "late timer names what ran before it", test_late_timer_names_what_ran_before_it },
	{ "wait while nothing ran blames no callback",
	  test_wait_while_nothing_ran_blames_no_callback },
	{ "rare wait while nothing ran does not stand before a cause",
	  test_rare_wait_while_nothing_ran_does_not_stand_before_a_cause },
	{ "deep global queue is found", test_deep_global_queue_is_found },
	{ "deep queue behind a long call is its effect", test_deep_queue_behind_a_long_call_is_its_effect },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings", tests);
}
