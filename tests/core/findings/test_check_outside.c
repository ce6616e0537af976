/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about time outside of callbacks: in the library and its sources, in waits, while the
 * process stood still. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "findings/owners.h"
#include "story.h"
#include "support/d9_test.h"

#define ASK   "app+0x100 @ app+0x110"
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

/* A call of |us| in an awake period of its own. */
static void call(struct story *s, uint64_t at_us, uint64_t us, unsigned task, const char *place)
{
	story_unpark(s, 0, at_us, 0);
	story_poll(s, 0, at_us + 1, at_us + 1 + us, task, place);
	story_park(s, 0, at_us + us + 2, 0);
}

static void source(struct story *s, const char *phase, uint64_t total_us, uint64_t max_us)
{
	story_begin(s);
	for (unsigned i = 0; i < 50; i++) {
		call(s, i * MS(100), 100, 1, ASK);
		story_source_time(s, 0, i * MS(100) + MS(50), 1, phase, 10, total_us / 50, max_us);
	}
	story_analyse(s);
}

static void test_time_in_a_sources_check_is_told_with_its_share(void)
{
	static const char *const phases[] = { "check", "prepare" };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		source(&s, phases[i], MS(4400), MS(90));
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "source-time");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
		CU_ASSERT(has(story_finding(&s, 0)->message, "4.40 s of the 4.90 s lie in"));
		CU_ASSERT(has(story_finding(&s, 0)->message, phases[i]));
		story_free(&s);
	}
}

/* The source's check() is known by its name, and the thread was found in what it called. */
static void test_function_of_a_source_is_told_with_its_line_and_where_it_was_found(void)
{
	static struct d9__frame_name names[] = {
		{ "scan", "ring.c", "app", 4, true },
		{ "ring_check", "ring.c", "app", 7, true },
		{ "g_main_context_check", NULL, "libglib-2.0.so.0", 0, true },
		{ "g_main_context_prepare", NULL, "libglib-2.0.so.0", 0, true },
	};
	static const uint64_t inside[] = { 0, 1, 2 }, beside[] = { 3, 2 };
	struct d9__outside *outside;
	struct story s;
	void *item;

	story_begin(&s);
	for (unsigned i = 0; i < 50; i++) {
		call(&s, i * MS(100), 100, 1, ASK);
		story_sample_in(&s, 0, i * MS(100) + MS(20), i % 5 ? 3 : 2,
				i % 5 ? inside : beside);
		story_source_time(&s, 0, i * MS(100) + MS(50), 1, "check", 10, MS(40), MS(5));
	}
	story_analyse(&s);
	outside = &((struct d9__callback *)story_callback(&s, ASK))->outside[D9__IN_CHECK];
	outside->function = strdup("ring_check");
	outside->source = strdup("ring.c:6");
	for (size_t at = 0; (at = d9__table_next(&s.analysis.samples.stacks, at, &item));) {
		struct d9__stack *stack = item;

		stack->names = calloc(stack->n + 1, sizeof(stack->names[0]));
		CU_ASSERT_PTR_NOT_NULL_FATAL(stack->names);
		for (size_t i = 0; i < stack->n; i++)
			stack->names[i] = names[stack->addresses[i]];
	}
	d9__findings_release(&s.findings);
	CU_ASSERT_EQUAL_FATAL(d9__findings_make(&s.findings, &s.analysis), 0);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "ring_check");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->source, "ring.c:6");
	CU_ASSERT(has(story_finding(&s, 0)->hot, "100 % in scan (ring.c:4)"));
	story_free(&s);
}

static void test_source_that_looks_and_is_done_is_not_told(void)
{
	struct story s;

	/* Once the kernel ran something else in the middle. */
	story_begin(&s);
	for (unsigned i = 0; i < 50; i++) {
		call(&s, i * MS(100), 100, 1, ASK);
		story_source_time(&s, 0, i * MS(100) + MS(50), 1, "check", 10, i == 7 ? MS(40) : 20,
				  i == 7 ? MS(40) : 4);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "source-time")->check, "");
	story_free(&s);

	source(&s, "check", MS(20), 200);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "source-time")->check, "");
	story_free(&s);
}

/*
 * |us| of CPU time in each round of 10 ms, 100 us of them in a callback; from 120 us on for
 * |outside_us| the thread is out of its loop.
 */
static void overhead_with(struct story *s, uint64_t us, uint64_t outside_us)
{
	story_begin(s);
	story_say(s, "loop.libevent.capabilities", "poll=full,park=on,wake=full,task_end=partial");
	for (unsigned i = 0; i < 200; i++) {
		story_unpark(s, 0, i * MS(10), i * us);
		story_poll(s, 0, i * MS(10) + 10, i * MS(10) + 110, 1, ASK);
		if (outside_us)
			story_outside(s, 0, i * MS(10) + 120, i * MS(10) + 120 + outside_us);
		story_park(s, 0, i * MS(10) + us, i * us + us);
	}
	story_analyse(s);
}

static void overhead(struct story *s, uint64_t us)
{
	overhead_with(s, us, 0);
}

static void test_loop_that_is_asked_again_and_again_is_told_to_be_let_wait(void)
{
	struct story s;

	overhead(&s, MS(10) - 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "loop-overhead");
	CU_ASSERT(has(story_finding(&s, 0)->brief, "never waits"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "Let the loop wait"));
	story_free(&s);
}

static void test_time_of_the_loop_itself_is_told_as_that(void)
{
	struct story s;

	overhead(&s, MS(8));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "loop-overhead");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT(has(story_finding(&s, 0)->message, "outside of callbacks"));
	story_free(&s);
	overhead(&s, MS(2));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "loop-overhead")->check, "");
	story_free(&s);

	/* Between rounds it is the program's, and told once. */
	overhead_with(&s, MS(8), MS(7));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "between-rounds");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "loop-overhead")->check, "");
	story_free(&s);
	overhead_with(&s, MS(8), MS(3));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "between-rounds")->check, "between-rounds");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "loop-overhead")->check, "loop-overhead");
	CU_ASSERT(has(story_finding_of(&s, "loop-overhead")->message, "spends 980 ms"));
	story_free(&s);
}

/* Ten waits of 100 ms with |us| of CPU time in each. */
static void wait_with(struct story *s, uint64_t us)
{
	story_begin(s);
	for (unsigned i = 0; i < 10; i++) {
		story_unpark(s, 0, i * MS(101), i * us);
		story_poll(s, 0, i * MS(101) + 10, i * MS(101) + 110, 1, ASK);
		story_park(s, 0, i * MS(101) + MS(1), i * us + 100);
	}
	story_unpark(s, 0, 10 * MS(101), 10 * us);
	story_analyse(s);
}

static void test_handler_that_works_while_the_loop_sleeps_is_told(void)
{
	struct story s;

	wait_with(&s, MS(30));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "busy-wait");
	CU_ASSERT(has(story_finding(&s, 0)->message, "inside of 10 waits, up to 29.9 ms in one"));
	story_free(&s);
	/* To look at very many descriptors takes time, too. */
	wait_with(&s, MS(1));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "busy-wait")->check, "");
	story_free(&s);
}

/* For 4 s a source is looked at 1,000 times a second, preempted in a look each second; |busy|: all
 * that the machine takes of a loop that never waits, a half. */
static void look(struct story *s, bool busy)
{
	story_begin(s);
	story_unpark(s, 0, 0, 1);
	for (unsigned i = 0; i < 40; i++) {
		story_poll(s, 0, i * MS(100) + 1, i * MS(100) + 10, 1, TICK);
		story_source_time(s, 0, i * MS(100) + MS(50), 1, "check", 1000,
				  i % 10 ? 500 : MS(12), i % 10 ? 5 : MS(11));
	}
	if (busy)
		story_put_aside(s, 0, SECONDS(4), SECONDS(2));
	story_park(s, 0, SECONDS(4), busy ? SECONDS(2) + 1 : SECONDS(4) + 1);
	story_analyse(s);
}

static void test_look_that_the_machine_makes_long_is_no_work_of_its_source(void)
{
	struct story s;

	look(&s, true);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "source-time")->check, "");
	story_free(&s);
	look(&s, false);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "source-time")->check, "source-time");
	story_free(&s);
}

static CU_TestInfo tests[] = {
	{ "a look that the machine makes long is no work of its source",
	  test_look_that_the_machine_makes_long_is_no_work_of_its_source },
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
	{ "time in a sources check is told with its share",
	  test_time_in_a_sources_check_is_told_with_its_share },
	{ "function of a source is told with its line, and where it was found",
	  test_function_of_a_source_is_told_with_its_line_and_where_it_was_found },
	{ "source that looks and is done is not told",
	  test_source_that_looks_and_is_done_is_not_told },
	{ "loop that is asked again and again is told to be let wait",
	  test_loop_that_is_asked_again_and_again_is_told_to_be_let_wait },
	{ "time of the loop itself is told as that", test_time_of_the_loop_itself_is_told_as_that },
	{ "handler that works while the loop sleeps is told",
	  test_handler_that_works_while_the_loop_sleeps_is_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("check_outside", tests);
}
