/* SPDX-License-Identifier: Apache-2.0 */
/* Where elapsed time went: by readings of one call, of an active period, and by what was told. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "analyze/spans.h"
#include "analyze/time_parts.h"
#include "story.h"
#include "support/d9_test.h"

#define SLOW  "app+0x100 @ app+0x110"
#define QUICK "app+0x200 @ app+0x210"
#define USER  "app+0x300 @ app+0x310"

/* The parts of the callback at |place|, in microseconds; they always sum to all of its time. */
static struct d9__parts parts_of(const struct story *s, const char *place)
{
	const struct d9__callback *callback = story_callback(s, place);
	struct d9__parts parts = { .total_ns = 0 };

	CU_ASSERT_PTR_NOT_NULL_FATAL(callback);
	parts = d9__time_parts_of(&callback->time, callback->durations.sum, 0,
			     s->analysis.samples.period_ns);
	CU_ASSERT_EQUAL(parts.total_ns, callback->durations.sum);
	/* The parts add up to no more than the time that passed, so none had to be cut. */
	CU_ASSERT(callback->time.on_cpu_ns + callback->time.ready_ns + callback->time.blocked_ns <=
		  parts.total_ns);
	CU_ASSERT_EQUAL(parts.on_cpu_ns + parts.ready_ns + parts.blocked_ns + parts.waiting_ns +
				parts.unknown_ns,
			parts.total_ns);
	return parts;
}

static void check(const struct d9__parts *parts, uint64_t on_cpu_us, uint64_t ready_us,
		  uint64_t blocked_us, uint64_t unknown_us)
{
	CU_ASSERT_EQUAL(parts->on_cpu_ns, on_cpu_us * 1000);
	CU_ASSERT_EQUAL(parts->ready_ns, ready_us * 1000);
	CU_ASSERT_EQUAL(parts->blocked_ns, blocked_us * 1000);
	CU_ASSERT_EQUAL(parts->unknown_ns, unknown_us * 1000);
}

static struct d9__parts parts_of_call(const struct story *s, size_t i)
{
	const struct d9__stall *stall = s->analysis.stalls.items[i].stall;

	return d9__time_parts_of(&stall->time, stall->total_ns, 0, s->analysis.samples.period_ns);
}

/* What is told of the longest call. */
static const char *text_of(const struct story *s)
{
	static char text[256];
	struct d9__parts parts = parts_of_call(s, 0);

	return d9__time_parts_text(&parts, &s->analysis.stalls.items[0].stall->time, text, sizeof(text));
}

/* A call of 10 ms with a reading at its end. */
static void read_call(struct story *s, uint64_t blocked_us, uint64_t ready_us)
{
	story_begin(s);
	story_unpark(s, 0, 1000, 100);
	story_poll(s, 0, 2000, 12000, 1, SLOW);
	story_off_cpu(s, 0, 12000, 1, blocked_us, ready_us);
	story_park(s, 0, 12100, 9000);
	story_analyse(s);
}

static void test_long_call_has_the_parts_of_its_own_reading(void)
{
	struct d9__parts parts;
	struct story s;

	read_call(&s, 3000, 1000);
	parts = parts_of(&s, SLOW);
	check(&parts, 6000, 1000, 3000, 0);
	parts = parts_of_call(&s, 0);
	check(&parts, 6000, 1000, 3000, 0);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->time.by_period_ns, 0);
	CU_ASSERT_STRING_EQUAL(text_of(&s), "60 % on CPU, 30 % blocked, 10 % ready");
	story_free(&s);
}

static void test_finding_tells_the_parts_of_its_longest_calls(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 2; i++) {
		story_poll(&s, 0, 100000 * i, 100000 * i + 60000, 1, SLOW);
		story_off_cpu(&s, 0, 100000 * i + 60000, 1, 12000 * i, 12000);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->time,
			       "70 % on CPU, 20 % ready, 10 % blocked");
	story_free(&s);
}

static void test_readings_that_contradict_each_other_believe_the_kernel_first(void)
{
	struct d9__parts parts;
	struct story s;

	/* Together more than the call. */
	read_call(&s, 8000, 7000);
	parts = parts_of(&s, SLOW);
	check(&parts, 0, 7000, 3000, 0);
	story_free(&s);

	/* One alone is more. */
	read_call(&s, 5000, 30000);
	parts = parts_of(&s, SLOW);
	check(&parts, 0, 10000, 0, 0);
	story_free(&s);
}

static void test_readings_of_any_size_add_up(void)
{
	const uint64_t most_us = UINT64_MAX / 1000;
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 1000, most_us);
	story_start(&s, 0, 2000, 1, SLOW);
	for (unsigned i = 0; i < 3; i++)
		story_waited(&s, 0, 3000, 1, "read", most_us);
	story_end(&s, 0, 12000);
	story_off_cpu(&s, 0, 12000, 1, most_us, 1000);
	story_poll(&s, 0, 12000, 22000, 2, QUICK);
	story_off_cpu(&s, 0, 22000, 2, most_us, most_us);
	story_park(&s, 0, 22000, 0);
	story_analyse(&s);
	parts = parts_of(&s, SLOW);
	check(&parts, 0, 1000, 9000, 0);
	parts = parts_of(&s, QUICK);
	check(&parts, 0, 10000, 0, 0);
	story_free(&s);
}

static void test_page_faults_from_disk_are_told_with_blocked_time(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, 2000, 12000, 1, SLOW);
	story_disk(&s, 0, 12000, 1, 4000, 30);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(text_of(&s),
			       "60 % on CPU, 40 % blocked, 30 page faults from disk among that");
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->time.major_faults, 30);
	story_free(&s);
}

static void test_cpu_time_that_was_not_used_is_unknown(void)
{
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 1000, 0);
	story_poll(&s, 0, 2000, 12000, 1, SLOW);
	/* It was off the CPU for no time, and used 4 ms. */
	story_figures(&s, 0, 12000, 1, 0, 3000, 1000);
	story_analyse(&s);
	parts = parts_of(&s, SLOW);
	CU_ASSERT_EQUAL(parts.on_cpu_ns, 4000000 + 4096);
	CU_ASSERT_EQUAL(parts.unknown_ns, 6000000 - 4096);
	story_free(&s);
}

static void test_call_that_never_gave_up_the_cpu_was_ready(void)
{
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 1000, 0);
	story_poll(&s, 0, 2000, 12000, 1, SLOW);
	story_off_cpu_switched(&s, 0, 12000, 1, 4000, 0, 0);
	story_analyse(&s);
	parts = parts_of(&s, SLOW);
	check(&parts, 6000, 4000, 0, 0);
	story_free(&s);
}

/* A call of 10 ms, asleep for |blocked_us|, that told 3 ms of fsync() and 1 ms of connect(). */
static void told_call(struct story *s, bool read, uint64_t blocked_us)
{
	story_begin(s);
	story_unpark(s, 0, 1000, 0);
	story_start(s, 0, 2000, 1, SLOW);
	story_waited(s, 0, 6000, 1, "fsync", 2000);
	story_waited(s, 0, 8000, 1, "connect", 1000);
	story_waited(s, 0, 9000, 1, "fsync", 1000);
	/* Another task's, and one outside of calls, are none of its. */
	story_waited(s, 0, 9500, 2, "read", 700);
	story_end(s, 0, 12000);
	if (read)
		story_off_cpu(s, 0, 12000, 1, blocked_us, 0);
	story_waited(s, 0, 12050, 1, "read", 700);
	story_park(s, 0, 12100, 6100);
	story_analyse(s);
}

static void test_blocked_time_is_told_by_function(void)
{
	struct d9__parts parts;
	struct story s;

	told_call(&s, true, 4500);
	parts = parts_of(&s, SLOW);
	check(&parts, 5500, 0, 4500, 0);
	CU_ASSERT_STRING_EQUAL(text_of(&s), "55 % on CPU, 30 % blocked in fsync, 10 % blocked in "
					    "connect, 5 % blocked elsewhere");
	story_free(&s);

	/* The calls took longer than it slept: they were on the CPU now and then. */
	told_call(&s, true, 2000);
	parts = parts_of(&s, SLOW);
	check(&parts, 8000, 0, 2000, 0);
	CU_ASSERT_STRING_EQUAL(text_of(&s), "80 % on CPU, 20 % blocked in fsync");
	story_free(&s);

	/*
	 * Without a reading of its own what was told is blocked; the period used 6.1 ms, of
	 * which 1.1 ms may have been the loop's.
	 */
	told_call(&s, false, 0);
	parts = parts_of(&s, SLOW);
	check(&parts, 5000, 0, 4000, 1000);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->time.by_period_ns, 6000000);
	story_free(&s);
}

/* An active period of 1 ms with 600 us and 200 us of calls, that used |cpu_us|. */
static void short_calls(struct story *s, uint64_t cpu_us)
{
	story_begin(s);
	story_unpark(s, 0, 1000, 4);
	story_poll(s, 0, 1100, 1500, 1, SLOW);
	story_poll(s, 0, 1500, 1700, 2, QUICK);
	story_poll(s, 0, 1700, 1900, 3, SLOW);
	story_park(s, 0, 2000, cpu_us ? 4 + cpu_us : 4);
	story_analyse(s);
}

static void test_short_calls_share_the_reading_of_their_period(void)
{
	struct d9__parts parts;
	struct story s;

	short_calls(&s, 500);
	parts = parts_of(&s, SLOW);
	check(&parts, 300, 0, 0, 300);
	parts = parts_of(&s, QUICK);
	check(&parts, 100, 0, 0, 100);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->time.by_period_ns, 600000);
	/* The loop itself has the rest. */
	CU_ASSERT_EQUAL(s.analysis.timeline.items[0]->time.on_cpu_ns, 500000);
	story_free(&s);

	/* The thread used more than passed: all of it was on the CPU, and nothing more. */
	short_calls(&s, 2000);
	parts = parts_of(&s, SLOW);
	check(&parts, 600, 0, 0, 0);
	CU_ASSERT_EQUAL(s.analysis.timeline.items[0]->time.on_cpu_ns, 1000000);
	story_free(&s);
}

static void test_time_without_readings_is_unknown(void)
{
	struct d9__parts parts;
	struct story s;

	/* No CPU times. */
	story_begin(&s);
	story_unpark(&s, 0, 1000, 0);
	story_poll(&s, 0, 1100, 1500, 1, QUICK);
	story_poll(&s, 0, 1500, 9500, 2, SLOW);
	story_park(&s, 0, 10000, 0);
	story_analyse(&s);
	parts = parts_of(&s, QUICK);
	check(&parts, 0, 0, 0, 400);
	parts = parts_of(&s, SLOW);
	check(&parts, 0, 0, 0, 8000);
	story_free(&s);

	/* The trace begins in a period, and ends in one. */
	story_begin(&s);
	story_poll(&s, 0, 1000, 1400, 1, QUICK);
	story_park(&s, 0, 1500, 900);
	story_unpark(&s, 0, 2000, 900);
	story_poll(&s, 0, 2100, 2200, 1, QUICK);
	story_analyse(&s);
	parts = parts_of(&s, QUICK);
	check(&parts, 0, 0, 0, 500);
	story_free(&s);
}

static void test_long_call_without_a_reading_has_what_others_cannot_have_used(void)
{
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_say(&s, "cpu.sample_hz", "1000");
	story_unpark(&s, 0, 0, 4);
	story_poll(&s, 0, 0, 500, 2, QUICK);
	story_start(&s, 0, 500, 1, SLOW);
	story_sample(&s, 0, 5000);
	story_end(&s, 0, 9500);
	story_park(&s, 0, 10000, 4 + 6000);
	story_analyse(&s);
	/* Of the 6 ms the rest of the period can have had 1. */
	parts = parts_of(&s, SLOW);
	check(&parts, 5000, 0, 0, 4000);
	parts = parts_of(&s, QUICK);
	check(&parts, 0, 0, 0, 500);
	story_free(&s);
}

/* A call of 8 ms with nothing but |n| samples of a millisecond each. */
static void sampled_call(struct story *s, const char *hz, unsigned n)
{
	story_begin(s);
	story_say(s, "cpu.sample_hz", hz);
	story_unpark(s, 0, 0, 0);
	story_start(s, 0, 1000, 1, SLOW);
	for (unsigned i = 0; i < n; i++)
		story_sample(s, 0, 2000 + i);
	story_end(s, 0, 9000);
	story_park(s, 0, 9100, 0);
	story_analyse(s);
}

static void test_samples_refine_what_is_unknown_where_enough_are_expected(void)
{
	struct d9__parts parts;
	struct story s;

	sampled_call(&s, "1000", 5);
	parts = parts_of(&s, SLOW);
	check(&parts, 5000, 0, 0, 3000);
	CU_ASSERT_TRUE(parts.by_samples);
	CU_ASSERT_STRING_EQUAL(text_of(&s), "62 % on CPU by samples, 38 % unknown");
	story_free(&s);

	/* They stand for no more than passed. */
	sampled_call(&s, "1000", 20);
	parts = parts_of(&s, SLOW);
	check(&parts, 8000, 0, 0, 0);
	story_free(&s);

	/* In 8 ms less than three are expected of 250 in a second. */
	sampled_call(&s, "250", 2);
	parts = parts_of(&s, SLOW);
	check(&parts, 0, 0, 0, 8000);
	CU_ASSERT_TRUE(parts.few_samples);
	CU_ASSERT_STRING_EQUAL(text_of(&s), "100 % unknown: too few samples (2)");
	story_free(&s);
}

static void test_call_that_ran_a_loop_has_its_own_time_alone(void)
{
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 1000, 4);
	story_start(&s, 0, 2000, 1, SLOW);
	/* 2 ms of its own, then a loop that sleeps for 20 ms and calls something for 0.4 ms. */
	story_end(&s, 0, 4000);
	story_park(&s, 0, 4000, 4 + 3000);
	story_unpark(&s, 0, 24000, 4 + 3000);
	story_poll(&s, 0, 24000, 24400, 2, QUICK);
	story_wake(&s, 24500, 1, 1, 8);
	story_start(&s, 0, 24500, 1, SLOW);
	story_end(&s, 0, 30500);
	/* The reading is of the last piece: the loop's wait is in it, and is not the call's. */
	story_off_cpu(&s, 0, 30500, 1, 5000, 0);
	story_park(&s, 0, 30600, 4 + 4500);
	story_analyse(&s);
	parts = parts_of(&s, SLOW);
	CU_ASSERT_EQUAL(parts.total_ns, 8000000);
	check(&parts, 2000 + 1000, 0, 5000, 0);
	story_free(&s);
}

static void test_function_inside_has_what_is_certainly_its_own(void)
{
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_spawn(&s, 500, 1, SLOW, "internal");
	story_unpark(&s, 0, 1000, 0);
	story_start(&s, 0, 2000, 1, SLOW);
	story_enter(&s, 0, 2500, 7, USER);
	story_waited(&s, 0, 8000, 1, "fsync", 5000);
	story_exit(&s, 0, 11500, 7, USER);
	story_end(&s, 0, 12000);
	/* Of the 10 ms it slept 6, of which fsync told 5. */
	story_off_cpu(&s, 0, 12000, 1, 6000, 0);
	story_analyse(&s);
	parts = parts_of(&s, USER);
	CU_ASSERT_EQUAL(parts.total_ns, 9000000);
	/* Its caller had 1 ms, which may have been on the CPU or not. */
	check(&parts, 3000, 0, 5000, 1000);
	parts = parts_of(&s, SLOW);
	check(&parts, 0, 0, 0, 1000);
	CU_ASSERT_STRING_EQUAL(story_callback(&s, USER)->time.told.in[0].function, "fsync");
	story_free(&s);
}

static void test_span_waits_between_polls_and_has_the_parts_of_them(void)
{
	const struct d9__span_type *type;
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 4);
	story_start(&s, 0, 1000, 1, SLOW);
	story_enter(&s, 0, 1000, 7, "request");
	/* It stays entered over a wait of its loop. */
	story_end(&s, 0, 5000);
	story_off_cpu(&s, 0, 5000, 1, 4000, 0);
	story_park(&s, 0, 5100, 1004);
	story_unpark(&s, 0, 9000, 1004);
	story_start(&s, 0, 9000, 1, SLOW);
	story_exit(&s, 0, 12000, 7, "request");
	story_end(&s, 0, 13000);
	story_off_cpu(&s, 0, 13000, 1, 1000, 0);
	story_analyse(&s);
	CU_ASSERT_EQUAL_FATAL(s.analysis.spans.n, 1);
	type = s.analysis.spans.items[0];
	CU_ASSERT_EQUAL(type->active_ns, 11000000);
	parts = d9__time_parts_of(&type->time, type->active_ns + type->idle_ns,
			     type->active_ns + type->idle_ns - type->active_in_polls_ns, 0);
	CU_ASSERT_EQUAL(parts.waiting_ns, 11000000 - type->active_in_polls_ns);
	CU_ASSERT_EQUAL(parts.on_cpu_ns + parts.ready_ns + parts.blocked_ns + parts.waiting_ns +
				parts.unknown_ns,
			11000000);
	/* In the second call: of 3 of the 4 ms at least 2 on the CPU. */
	CU_ASSERT(parts.on_cpu_ns >= 2000000);
	story_free(&s);
}

static void test_loop_has_parts_of_its_waits_too(void)
{
	const struct d9__worker *worker;
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_park(&s, 0, 1000, 0);
	story_unpark_waited(&s, 0, 11000, 2000);
	story_poll(&s, 0, 11000, 21000, 1, SLOW);
	story_off_cpu(&s, 0, 21000, 1, 3000, 1000);
	story_park(&s, 0, 21000, 6000);
	story_unpark(&s, 0, 25000, 6500);
	story_park(&s, 0, 25000, 6500);
	story_analyse(&s);
	worker = s.analysis.timeline.items[0];
	parts = d9__time_parts_of(&worker->time, worker->active_ns + worker->parked_ns,
			     worker->waiting_ns, 0);
	CU_ASSERT_EQUAL(parts.total_ns, 24000000);
	CU_ASSERT_EQUAL(parts.waiting_ns, 8000000 + 3500000);
	check(&parts, 6500, 3000, 3000, 0);
	story_free(&s);
}

static void test_short_calls_share_the_wait_for_a_cpu_of_their_period(void)
{
	struct d9__parts parts;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 4);
	for (unsigned i = 0; i < 8; i++)
		story_poll(&s, 0, 500 * i, 500 * i + 250, 1, SLOW);
	story_put_aside(&s, 0, 4000, 2000);
	story_park(&s, 0, 4000, 4 + 1000);
	story_analyse(&s);
	parts = parts_of(&s, SLOW);
	check(&parts, 500, 1000, 0, 500);
	story_free(&s);
}

static void test_more_callbacks_than_are_told_apart_leave_unknown_time(void)
{
	struct d9__parts first, last;
	char place[64];
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 4);
	for (unsigned i = 0; i < 2 * D9__PERIOD_STAYS; i++) {
		snprintf(place, sizeof(place), "app+0x%x @ app+0x1", 0x1000 + i);
		story_poll(&s, 0, 10 * i, 10 * i + 10, 1 + i, place);
	}
	story_park(&s, 0, 20 * D9__PERIOD_STAYS, 4 + 20 * D9__PERIOD_STAYS);
	story_analyse(&s);
	first = parts_of(&s, "app+0x1000 @ app+0x1");
	last = parts_of(&s, place);
	check(&first, 10, 0, 0, 0);
	check(&last, 0, 0, 0, 10);
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "long call has the parts of its own reading",
	  test_long_call_has_the_parts_of_its_own_reading },
	{ "finding tells the parts of its longest calls",
	  test_finding_tells_the_parts_of_its_longest_calls },
	{ "readings that contradict each other believe the kernel first",
	  test_readings_that_contradict_each_other_believe_the_kernel_first },
	{ "readings of any size add up", test_readings_of_any_size_add_up },
	{ "page faults from disk are told with blocked time",
	  test_page_faults_from_disk_are_told_with_blocked_time },
	{ "CPU time that was not used is unknown", test_cpu_time_that_was_not_used_is_unknown },
	{ "call that never gave up the CPU was ready",
	  test_call_that_never_gave_up_the_cpu_was_ready },
	{ "blocked time is told by function", test_blocked_time_is_told_by_function },
	{ "short calls share the reading of their period",
	  test_short_calls_share_the_reading_of_their_period },
	{ "short calls share the wait for a CPU of their period",
	  test_short_calls_share_the_wait_for_a_cpu_of_their_period },
	{ "time without readings is unknown", test_time_without_readings_is_unknown },
	{ "long call without a reading has what others cannot have used",
	  test_long_call_without_a_reading_has_what_others_cannot_have_used },
	{ "samples refine what is unknown where enough are expected",
	  test_samples_refine_what_is_unknown_where_enough_are_expected },
	{ "call that ran a loop has its own time alone",
	  test_call_that_ran_a_loop_has_its_own_time_alone },
	{ "function inside has what is certainly its own",
	  test_function_inside_has_what_is_certainly_its_own },
	{ "span waits between polls and has the parts of them",
	  test_span_waits_between_polls_and_has_the_parts_of_them },
	{ "loop has parts of its waits, too", test_loop_has_parts_of_its_waits_too },
	{ "more callbacks than are told apart leave unknown time",
	  test_more_callbacks_than_are_told_apart_leave_unknown_time },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("time_parts", tests);
}
