/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about time outside of callbacks: in the library, in waits that are cut, while the
 * process stood still. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "findings/owners.h"
#include "story.h"
#include "support/d9_test.h"

#define TICK  "app+0x200 @ app+0x210"
#define FLUSH "app+0x300 @ app+0x310"

#define MS(n)	   ((n)*UINT64_C(1000))
#define SECONDS(n) ((n)*UINT64_C(1000000))

static int has(const char *text, const char *part)
{
	return text && strstr(text, part) != NULL;
}

/* A loop that waits when the trace ends, in which |samples| found its thread at work, one in 10 ms.
 */
static void wait_at_work(struct story *s, unsigned samples)
{
	static const uint64_t stack[] = { 0x10, 0x20 };

	story_begin(s);
	story_say(s, "cpu.sample_hz", "100");
	story_unpark(s, 0, 0, 0);
	story_poll(s, 0, 0, 50, 1, TICK);
	story_park(s, 0, 100, 0);
	for (unsigned i = 0; i < samples; i++)
		story_sample_in(s, 0, MS(10) * (i + 1), 2, stack);
	story_queue(s, SECONDS(3), 0);
	story_analyse(s);
}

static void test_wait_that_computes_until_the_trace_ends_is_the_library_s(void)
{
	struct story s;
	const struct d9__finding *finding;

	wait_at_work(&s, 200);
	finding = story_finding_of(&s, "inside-library");
	CU_ASSERT_STRING_EQUAL(finding->check, "inside-library");
	CU_ASSERT_EQUAL(finding->severity, D9__CRITICAL);
	CU_ASSERT(has(finding->message, "computed for 2.00 s in its loop library"));
	CU_ASSERT(has(finding->message, "app+0x200 was called last"));
	story_free(&s);
}

static void test_wait_in_which_few_samples_fell_is_a_wait(void)
{
	struct story s;

	wait_at_work(&s, 9);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "inside-library")->check, "");
	story_free(&s);
}

/* |to_us| is when the process went on. */
static void stop(struct story *s, bool in_callback, uint64_t to_us)
{
	story_begin(s);
	story_unpark(s, 0, 0, 0);
	story_poll(s, 0, 0, in_callback ? to_us + 50 : 50, 1, TICK);
	if (!in_callback)
		story_park(s, 0, 100, 0);
	story_stop(s, 1000, to_us);
	if (!in_callback)
		story_unpark(s, 0, to_us + 10, 0);
	story_park(s, 0, to_us + 100, 0);
	story_unpark(s, 0, to_us + SECONDS(1), 0);
	story_analyse(s);
}

static void test_stop_is_told_and_in_no_account(void)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct d9__finding *finding;
		struct story s;

		stop(&s, i == 1, SECONDS(3) + 1000);
		finding = story_finding_of(&s, "stopped");
		CU_ASSERT_STRING_EQUAL(finding->check, "stopped");
		CU_ASSERT_EQUAL(finding->severity, D9__CRITICAL);
		CU_ASSERT(has(finding->message, "stood still for 3.00 s"));
		CU_ASSERT_EQUAL(s.analysis.timeline.items[0]->loop_time.stopped_ns,
				UINT64_C(3000000000));
		CU_ASSERT(s.findings.owners[0].awake_ns < UINT64_C(2000000));
		story_free(&s);
	}
}

/* A call of 2 s, of which the process stood still nearly all, and then one that computes for 40 ms.
 */
static void test_call_that_a_stop_made_long_hides_none_that_was_so_by_itself(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, 0, SECONDS(2), 1, TICK);
	story_off_cpu(&s, 0, SECONDS(2), 1, SECONDS(2) - 1000, 0);
	story_stop(&s, 500, SECONDS(2) - 500);
	story_park(&s, 0, SECONDS(2) + 100, 1000);
	story_unpark(&s, 0, SECONDS(3), 1000);
	story_poll(&s, 0, SECONDS(3), SECONDS(3) + MS(40), 1, TICK);
	story_park(&s, 0, SECONDS(3) + MS(40), MS(41));
	story_unpark(&s, 0, SECONDS(4), MS(41));
	story_analyse(&s);

	finding = story_finding_of(&s, "long-callback");
	CU_ASSERT_STRING_EQUAL(finding->check, "long-callback");
	CU_ASSERT_EQUAL(finding->severity, D9__WARNING);
	CU_ASSERT(has(finding->brief, "blocks the loop 40.0 ms"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	story_free(&s);
}

/*
 * Three seconds of rounds of 10 ms in which a watcher of |kind| takes |us|, or only in one of ten
 * ten times as much, and reads |reads| bytes in all; another callback takes 20 us of each.
 */
static void go_round(struct story *s, const char *kind, uint64_t us, bool sometimes, uint64_t reads)
{
	story_begin(s);
	story_say(s, "source.io", "on");
	story_spawn(s, 0, 1, FLUSH, kind);
	story_spawn(s, 0, 2, TICK, "io");
	for (unsigned i = 0; i < 300; i++) {
		uint64_t at_us = MS(10) * i, took_us = us;

		if (sometimes)
			took_us = i % 10 ? 2 : 10 * us;
		story_unpark(s, 0, at_us, 0);
		story_poll(s, 0, at_us + 1, at_us + 21, 2, TICK);
		story_poll(s, 0, at_us + 30, at_us + 30 + took_us, 1, FLUSH);
		story_park(s, 0, at_us + 31 + took_us, 0);
		if (i % 100 == 99 && reads)
			story_io(s, at_us + MS(9), 1, &(struct story_io) { .reads = reads / 3 });
	}
	story_analyse(s);
}

static void test_watcher_that_computes_in_each_round_is_told_by_its_share(void)
{
	static const struct {
		const char *kind;
		uint64_t us;
		enum d9__severity severity;
	} ill[] = { { "prepare", 8000, D9__CRITICAL },
		    { "check", 3000, D9__WARNING },
		    { "prepare", 1200, D9__WARNING } };

	for (unsigned i = 0; i < 3; i++) {
		struct story s;

		go_round(&s, ill[i].kind, ill[i].us, false, 0);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "source-time");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x300");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, ill[i].severity);
		CU_ASSERT(has(story_finding(&s, 0)->brief, "computes in each round"));
		CU_ASSERT(has(story_finding(&s, 0)->advice, "only look"));
		story_free(&s);
	}
}

static void test_watcher_that_looks_or_does_the_round_s_work_is_not_told(void)
{
	static const struct {
		const char *kind;
		uint64_t us;
		bool sometimes;
		uint64_t reads;
	} well[] = {
		{ "prepare", 500, false, 0 },	 /* it looks */
		{ "io", 3000, false, 0 },	 /* it is called for what happens */
		{ "prepare", 3000, false, 300 }, /* it serves, as gevent's does */
		{ "prepare", 600, true, 0 },	 /* it works where there is something to do */
	};

	for (unsigned i = 0; i < 4; i++) {
		struct story s;

		go_round(&s, well[i].kind, well[i].us, well[i].sometimes, well[i].reads);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "source-time")->check, "");
		story_free(&s);
	}
}

static CU_TestInfo tests[] = {
	{ "a wait that computes until the trace ends is the library's",
	  test_wait_that_computes_until_the_trace_ends_is_the_library_s },
	{ "a wait in which few samples fell is a wait",
	  test_wait_in_which_few_samples_fell_is_a_wait },
	{ "a stop is told, and in no account", test_stop_is_told_and_in_no_account },
	{ "a call that a stop made long hides none that was so by itself",
	  test_call_that_a_stop_made_long_hides_none_that_was_so_by_itself },
	{ "a watcher that computes in each round is told by its share",
	  test_watcher_that_computes_in_each_round_is_told_by_its_share },
	{ "a watcher that looks, or does the round's work, is not told",
	  test_watcher_that_looks_or_does_the_round_s_work_is_not_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("check_outside", tests);
}
