/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about callbacks that run a loop inside. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define ASK   "app+0x100 @ app+0x110"
#define TICK  "app+0x200 @ app+0x210"
#define OTHER "app+0x300 @ app+0x310"

#define MS(n) ((n)*UINT64_C(1000))

#define RESUMPTION 8

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* A call of |us| in an awake period of its own. */
static void call(struct story *s, uint64_t at_us, uint64_t us, unsigned task, const char *place)
{
	story_unpark(s, 0, at_us, 0);
	story_poll(s, 0, at_us + 1, at_us + 1 + us, task, place);
	story_park(s, 0, at_us + us + 2, 0);
}

/* The wait of the loop ends; for the last |taken_us| of it the thread was ready and had no CPU. */
static void wake_up(struct story *s, uint64_t us, uint64_t taken_us)
{
	if (taken_us)
		story_unpark_waited(s, 0, us, taken_us);
	else
		story_unpark(s, 0, us, 0);
}

/*
 * ASK runs a loop for 300 ms, in which TICK runs once, if |ticks|; meanwhile OTHER is ready, if
 * |waits|.  If |busy|, others have the CPU for most of the time.
 */
static void nested_on_a_machine(struct story *s, int ticks, int waits, bool busy)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, MS(40), 0);
	story_poll(s, 0, MS(40) + 1, MS(42), 1, ASK);
	story_park(s, 0, MS(42) + 1, 0);
	if (waits)
		story_wake(s, MS(60), 0, 3, D9__WAKE_FD);
	wake_up(s, MS(200), busy ? MS(155) : 0);
	if (ticks)
		story_poll(s, 0, MS(200) + 1, MS(201), 2, TICK);
	story_park(s, 0, MS(201) + 1, 0);
	wake_up(s, MS(340), busy ? MS(136) : 0);
	story_poll(s, 0, MS(340) + 1, MS(340) + 5, 2, TICK);
	story_wake(s, MS(342), 1, 1, RESUMPTION);
	story_poll(s, 0, MS(342), MS(343), 1, ASK);
	if (waits)
		story_poll(s, 0, MS(343) + 1, MS(343) + 10, 3, OTHER);
	story_park(s, 0, MS(344), 0);
	story_analyse(s);
}

static void nested(struct story *s, int ticks, int waits)
{
	nested_on_a_machine(s, ticks, waits, false);
}

/* A synchronous call of GIO's: a wait that is none of the loop's, and then the inner loop for the
 * answer alone. */
static void test_synchronous_call_that_ends_in_a_loop_is_a_wait_and_no_inner_loop(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, MS(40), 0);
	story_start(&s, 0, MS(40) + 1, 1, ASK);
	story_waited(&s, 0, MS(91), 1, "poll", MS(50));
	story_end(&s, 0, MS(91) + 1);
	story_park(&s, 0, MS(91) + 1, 0);
	story_unpark(&s, 0, MS(91) + 10, 0);
	story_poll(&s, 0, MS(91) + 11, MS(91) + 20, 2, TICK);
	story_wake(&s, MS(91) + 21, 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(91) + 21, MS(91) + 30, 1, ASK);
	story_off_cpu(&s, 0, MS(91) + 30, 1, 0, 0);
	story_park(&s, 0, MS(92), 0);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "blocks 50.0 ms in poll(), 1 of 1 calls");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
}

static void test_callback_that_runs_a_loop_is_named_with_its_open_and_its_own_time(void)
{
	for (int ticks = 0; ticks < 2; ticks++) {
		struct story s;

		nested(&s, ticks, 0);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nested-loop");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
		CU_ASSERT(has(story_finding(&s, 0)->message,
			      "runs a loop inside: open for 303 ms, 3.00 ms its own"));
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
		story_free(&s);
	}
}

static void test_time_that_the_machine_took_makes_a_loop_inside_no_worse(void)
{
	for (int busy = 0; busy < 2; busy++) {
		struct story s;

		nested_on_a_machine(&s, 1, 1, busy);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "nested-loop");
		CU_ASSERT_EQUAL(story_finding_of(&s, "nested-loop")->severity,
				busy ? D9__WARNING : D9__CRITICAL);
		/* Nor the wait behind it. */
		CU_ASSERT_EQUAL(s.analysis.latency.woken_over_5ms, 1);
		CU_ASSERT_EQUAL(s.analysis.latency.woken_over_50ms, !busy);
		story_free(&s);
	}
}

/*
 * ASK runs a loop ten times, which ends after |usual_us|, and once after |long_us|, when others
 * have the CPU if |busy|: the wait was measured elsewhere.
 */
static enum d9__severity of_one_long_loop(uint64_t usual_us, uint64_t long_us, bool waits,
					  bool busy)
{
	enum d9__severity severity;
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t us = MS(100) * (i + 1), took_us = i == 5 ? long_us : usual_us;

		wake_up(&s, us, busy && i == 2 ? MS(40) : 0);
		if (waits)
			story_wake(&s, us, 0, 3, D9__WAKE_FD);
		story_poll(&s, 0, us + 1, us + 51, 1, ASK);
		story_park(&s, 0, us + 52, 0);
		story_unpark(&s, 0, us + took_us, 0);
		story_poll(&s, 0, us + took_us + 1, us + took_us + 3, 2, TICK);
		story_wake(&s, us + took_us + 4, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + took_us + 4, us + took_us + 10, 1, ASK);
		if (waits)
			story_poll(&s, 0, us + took_us + 11, us + took_us + 20, 3, OTHER);
		story_park(&s, 0, us + took_us + 21, 0);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "nested-loop");
	severity = story_finding_of(&s, "nested-loop")->severity;
	story_free(&s);
	return severity;
}

static void
test_one_long_loop_among_short_ones_is_no_warning_if_threads_had_no_cpu_for_as_long(void)
{
	CU_ASSERT_EQUAL(of_one_long_loop(200, MS(16), true, false), D9__WARNING);
	CU_ASSERT_EQUAL(of_one_long_loop(200, MS(16), true, true), D9__INFO);
	CU_ASSERT_EQUAL(of_one_long_loop(MS(6), MS(28), true, false), D9__WARNING);
	CU_ASSERT_EQUAL(of_one_long_loop(MS(6), MS(28), true, true), D9__INFO);
	/* No other waits: it may have served them. */
	CU_ASSERT_EQUAL(of_one_long_loop(MS(6), MS(28), false, false), D9__INFO);
	/* One that is long without it is told, though no other waits. */
	CU_ASSERT_EQUAL(of_one_long_loop(MS(45), MS(45), false, false), D9__WARNING);
	CU_ASSERT_EQUAL(of_one_long_loop(MS(45), MS(68), false, true), D9__WARNING);
	/* Its calls of the usual 30 ms make others wait, too. */
	CU_ASSERT_EQUAL(of_one_long_loop(MS(30), MS(53), true, true), D9__WARNING);
	/* The machine kept the thread waiting for less than the call took longer. */
	CU_ASSERT_EQUAL(of_one_long_loop(200, MS(95), true, true), D9__CRITICAL);
}

/* Its own time is that of the call which was open longest, though its other calls were longer in
 * themselves. */
static void test_callback_that_runs_a_loop_once_keeps_the_own_time_of_that_call(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, MS(1), MS(3), 1, ASK);
	story_poll(&s, 0, MS(200), MS(201), 2, TICK);
	story_wake(&s, MS(301), 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(301), MS(302), 1, ASK);
	for (unsigned i = 0; i < 10; i++)
		call(&s, MS(400) + i * MS(10), MS(5), 1, ASK);
	story_analyse(&s);

	CU_ASSERT(has(story_finding_of(&s, "nested-loop")->message,
		      "runs a loop inside: open for 301 ms, 3.00 ms its own"));
	story_free(&s);
}

static void test_what_stood_still_behind_an_inner_loop_is_its_effect(void)
{
	struct story s;

	nested(&s, 1, 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nested-loop");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "wake-delay")->check, "wake-delay");
	story_free(&s);
}

/* A loop that is asked without being let wait: its adapter tells the calls, here once each 20 ms.
 */
static void test_loop_that_is_polled_inside_a_callback_is_told_and_its_time_is_no_computation(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, MS(40), 0);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t us = MS(40) + MS(20) * i;

		if (i)
			story_wake(&s, us + 1, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + 1, us + MS(20) - 10, 1, ASK);
		story_poll(&s, 0, us + MS(20) - 10, us + MS(20) - 5, 2, TICK);
	}
	story_wake(&s, MS(120), 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(120), MS(121), 1, ASK);
	story_park(&s, 0, MS(121), MS(80));
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 1);
	finding = story_finding(&s, 0);
	CU_ASSERT_STRING_EQUAL(finding->check, "nested-loop");
	CU_ASSERT_STRING_EQUAL(finding->brief,
			       "polls a loop inside without waiting: open for 81.0 ms");
	CU_ASSERT(has(finding->advice,
		      "EVLOOP_NONBLOCK, EVRUN_NOWAIT, g_main_context_iteration(FALSE)"));
	story_free(&s);
}

/* 30 ms each, five times a second: no call of this loop is unusual, and none waits. */
static void test_loop_that_is_polled_often_is_a_warning_for_the_cpu_that_it_keeps_busy(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	for (unsigned n = 0; n < 10; n++) {
		uint64_t us = MS(40) + MS(200) * n;

		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us + 1, us + MS(15), 1, ASK);
		story_poll(&s, 0, us + MS(15), us + MS(15) + 5, 2, TICK);
		story_wake(&s, us + MS(15) + 6, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + MS(15) + 6, us + MS(30), 1, ASK);
		story_park(&s, 0, us + MS(30) + 1, MS(30));
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nested-loop");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	story_free(&s);
}

static void test_inner_loop_that_got_no_cpu_when_it_woke_is_no_long_one(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t us = MS(40) + MS(50) * i;

		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us + 1, us + 100, 1, ASK);
		story_park(&s, 0, us + 101, 0);
		story_unpark_waited(&s, 0, us + MS(15), MS(14));
		story_poll(&s, 0, us + MS(15) + 1, us + MS(15) + 5, 2, TICK);
		story_wake(&s, us + MS(15) + 6, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + MS(15) + 6, us + MS(15) + 10, 1, ASK);
		story_park(&s, 0, us + MS(15) + 11, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "");
	story_free(&s);
}

static void test_short_inner_loop_is_not_told(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, MS(40), 0);
	story_poll(&s, 0, MS(40) + 1, MS(40) + 20, 1, ASK);
	story_park(&s, 0, MS(40) + 21, 0);
	story_unpark(&s, 0, MS(41), 0);
	story_wake(&s, MS(41) + 2, 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(41) + 2, MS(41) + 10, 1, ASK);
	story_park(&s, 0, MS(41) + 11, 0);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "");
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "callback that runs a loop is named with its open and its own time",
	  test_callback_that_runs_a_loop_is_named_with_its_open_and_its_own_time },
	{ "callback that runs a loop once keeps the own time of that call",
	  test_callback_that_runs_a_loop_once_keeps_the_own_time_of_that_call },
	{ "synchronous call that ends in a loop is a wait and no inner loop",
	  test_synchronous_call_that_ends_in_a_loop_is_a_wait_and_no_inner_loop },
	{ "time that the machine took makes a loop inside no worse",
	  test_time_that_the_machine_took_makes_a_loop_inside_no_worse },
	{ "one long loop inside among short ones is no warning if threads had no CPU for as long",
	  test_one_long_loop_among_short_ones_is_no_warning_if_threads_had_no_cpu_for_as_long },
	{ "what stood still behind an inner loop is its effect",
	  test_what_stood_still_behind_an_inner_loop_is_its_effect },
	{ "loop that is polled inside a callback is told and its time is no computation",
	  test_loop_that_is_polled_inside_a_callback_is_told_and_its_time_is_no_computation },
	{ "loop that is polled often is a warning for the CPU that it keeps busy",
	  test_loop_that_is_polled_often_is_a_warning_for_the_cpu_that_it_keeps_busy },
	{ "inner loop that got no cpu when it woke is no long one",
	  test_inner_loop_that_got_no_cpu_when_it_woke_is_no_long_one },
	{ "short inner loop is not told", test_short_inner_loop_is_not_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_nested", tests);
}
