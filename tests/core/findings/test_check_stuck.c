/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about callbacks that never returned. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW "app+0x100 @ app+0x110"
#define READ "libevent-2.1.so.7+0x300 @ app+0x310"

#define RESUMPTION 8 /* of a wake: its task goes on with a call that a loop had cut */

#define SECONDS(n) ((n) * 1000000u)

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* Worker 0 begins a call of task 1 at 40 ms, in which it was seen until 40 ms and |us|. */
static void hang(struct story *s, const char *place, const char *inner, const char *where, bool running, uint64_t us)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, 39999, 0);
	story_start(s, 0, 40000, 1, place);
	story_stuck(s, 0, 50000, 1, "read(5)", false);
	story_stuck(s, 0, 60000, 1, where, running);
	for (uint64_t at = SECONDS(1); at < us; at += SECONDS(1))
		story_last_sign(s, 0, 40000 + at, 1, 40000, inner);
	story_last_sign(s, 0, 40000 + us, 1, 40000, inner);
	story_analyse(s);
}

static void test_callback_that_never_returns_is_first_and_critical_with_its_time_and_place(void)
{
	struct story s;

	hang(&s, SLOW, "", "pause()", false, 7410000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "stuck-callback");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x100 stuck for 7.41 s in pause(), on worker 0"));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "stuck for 7.41 s in pause()");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->task, 1);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "running-at-end")->check, "");
	story_free(&s);
}

static void test_open_call_counts_in_all_sums_up_to_the_last_sign_of_life(void)
{
	const struct d9__worker *worker;
	struct story s;

	hang(&s, SLOW, "", "pause()", false, SECONDS(10));
	worker = s.analysis.timeline.items[0];
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->calls, 1);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->durations.sum, SECONDS(10) * UINT64_C(1000));
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->durations.max, SECONDS(10) * UINT64_C(1000));
	CU_ASSERT(d9__worker_busy(worker) > 0.99);
	CU_ASSERT_EQUAL(d9__analysis_end_ns(&s.analysis), UINT64_C(15040000000));
	story_free(&s);
}

static void test_callback_of_the_program_is_named_and_the_librarys_around_it(void)
{
	struct story s;

	hang(&s, READ, SLOW, "pause()", false, SECONDS(3));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT(has(story_finding(&s, 0)->message,
		      "app+0x100 stuck for 3.00 s in pause() (inside libevent-2.1.so.7+0x300)"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
}

/*
 * The library's callback accepts without end: each connection is one call of the program's, and the one that was open at
 * the last sign |returned|.
 */
static void accept_without_end(bool returned)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 39999, 0);
	story_start(&s, 0, 40000, 1, READ);
	for (unsigned i = 0; i < 300; i++) {
		if (i % 100 == 99)
			story_last_sign(&s, 0, 40000 + 10000 * i, 1, 40000, "");
		story_span(&s, 0, 40100 + 10000 * i, 49000 + 10000 * i, 100 + i, SLOW);
	}
	story_enter(&s, 0, SECONDS(3) + 40100, 400, SLOW);
	story_last_sign(&s, 0, SECONDS(3) + 40200, 1, 40000, SLOW);
	if (returned) {
		story_exit(&s, 0, SECONDS(3) + 46000, 400, SLOW);
		story_enter(&s, 0, SECONDS(3) + 46100, 401, SLOW);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "stuck-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "is called again and again, no end for 3.00 s");
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x100 was called again and again by libevent-2.1.so.7+0x300"));
	CU_ASSERT(!has(story_finding(&s, 0)->advice, "condition never"));
	story_free(&s);
}

static void test_callback_that_is_called_without_end_is_not_the_one_that_does_not_return(void)
{
	accept_without_end(false);
	accept_without_end(true);
}

static void test_lock_that_nobody_gives_back_and_loop_without_end_are_told_as_such(void)
{
	struct story s;

	hang(&s, SLOW, "", "futex: a lock", false, SECONDS(3));
	CU_ASSERT(has(story_finding(&s, 0)->message, "stuck for 3.00 s waiting for a lock"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "deadlock"));
	story_free(&s);
	hang(&s, SLOW, "", "", true, SECONDS(3));
	CU_ASSERT(has(story_finding(&s, 0)->message, "stuck for 3.00 s computing"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "condition never"));
	story_free(&s);
}

static void test_call_that_had_just_begun_is_not_accused(void)
{
	struct story s;

	hang(&s, SLOW, "", "", true, 900);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stuck-callback")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "running-at-end")->check, "");
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->durations.sum, 20000 * UINT64_C(1000));
	story_free(&s);
}

static void test_call_that_the_end_of_the_trace_cut_is_no_finding_however_long_the_kernel_kept_it_waiting(void)
{
	struct story s;

	hang(&s, SLOW, "", "", true, 300000);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->durations.sum, 300000 * UINT64_C(1000));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "");
	story_free(&s);
}

/*
 * Worker 0 begins a call of task 1 at 40 ms, which is found at |where| at each look and seen |us|
 * later for the last time; a sample finds it on the CPU each |sample_us|, 0: samples are not
 * recorded.
 */
static void cut_call(struct story *s, const char *where, uint64_t us, uint64_t sample_us)
{
	story_begin(s);
	story_say(s, "recorder.mode", "continuous");
	if (sample_us)
		story_say(s, "cpu.sample_hz", "100");
	story_cpu_usage(s, 0, 1000);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, 39999, 20);
	story_start(s, 0, 40000, 1, SLOW);
	for (uint64_t at = 10000; at <= us; at += 10000) {
		if (sample_us && at % sample_us == 0)
			story_sample(s, 0, 40000 + at - 10);
		if (at % 40000 == 0)
			story_stuck(s, 0, 40000 + at, 1, where, !where[0]);
	}
	story_last_sign(s, 0, 40000 + us, 1, 40000, "");
	story_cpu_usage(s, 40000 + us, 1000 + (sample_us ? us : 0));
	story_analyse(s);
}

static void
test_call_that_the_end_of_the_trace_cut_is_told_by_what_looks_and_samples_saw_of_it(void)
{
	static const struct {
		const char *where, *check, *brief, *message;
		uint64_t us, sample_us;
	} calls[] = {
		{ "nanosleep()", "blocked-callback",
		  "open at the end, in nanosleep() for 300 ms at least",
		  "app+0x100 waited 300 ms in nanosleep() while worker 0 could run nothing else",
		  300000, 0 },
		{ "futex: a lock", "blocked-callback",
		  "open at the end, waiting for a lock for 930 ms at least",
		  "app+0x100 waited 930 ms waiting for a lock", 930000, 0 },
		{ "", "long-callback", "open at the end, computing for 300 ms at least",
		  "app+0x100 blocked worker 0 for 300 ms", 300000, 10000 },
	};

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct story s;

		cut_call(&s, calls[i].where, calls[i].us, calls[i].sample_us);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, calls[i].check);
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, calls[i].brief);
		CU_ASSERT(has(story_finding(&s, 0)->message, calls[i].message));
		CU_ASSERT(has(story_finding(&s, 0)->message, "That call had not ended after"));
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "adds-up")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "elsewhere")->check, "");
		story_free(&s);
	}
}

static void
test_short_call_and_one_that_the_machine_kept_from_the_cpu_are_not_told_where_the_trace_ends(void)
{
	static const struct {
		const char *where;
		uint64_t us, sample_us;
	} calls[] = {
		{ "nanosleep()", 5000, 0 },
		{ "nanosleep()", 80000, 0 },
		{ "", 80000, 10000 },
		{ "", 600000, 100000 }, /* six samples in 600 ms: 60 ms on the CPU */
	};

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct story s;

		cut_call(&s, calls[i].where, calls[i].us, calls[i].sample_us);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stuck-callback")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "running-at-end")->check, "");
		story_free(&s);
	}
}

/* The program calls exit() in the callback, and a handler of that sleeps for longer than the
 * recorder looks. */
static void
test_call_goes_on_until_the_latest_wait_in_it_ended_and_no_wait_is_longer_than_its_call(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "segment.complete", "true");
	story_say(&s, "segment.sealed_clean", "true");
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 1999999, 0);
	story_start(&s, 0, SECONDS(2), 1, SLOW);
	story_waited(&s, 0, SECONDS(2) + 100, 1, "usleep", 1200000);
	story_stuck(&s, 0, SECONDS(2) + 535000, 1, "nanosleep()", false);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x100 waited 1.20 s in usleep()"));
	CU_ASSERT(!has(story_finding(&s, 0)->message, "while the program started"));
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text,
		      "slept for 1.20 s of 1.20 s at least, and had not ended"));
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->durations.sum, UINT64_C(1200100000));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stuck-callback")->check, "");
	story_free(&s);
}

/* Worker 0's task 1 runs a loop inside from 41 ms on, and is seen so until 3.04 s; then it goes on, or nobody knows. */
static void run_a_loop(struct story *s, bool returns)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, 39999, 0);
	story_poll(s, 0, 40000, 41000, 1, SLOW);
	story_park(s, 0, 41100, 0);
	for (uint64_t at = SECONDS(1); at <= SECONDS(3); at += SECONDS(1)) {
		story_last_sign(s, 0, 40000 + at, 1, 40000, "");
		story_unpark(s, 0, 50000 + at, 0);
		story_poll(s, 0, 50000 + at, 51000 + at, 2, READ);
		story_park(s, 0, 51100 + at, 0);
	}
	if (returns) {
		story_unpark(s, 0, SECONDS(4), 0);
		story_wake(s, SECONDS(4), 1, 1, RESUMPTION);
		story_poll(s, 0, SECONDS(4), SECONDS(4) + 100, 1, SLOW);
	}
	story_analyse(s);
}

static void test_callback_that_polls_a_loop_without_end_is_told_once(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 39999, 0);
	story_poll(&s, 0, 40000, 70000, 1, SLOW);
	story_poll(&s, 0, 71000, 71010, 2, "app+0x200 @ app+0x210");
	story_wake(&s, 71020, 1, 1, RESUMPTION);
	story_start(&s, 0, 71020, 1, SLOW);
	story_stuck(&s, 0, SECONDS(2), 1, "", true);
	story_last_sign(&s, 0, SECONDS(3), 1, 40000, "");
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->nested.calls, 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "stuck-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "");
	story_free(&s);
}

static void test_loop_in_a_callback_that_never_ends_counts_up_to_the_last_sign_of_life(void)
{
	struct story s;

	run_a_loop(&s, false);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nested-loop");
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x100 runs a loop inside: open for 3.00 s, 1.00 ms its own"));
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->calls, 1);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->nested.calls, 1);
	story_free(&s);
	run_a_loop(&s, true);
	CU_ASSERT(has(story_finding(&s, 0)->message, "open for 3.96 s"));
	story_free(&s);
}

static void test_call_that_ended_is_not_stuck(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 39999, 0);
	story_start(&s, 0, 40000, 1, SLOW);
	story_last_sign(&s, 0, SECONDS(2), 1, 40000, "");
	story_end(&s, 0, SECONDS(2) + 500);
	/* The recorder's clock may be a little ahead of the thread's. */
	story_last_sign(&s, 0, SECONDS(2) + 501, 1, 40000, "");
	story_park(&s, 0, SECONDS(2) + 1000, 0);
	story_unpark(&s, 0, SECONDS(9), 0);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stuck-callback")->check, "");
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->calls, 1);
	story_free(&s);
}

static void test_call_whose_beginning_is_no_longer_in_the_trace_is_told(void)
{
	struct story s;

	story_begin(&s);
	story_queue(&s, SECONDS(100), 0);
	story_spawn(&s, SECONDS(100), 1, SLOW, "io");
	story_last_sign(&s, 0, SECONDS(101), 1, SECONDS(20), "");
	story_last_sign(&s, 0, SECONDS(130), 1, SECONDS(20), "");
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "stuck-callback");
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x100 stuck for 110"));
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->durations.sum, SECONDS(30) * UINT64_C(1000));
	story_free(&s);
}

/* ---- without signs of life ---- */

static void test_callback_that_never_ended_is_named(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 10);
	story_start(&s, 0, 2000, 1, SLOW);
	story_queue(&s, 2000000, 0);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "running-at-end");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	story_free(&s);
}

static void test_callback_that_the_end_of_a_segment_cut_is_no_finding(void)
{
	struct story s;

	for (unsigned i = 0; i < 3; i++) {
		story_begin(&s);
		if (i)
			story_say(&s, "segment.sealed_clean", i == 1 ? "true" : "false");
		story_routine(&s, 0, 0, 10);
		story_start(&s, 0, 2000, 1, SLOW);
		story_queue(&s, 900000, 0);
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "running-at-end")->check, "");
		story_free(&s);
	}
}

static void test_callback_in_which_the_program_ended_by_itself_is_no_warning(void)
{
	struct story s;

	for (unsigned i = 0; i < 2; i++) {
		story_begin(&s);
		story_say(&s, "segment.complete", i ? "true" : "false");
		story_routine(&s, 0, 0, 10);
		story_start(&s, 0, 2000, 1, SLOW);
		story_queue(&s, 2000000, 0);
		story_analyse(&s);
		CU_ASSERT_EQUAL(story_finding_of(&s, "running-at-end")->severity, i ? D9__INFO : D9__WARNING);
		story_free(&s);
	}
}

/* Seen on the CPU, or asleep at |where|, by a process that then ended, by itself or by a signal, in its thread |pid|. */
static void end_inside(struct story *s, const char *pid, const char *clean, const char *where)
{
	story_begin(s);
	story_say(s, "segment.complete", "true");
	story_say(s, "segment.sealed_clean", clean);
	story_say(s, "pid", pid);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, 39999, 0);
	story_start(s, 0, 40000, 1, SLOW);
	story_stuck(s, 0, 60000, 1, where, !where[0]);
	story_last_sign(s, 0, SECONDS(3), 1, 40000, "");
	story_analyse(s);
}

static void test_callback_in_which_the_main_thread_leaves_the_program_is_not_stuck(void)
{
	static const struct {
		const char *pid, *clean, *where, *check;
	} ends[] = {
		{ "100", "true", "", "" },
		{ "100", "true", "read(5)", "stuck-callback" }, /* a handler of a signal called exit() */
		{ "100", "false", "", "stuck-callback" },
		{ "99", "true", "", "stuck-callback" },
	};

	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct story s;

		end_inside(&s, ends[i].pid, ends[i].clean, ends[i].where);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "stuck-callback")->check, ends[i].check);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
		story_free(&s);
	}
}

static const CU_TestInfo tests[] = {
	{ "callback that never returns is first and critical, with its time and place",
	  test_callback_that_never_returns_is_first_and_critical_with_its_time_and_place },
	{ "open call counts in all sums up to the last sign of life",
	  test_open_call_counts_in_all_sums_up_to_the_last_sign_of_life },
	{ "callback of the program is named, and the library's around it",
	  test_callback_of_the_program_is_named_and_the_librarys_around_it },
	{ "callback that is called without end is not the one that does not return",
	  test_callback_that_is_called_without_end_is_not_the_one_that_does_not_return },
	{ "lock that nobody gives back and loop without end are told as such",
	  test_lock_that_nobody_gives_back_and_loop_without_end_are_told_as_such },
	{ "call that had just begun is not accused", test_call_that_had_just_begun_is_not_accused },
	{ "call that the end of the trace cut is no finding, however long the kernel kept it "
	  "waiting",
	  test_call_that_the_end_of_the_trace_cut_is_no_finding_however_long_the_kernel_kept_it_waiting },
	{ "call that the end of the trace cut is told by what looks and samples saw of it",
	  test_call_that_the_end_of_the_trace_cut_is_told_by_what_looks_and_samples_saw_of_it },
	{ "short call, and one that the machine kept from the CPU, are not told where the trace "
	  "ends",
	  test_short_call_and_one_that_the_machine_kept_from_the_cpu_are_not_told_where_the_trace_ends },
	{ "call goes on until the latest wait in it ended, and no wait is longer than its call",
	  test_call_goes_on_until_the_latest_wait_in_it_ended_and_no_wait_is_longer_than_its_call },
	{ "callback that polls a loop without end is told once",
	  test_callback_that_polls_a_loop_without_end_is_told_once },
	{ "loop in a callback that never ends counts up to the last sign of life",
	  test_loop_in_a_callback_that_never_ends_counts_up_to_the_last_sign_of_life },
	{ "call that ended is not stuck", test_call_that_ended_is_not_stuck },
	{ "call whose beginning is no longer in the trace is told",
	  test_call_whose_beginning_is_no_longer_in_the_trace_is_told },
	{ "callback that never ended is named", test_callback_that_never_ended_is_named },
	{ "callback that the end of a segment cut is no finding",
	  test_callback_that_the_end_of_a_segment_cut_is_no_finding },
	{ "callback in which the program ended by itself is no warning",
	  test_callback_in_which_the_program_ended_by_itself_is_no_warning },
	{ "callback in which the main thread leaves the program is not stuck",
	  test_callback_in_which_the_main_thread_leaves_the_program_is_not_stuck },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings about stuck callbacks", tests);
}
