/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about how long calls lie in time. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define READ   "app+0x100 @ app+0x110"
#define WRITE  "app+0x200 @ app+0x210"
#define SEARCH "app+0x300 @ app+0x310"

#define MS(n) ((n) * 1000u)

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

/* |n| calls, one each |apart_us|, as long as |length| says. */
static void tell(struct story *s, unsigned n, uint64_t apart_us, uint64_t (*length)(unsigned number))
{
	story_begin(s);
	for (unsigned i = 0; i < n; i++)
		call(s, i * apart_us, length(i), 1, READ);
	story_analyse(s);
}

/* ---- at first ---- */

static uint64_t first_slow(unsigned i)
{
	return i == 0 ? MS(40) : 300 + i % 7;
}

static uint64_t first_five_slow(unsigned i)
{
	return i < 5 ? MS(30) - 2000 * i : 800;
}

static uint64_t first_of_thousands_slow(unsigned i)
{
	return i < 3 ? MS(12) : 10;
}

static void test_callback_that_is_slow_at_first_only_is_named_as_that(void)
{
	static const struct {
		unsigned n;
		uint64_t (*length)(unsigned number);
		const char *text;
	} shapes[] = {
		{ 100, first_slow, "slow only at first: up to 40.0 ms among its first 4 calls" },
		{ 100, first_five_slow, "slow only at first: up to 30.0 ms among its first" },
		{ 5000, first_of_thousands_slow, "slow only at first: up to 12.0 ms among its first" },
	};

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct story s;

		tell(&s, shapes[i].n, MS(50), shapes[i].length);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "cold-start");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
		CU_ASSERT(has(story_finding(&s, 0)->message, shapes[i].text));
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
		story_free(&s);
	}
}

static uint64_t slow_again_later(unsigned i)
{
	return i == 0 || i == 70 ? MS(40) : 300;
}

static uint64_t slow_in_the_middle(unsigned i)
{
	return i == 50 ? MS(40) : 300;
}

static uint64_t slow_half(unsigned i)
{
	return i < 50 ? MS(40) : 300;
}

static void test_callback_that_is_slow_later_too_is_no_cold_start(void)
{
	uint64_t (*const shapes[])(unsigned number) = { slow_again_later, slow_in_the_middle, slow_half };

	for (unsigned i = 0; i < 3; i++) {
		struct story s;

		tell(&s, 100, MS(50), shapes[i]);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "cold-start")->check, "");
		story_free(&s);
	}
}

static void test_first_call_that_the_kernel_interrupted_is_no_cold_start(void)
{
	struct story s;

	story_begin(&s);
	call(&s, 0, MS(40), 1, READ);
	story_off_cpu(&s, 0, MS(40) + 1, 1, 0, MS(38));
	for (unsigned i = 1; i < 100; i++)
		call(&s, i * MS(50), 300, 1, READ);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "cold-start")->check, "");
	story_free(&s);
}

static void test_first_call_inside_a_librarys_callback_that_the_kernel_interrupted_is_no_cold_start(void)
{
	struct story s;

	story_begin(&s);
	story_spawn(&s, 0, 1, "lib+0x10 @ main+0x20", "internal");
	for (unsigned i = 0; i < 100; i++) {
		uint64_t at = i * MS(50), took = i == 0 ? MS(40) : 300;

		story_unpark(&s, 0, at, 0);
		story_start(&s, 0, at + 1, 1, "lib+0x10 @ main+0x20");
		story_span(&s, 0, at + 2, at + took, i + 1, READ);
		story_end(&s, 0, at + took + 1);
		if (i == 0)
			story_off_cpu(&s, 0, at + took + 1, 1, 0, MS(38));
		story_park(&s, 0, at + took + 2, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "cold-start")->check, "");
	story_free(&s);
}

static uint64_t first_slower_and_all_slow(unsigned i)
{
	return i == 0 ? MS(150) : MS(5 + i % 8);
}

static void test_callback_whose_other_calls_are_long_by_themselves_is_no_cold_start(void)
{
	struct story s;

	tell(&s, 100, MS(200), first_slower_and_all_slow);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "cold-start")->check, "");
	story_free(&s);
}

/* ---- longer and longer ---- */

static uint64_t longer_by_count(unsigned i)
{
	return 200 + 150 * i + (i % 3) * 40;
}

static uint64_t longer_evenly(unsigned i)
{
	return 200 + 150 * i;
}

static uint64_t longer_by_square(unsigned i)
{
	return 50 + i * i;
}

static uint64_t longer_by_much_of_few(unsigned i)
{
	return 1000 + 4000 * i;
}

static void test_callback_whose_calls_get_longer_and_longer_is_told_with_its_growth(void)
{
	static const struct {
		unsigned n;
		uint64_t (*length)(unsigned number);
	} shapes[] = { { 200, longer_by_count }, { 150, longer_by_square }, { 9, longer_by_much_of_few } };

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct story s;

		tell(&s, shapes[i].n, MS(60), shapes[i].length);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "growing-calls");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT(has(story_finding(&s, 0)->message, "takes longer with each call"));
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
		story_free(&s);
	}
}

/* 150 us from call to call, though the eighths of the calls that are compared are only seven eighths apart. */
static void test_growth_is_told_by_how_much_it_is_from_one_call_to_the_next(void)
{
	struct story s;

	tell(&s, 64, MS(60), longer_evenly);
	CU_ASSERT(has(story_finding(&s, 0)->message, "150 us more each time over 64 calls"));
	story_free(&s);
}

static void test_growth_is_seen_where_each_connection_is_a_task_of_its_own(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 120; i++) {
		story_spawn(&s, i * MS(30), 100 + i, READ, "io");
		call(&s, i * MS(30) + 1, longer_by_count(i), 100 + i, READ);
		story_terminate(&s, i * MS(30) + MS(29), 100 + i);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "growing-calls");
	story_free(&s);
}

/* From 0.3 ms to 3 ms: a tenth of the loop's time, or less. */
static uint64_t longer_up_to_3_ms(unsigned i)
{
	return 300 + 14 * i;
}

static void test_growth_is_a_warning_once_it_has_a_tenth_of_the_loop(void)
{
	static const uint64_t every[] = { MS(10), MS(40) };

	for (unsigned i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		struct story s;

		tell(&s, 200, every[i], longer_up_to_3_ms);
		CU_ASSERT_EQUAL(story_finding_of(&s, "growing-calls")->severity,
				i ? D9__INFO : D9__WARNING);
		story_free(&s);
	}
}

static uint64_t up_and_down(unsigned i)
{
	return 1000 + 300 * (i % 40);
}

static uint64_t one_step(unsigned i)
{
	return i < 100 ? 400 : 4000;
}

static uint64_t longer_but_short(unsigned i)
{
	return 2 + i;
}

static uint64_t at_random(unsigned i)
{
	return 500 + (i * 2654435761u >> 8) % 6000;
}

static void test_calls_that_vary_do_not_grow(void)
{
	uint64_t (*const shapes[])(unsigned number) = { up_and_down, one_step, longer_but_short, at_random };

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct story s;

		tell(&s, 200, MS(30), shapes[i]);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "growing-calls")->check, "");
		story_free(&s);
	}
}

/* ---- in a rhythm ---- */

/* Three callbacks, a call each 20 ms in turn; the first after |due| calls takes 60 ms more. */
static void tidy_each(struct story *s, const unsigned *due, unsigned n_due, unsigned n)
{
	static const char *const places[] = { READ, WRITE, SEARCH };
	unsigned next = 0, left = due[0];
	uint64_t us = 0;

	story_begin(s);
	for (unsigned i = 0; i < n; i++, us += MS(20)) {
		uint64_t extra = 0;

		if (left-- == 0) {
			next = (next + 1) % n_due;
			left = due[next];
			extra = MS(60);
		}
		call(s, us, 300 + extra, 1 + i % 3, places[i % 3]);
		us += extra;
	}
	story_analyse(s);
}

static void test_pause_that_comes_again_and_again_in_three_callbacks_is_one_finding(void)
{
	static const unsigned due[] = { 49 };
	struct story s;

	tidy_each(&s, due, 1, 400);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "periodic-pause");
	CU_ASSERT(has(story_finding(&s, 0)->message, "stands still for 60.3 ms every 1.06 s"));
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x100 ("));
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x200 ("));
	CU_ASSERT(has(story_finding(&s, 0)->message, "app+0x300 ("));
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
}

static void test_pauses_at_any_time_are_long_calls(void)
{
	static const unsigned due[] = { 9, 70, 31, 4, 55, 22, 90 };
	struct story s;

	tidy_each(&s, due, 7, 600);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "periodic-pause")->check, "");
	story_free(&s);
}

static void test_three_timers_that_pause_one_after_the_other_are_one_rhythm(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 6; i++) {
		uint64_t us = i * MS(1050);

		call(&s, us, MS(20), 1, READ);
		call(&s, us + MS(21), MS(20), 2, WRITE);
		call(&s, us + MS(42), MS(20), 3, SEARCH);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "periodic-pause");
	CU_ASSERT(has(story_finding(&s, 0)->message, "stands still for 60.0 ms every 1.05 s, 6 times"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
}

/* Each call of READ is long, WRITE is late behind two of them. */
static void test_callback_that_is_long_beside_another_s_rhythm_has_none(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t us = i * MS(1050);

		call(&s, us, MS(40), 1, READ);
		call(&s, us + MS(41), i % 5 == 2 ? MS(30) : 20, 2, WRITE);
		for (unsigned j = 1; j < 20; j++)
			call(&s, us + MS(41) + MS(50) * j, 20, 2, WRITE);
	}
	story_analyse(&s);

	finding = story_finding(&s, 0);
	CU_ASSERT_STRING_EQUAL(finding->name, "app+0x100");
	CU_ASSERT(has(finding->message, "every 1.05 s"));
	finding = story_finding(&s, 1);
	CU_ASSERT_STRING_EQUAL(finding->name, "app+0x200");
	CU_ASSERT_FALSE(has(finding->message, "every"));
	story_free(&s);
}

static void test_long_calls_of_two_callbacks_in_turns_are_no_rhythm_of_both(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 6; i++)
		call(&s, i * MS(1050), MS(40), 1 + i % 2, i % 2 ? WRITE : READ);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "periodic-pause")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	story_free(&s);
}

static uint64_t each_fiftieth(unsigned i)
{
	return i % 50 == 49 ? MS(30) : 200;
}

static void test_each_fiftieth_call_is_told_by_the_number_of_calls(void)
{
	struct story s;

	tell(&s, 400, MS(40), each_fiftieth);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "periodic-pause");
	CU_ASSERT(has(story_finding(&s, 0)->message, "every 50 calls of it, which is every 2.00 s"));
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	story_free(&s);
}

static uint64_t always_long(unsigned i)
{
	(void)i;
	return MS(60);
}

static void test_timer_that_always_takes_long_is_a_long_callback_with_its_period(void)
{
	struct story s;

	tell(&s, 5, MS(5000), always_long);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT(has(story_finding(&s, 0)->message, "for 60.0 ms, every 5.00 s ("));
	story_free(&s);
}

static void test_three_pauses_are_no_rhythm_yet(void)
{
	static const unsigned due[] = { 49 };
	struct story s;

	tidy_each(&s, due, 1, 160);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "periodic-pause")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	story_free(&s);
}

static uint64_t every_second_slow(unsigned i)
{
	return i % 2 ? MS(45) : 50;
}

static void test_callback_of_which_every_second_call_is_long_is_a_long_callback(void)
{
	struct story s;

	tell(&s, 40, MS(160), every_second_slow);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "periodic-pause")->check, "");
	story_free(&s);
}

/* It sleeps now and then: the period is told with where it does. */
static void test_call_that_sleeps_in_a_rhythm_is_a_blocked_callback(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t us = i * MS(80), slow_us = i % 20 ? 50 : MS(60);

		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us + 1, us + 1 + slow_us, 1, READ);
		if (i % 20 == 0)
			story_off_cpu(&s, 0, us + 1 + slow_us, 1, slow_us, 0);
		story_park(&s, 0, us + slow_us + 2, 0);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "periodic-pause")->check, "");
	story_free(&s);
}

/* ---- while the program starts ---- */

/*
 * One call of |us| at |at_us|, |times| times each 400 ms, in four seconds of a trace that begins with its process; behind
 * the first, another callback |waited|.
 */
static const struct d9__finding *start_with(struct story *s, uint64_t at_us, uint64_t us, unsigned times, bool waited)
{
	story_begin(s);
	story_say(s, "recorder.mode", "continuous");
	story_routine(s, 0, 0, 100);
	if (waited)
		story_wake(s, at_us + MS(10), 0, 2, 1);
	for (unsigned i = 0; i < times; i++)
		call(s, at_us + i * MS(400), us, 1, READ);
	if (waited)
		call(s, at_us + us + 5, 10, 2, WRITE);
	story_routine(s, 0, MS(4000), 100);
	story_analyse(s);
	return story_finding_of(s, "long-callback");
}

static void test_long_call_while_the_program_starts_is_information(void)
{
	static const struct {
		uint64_t at_us, us;
		unsigned times;
		bool waited;
		enum d9__severity severity;
	} calls[] = {
		{ MS(50), MS(170), 1, false, D9__INFO },
		{ MS(50), MS(170), 2, false, D9__INFO },
		{ MS(50), MS(170), 1, true, D9__INFO },
		{ MS(300), MS(170), 1, false, D9__INFO },
		{ MS(300), MS(170), 1, true, D9__CRITICAL }, /* a user waits */
		{ MS(50), MS(170), 4, false, D9__CRITICAL },  /* goes on behind it */
		{ MS(50), MS(600), 1, false, D9__CRITICAL },  /* a user notices */
		{ MS(1200), MS(170), 1, false, D9__CRITICAL }, /* later */
	};

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct story s;

		CU_ASSERT_EQUAL(start_with(&s, calls[i].at_us, calls[i].us, calls[i].times, calls[i].waited)->severity,
				calls[i].severity);
		story_free(&s);
	}
}

static void test_trace_that_begins_later_tells_of_no_start(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "segment.prior_sealed_clean", "true");
	story_say(&s, "recorder.mode", "continuous");
	story_routine(&s, 0, 0, 100);
	call(&s, MS(50), MS(170), 1, READ);
	story_routine(&s, 0, MS(4000), 100);
	story_analyse(&s);
	CU_ASSERT_EQUAL(story_finding_of(&s, "long-callback")->severity, D9__CRITICAL);
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "callback that is slow at first only is named as that",
	  test_callback_that_is_slow_at_first_only_is_named_as_that },
	{ "callback that is slow later too is no cold start",
	  test_callback_that_is_slow_later_too_is_no_cold_start },
	{ "first call that the kernel interrupted is no cold start",
	  test_first_call_that_the_kernel_interrupted_is_no_cold_start },
	{ "first call inside a library's callback that the kernel interrupted is no cold start",
	  test_first_call_inside_a_librarys_callback_that_the_kernel_interrupted_is_no_cold_start },
	{ "callback whose other calls are long by themselves is no cold start",
	  test_callback_whose_other_calls_are_long_by_themselves_is_no_cold_start },
	{ "callback whose calls get longer and longer is told with its growth",
	  test_callback_whose_calls_get_longer_and_longer_is_told_with_its_growth },
	{ "growth is told by how much it is from one call to the next",
	  test_growth_is_told_by_how_much_it_is_from_one_call_to_the_next },
	{ "growth is seen where each connection is a task of its own",
	  test_growth_is_seen_where_each_connection_is_a_task_of_its_own },
	{ "growth is a warning once it has a tenth of the loop's time",
	  test_growth_is_a_warning_once_it_has_a_tenth_of_the_loop },
	{ "calls that vary do not grow", test_calls_that_vary_do_not_grow },
	{ "pause that comes again and again in three callbacks is one finding",
	  test_pause_that_comes_again_and_again_in_three_callbacks_is_one_finding },
	{ "pauses at any time are long calls", test_pauses_at_any_time_are_long_calls },
	{ "three timers that pause one after the other are one rhythm",
	  test_three_timers_that_pause_one_after_the_other_are_one_rhythm },
	{ "each fiftieth call is told by the number of calls",
	  test_each_fiftieth_call_is_told_by_the_number_of_calls },
	{ "timer that always takes long is a long callback with its period",
	  test_timer_that_always_takes_long_is_a_long_callback_with_its_period },
	{ "callback that is long beside another's rhythm has none",
	  test_callback_that_is_long_beside_another_s_rhythm_has_none },
	{ "long calls of two callbacks in turns are no rhythm of both",
	  test_long_calls_of_two_callbacks_in_turns_are_no_rhythm_of_both },
	{ "three pauses are no rhythm yet", test_three_pauses_are_no_rhythm_yet },
	{ "callback of which every second call is long is a long callback",
	  test_callback_of_which_every_second_call_is_long_is_a_long_callback },
	{ "call that sleeps in a rhythm is a blocked callback",
	  test_call_that_sleeps_in_a_rhythm_is_a_blocked_callback },
	{ "long call while the program starts is information", test_long_call_while_the_program_starts_is_information },
	{ "trace that begins later tells of no start", test_trace_that_begins_later_tells_of_no_start },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_shape", tests);
}
