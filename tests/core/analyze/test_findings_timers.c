/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define WORK  "app+0x100 @ app+0x110"
#define TIMER "app+0x200 @ app+0x210"
#define OTHER "app+0x300 @ app+0x310"

#define FD  1
#define DUE 2

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* A call of 9 ms sets a timer of 10 ms by the clock of its begin; the timer runs when it is due. */
static void set_by_old_clock(struct story *s, uint64_t us)
{
	story_unpark(s, 0, us, us);
	story_poll(s, 0, us + 1, us + 101, 3, OTHER);
	story_start(s, 0, us + 102, 1, WORK);
	story_stale_timer(s, 0, us + 9100, 2, 10000, us + 10000);
	story_end(s, 0, us + 9101);
	story_park(s, 0, us + 9102, us + 9102);
	story_unpark(s, 0, us + 10200, us + 9102);
	story_wake(s, us + 10000, 0, 2, DUE);
	story_poll(s, 0, us + 10201, us + 10210, 2, TIMER);
	story_park(s, 0, us + 10211, us + 9103);
}

static void test_timer_that_is_set_by_an_old_clock_and_runs_early_is_told(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 4; i++)
		set_by_old_clock(&s, 20000 * i);
	story_analyse(&s);

	finding = story_finding(&s, 0);
	CU_ASSERT_STRING_EQUAL(finding->check, "stale-clock");
	CU_ASSERT_EQUAL(finding->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(finding->name, "app+0x100");
	CU_ASSERT(has(finding->message, "sets the timer app+0x200 by a clock that has stood still"));
	CU_ASSERT(has(finding->message, "it was due 900 us after it was set, not 10.0 ms"));
	CU_ASSERT(has(finding->message, "(4 of 4 such timers ran early)"));
	CU_ASSERT(has(finding->evidence[0].text, "looked at the clock 9.10 ms before"));
	CU_ASSERT(has(finding->evidence[0].text,
		      "2 calls had run for 9.10 ms, 1 of them app+0x100 (9.00 ms)"));
	CU_ASSERT_EQUAL(finding->evidence[0].at_ns, UINT64_C(5009100000));
	story_free(&s);
}

static void test_what_ran_before_the_call_that_sets_the_timer_is_named(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, 1, 8001, 3, OTHER);
	story_start(&s, 0, 8002, 1, WORK);
	story_stale_timer(&s, 0, 8102, 2, 5000, 5000);
	story_end(&s, 0, 8103);
	story_wake(&s, 5000, 0, 2, DUE);
	story_poll(&s, 0, 8104, 8110, 2, TIMER);
	story_park(&s, 0, 8111, 8111);
	story_analyse(&s);

	CU_ASSERT(has(story_finding_of(&s, "stale-clock")->evidence[0].text,
		      "2 calls had run for 8.10 ms, 1 of them app+0x300 (8.00 ms)"));
	story_free(&s);
}

/* The clock is old because the kernel ran something else: the program cannot help that. */
static void test_timer_that_is_early_by_the_kernels_doing_is_not_told(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_start(&s, 0, 1, 1, WORK);
	story_stale_timer(&s, 0, 9000, 2, 10000, 10000);
	story_end(&s, 0, 9001);
	story_off_cpu(&s, 0, 9001, 1, 0, 8000);
	story_wake(&s, 10000, 0, 2, DUE);
	story_poll(&s, 0, 10001, 10010, 2, TIMER);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stale-clock")->check, "");
	story_free(&s);
}

static void test_timer_that_was_set_again_since_is_not_told(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_start(&s, 0, 1, 1, WORK);
	story_stale_timer(&s, 0, 9000, 2, 10000, 10000);
	story_end(&s, 0, 9001);
	story_wake(&s, 9500, 0, 2, DUE);
	story_poll(&s, 0, 9501, 9510, 2, TIMER);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stale-clock")->check, "");
	story_free(&s);
}

static void test_one_early_run_among_many_in_time_is_information(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 100; i++) {
		story_wake(&s, 1000 * i, 0, 2, DUE);
		story_poll(&s, 0, 1000 * i + 1, 1000 * i + 5, 2, TIMER);
	}
	for (unsigned i = 0; i < 3; i++)
		set_by_old_clock(&s, 200000 + 20000 * i);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_finding_of(&s, "stale-clock")->severity, D9__INFO);
	story_free(&s);
}

/* A clock of the future, no callback that runs: what damage leaves. */
static void test_arming_that_makes_no_sense_is_left_out(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_stale_timer(&s, 0, 100, 2, 10, 50);
	story_start(&s, 0, 200, 1, WORK);
	story_stale_timer(&s, 0, 300, 2, 10, 900);
	story_stale_timer(&s, 0, 301, 2, UINT32_MAX, 305);
	story_end(&s, 0, 302);
	story_wake(&s, 305, 0, 2, DUE);
	story_poll(&s, 0, 306, 310, 2, TIMER);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stale-clock")->check, "");
	story_free(&s);
}

static CU_TestInfo tests[] = {
	{ "timer that is set by an old clock and runs early is told",
	  test_timer_that_is_set_by_an_old_clock_and_runs_early_is_told },
	{ "what ran before the call that sets the timer is named",
	  test_what_ran_before_the_call_that_sets_the_timer_is_named },
	{ "timer that is early by the kernel's doing is not told",
	  test_timer_that_is_early_by_the_kernels_doing_is_not_told },
	{ "timer that was set again since is not told",
	  test_timer_that_was_set_again_since_is_not_told },
	{ "one early run among many in time is information",
	  test_one_early_run_among_many_in_time_is_information },
	{ "arming that makes no sense is left out", test_arming_that_makes_no_sense_is_left_out },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_timers", tests);
}
