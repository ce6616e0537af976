/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about shares of a loop's time: loops at their limit, and callbacks that sleep it away.
 */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define ASK  "app+0x100 @ app+0x110"
#define TICK "app+0x200 @ app+0x210"

#define MS(n)	   ((n)*UINT64_C(1000))
#define SECONDS(n) ((n)*UINT64_C(1000000))

static int has(const char *text, const char *part)
{
	return text && strstr(text, part) != NULL;
}

/* ---- at its limit ---- */

static const struct d9__finding *saturated(const struct story *s)
{
	return story_finding_of(s, "saturated");
}

/* From |us| to |end_us| turns of 1 ms, of which |place| runs for |run_us|, and the rest is sleep.
 */
static void turns(struct story *s, uint64_t us, uint64_t end_us, uint64_t run_us, const char *place)
{
	for (; us < end_us; us += MS(1)) {
		story_unpark(s, 0, us, 0);
		story_poll(s, 0, us, us + run_us, 1, place);
		story_park(s, 0, us + run_us, 0);
	}
}

static void end(struct story *s, uint64_t us)
{
	story_unpark(s, 0, us, 0);
	story_park(s, 0, us, 0);
	story_analyse(s);
}

/* Busy for |busy_us|, and idle until |us|. */
static void busy_for(struct story *s, uint64_t busy_us, uint64_t us)
{
	story_begin(s);
	turns(s, 0, busy_us, 900, ASK);
	end(s, us);
}

static void test_loop_that_is_busy_for_three_seconds_is_at_its_limit(void)
{
	struct story s;

	busy_for(&s, SECONDS(3), SECONDS(60));
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "saturated");
	CU_ASSERT_EQUAL(saturated(&s)->severity, D9__INFO);
	CU_ASSERT_STRING_EQUAL(saturated(&s)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(saturated(&s)->brief,
			       "has most of it: worker 0 is awake for 4 % of the time");
	CU_ASSERT(has(saturated(&s)->message, "busy for 3.00 s without a break (app+0x100 4 %"));
	CU_ASSERT(
		has(saturated(&s)->evidence[0].text, "app+0x100 has most, 3,000 calls in 2.70 s"));
	CU_ASSERT_EQUAL(saturated(&s)->evidence[0].duration_ns, UINT64_C(3000000000));
	story_free(&s);

	busy_for(&s, SECONDS(3) - MS(250), SECONDS(60));
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
	story_free(&s);
}

static void test_loop_that_is_busy_for_a_fifth_of_the_trace_is_at_its_limit(void)
{
	struct story s;

	busy_for(&s, SECONDS(1), SECONDS(5));
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "saturated");
	story_free(&s);
	busy_for(&s, SECONDS(1), SECONDS(5) + MS(1));
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
	story_free(&s);
}

static void test_loop_that_is_busy_for_less_than_a_second_is_not_judged(void)
{
	struct story s;

	busy_for(&s, MS(750), MS(2000));
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
	story_free(&s);
}

/* Awake for 75 % all the time: never at its limit. */
static void test_loop_with_a_quarter_of_its_time_to_spare_is_not_at_its_limit(void)
{
	struct story s;

	story_begin(&s);
	turns(&s, 0, SECONDS(5), 750, ASK);
	end(&s, SECONDS(5));
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
	story_free(&s);
}

/* ASK has most of a busy loop's time, and one of its calls of 60 ms is a finding by itself. */
static void test_loop_whose_largest_owner_is_accused_already_is_not_told_again(void)
{
	struct story s;

	story_begin(&s);
	turns(&s, 0, SECONDS(4), 900, ASK);
	story_unpark(&s, 0, SECONDS(4), 0);
	story_poll(&s, 0, SECONDS(4), SECONDS(4) + MS(60), 1, ASK);
	story_park(&s, 0, SECONDS(4) + MS(60), 0);
	end(&s, SECONDS(5));

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->name, "app+0x100");
	CU_ASSERT(story_finding_of(&s, "long-callback")->severity < D9__INFO);
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
	story_free(&s);
}

/* Another callback is accused, and most of the time is ASK's. */
static void test_loop_where_another_callback_is_accused_is_told(void)
{
	struct story s;

	story_begin(&s);
	turns(&s, 0, SECONDS(4), 900, ASK);
	story_unpark(&s, 0, SECONDS(4), 0);
	story_poll(&s, 0, SECONDS(4), SECONDS(4) + MS(60), 2, TICK);
	story_park(&s, 0, SECONDS(4) + MS(60), 0);
	end(&s, SECONDS(5));

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->name, "app+0x200");
	CU_ASSERT_STRING_EQUAL(saturated(&s)->name, "app+0x100");
	story_free(&s);
}

static void test_loop_whose_library_has_most_of_its_time_is_told_without_a_callback(void)
{
	struct story s;

	story_begin(&s);
	for (uint64_t us = 0; us < SECONDS(4); us += MS(1)) {
		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us, us + 50, 1, ASK);
		story_park(&s, 0, us + 900, 0);
	}
	end(&s, SECONDS(4));

	CU_ASSERT_STRING_EQUAL(saturated(&s)->brief, "worker 0 is awake for 90 % of the time");
	CU_ASSERT_PTR_NULL(saturated(&s)->callback);
	CU_ASSERT(has(saturated(&s)->message, "(library 85 %, app+0x100 5 %)"));
	story_free(&s);
}

/* Of each millisecond the machine has 0.6: what is left is 0.3 ms awake, and 0.1 ms of sleep, or
 * 0.05 more of one. */
static void test_what_the_machine_took_is_no_time_to_spare(void)
{
	for (uint64_t idle = 0; idle < 2; idle++) {
		struct story s;

		story_begin(&s);
		for (uint64_t us = 0; us < SECONDS(5); us += MS(1)) {
			story_park(&s, 0, us, 0);
			story_unpark_waited(&s, 0, us + 700 - 50 * idle, 625 - 50 * idle);
			story_poll(&s, 0, us + 700, us + MS(1) - 25 * idle, 1, ASK);
		}
		story_park(&s, 0, SECONDS(5), 0);
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "saturated");
		story_free(&s);
	}
}

/* ---- sleeps that are short, and many ---- */

static const struct d9__finding *blocked(const struct story *s)
{
	return story_finding_of(s, "blocked-callback");
}

/* |n| turns of 10 ms: ASK runs for |run_us|, and sleeps in read() for |asleep_us| of that. */
static void sleeps(struct story *s, unsigned n, uint64_t run_us, uint64_t asleep_us)
{
	story_begin(s);
	for (unsigned i = 0; i < n; i++) {
		uint64_t us = MS(10) * i;

		story_unpark(s, 0, us, 0);
		story_start(s, 0, us, 1, ASK);
		story_waited(s, 0, us + asleep_us, 1, "read", asleep_us);
		story_end(s, 0, us + run_us);
		story_park(s, 0, us + run_us, 0);
	}
	end(s, MS(10) * n);
}

static void test_callback_that_sleeps_a_tenth_of_the_loop_s_time_is_told(void)
{
	struct story s;

	sleeps(&s, 300, MS(5), MS(1));
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "blocked-callback");
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(blocked(&s)->brief,
			       "sleeps 10 % of the loop's time, 1.00 ms each, 300 calls");
	CU_ASSERT(
		has(blocked(&s)->message,
		    "sleeps for 10 % of worker 0's time, in read(): 1.00 ms in each of 300 calls, "
		    "300 ms in all"));
	story_free(&s);

	sleeps(&s, 300, MS(5), MS(1) - 1);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "");
	story_free(&s);
}

/* Each call sleeps for 3 ms in pieces, one piece in twenty calls is long enough to be told. */
static void test_remedy_of_short_sleeps_is_that_of_the_few_longer_ones(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t us = MS(10) * i;

		story_unpark(&s, 0, us, 0);
		story_start(&s, 0, us, 1, ASK);
		if (i % 20 == 0)
			story_waited(&s, 0, us + 1100, 1, "nanosleep", 1100);
		story_end(&s, 0, us + MS(4));
		story_off_cpu(&s, 0, us + MS(4), 1, MS(3), 0);
		story_park(&s, 0, us + MS(4), 0);
	}
	end(&s, SECONDS(3));
	CU_ASSERT(has(blocked(&s)->message, "sleeps for 30 % of worker 0's time: 3.00 ms in each"));
	CU_ASSERT(has(blocked(&s)->advice, "Set a timer"));
	story_free(&s);
}

static void test_callback_that_sleeps_half_of_the_loop_s_time_is_critical(void)
{
	struct story s;

	sleeps(&s, 300, MS(6), MS(5));
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__CRITICAL);
	story_free(&s);
	sleeps(&s, 300, MS(6), MS(5) - 1);
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__WARNING);
	story_free(&s);
}

/* 2 % of the loop's time, and of the time that it was awake a quarter or just below. */
static void test_callback_that_sleeps_a_quarter_of_the_time_awake_is_told(void)
{
	struct story s;

	sleeps(&s, 300, 800, 200);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "blocked-callback");
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__WARNING);
	story_free(&s);
	sleeps(&s, 300, 804, 200);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "");
	story_free(&s);

	/* Of a loop that is nearly idle it is a note. */
	sleeps(&s, 300, 500, 200);
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__WARNING);
	story_free(&s);
	sleeps(&s, 300, 490, 200);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "blocked-callback");
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__INFO);
	story_free(&s);
}

static void test_callback_that_sleeps_less_than_a_hundredth_of_the_time_is_not_told(void)
{
	struct story s;

	sleeps(&s, 300, 110, 100);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "blocked-callback");
	story_free(&s);
	sleeps(&s, 300, 109, 99);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "");
	story_free(&s);
}

static void test_sleep_is_not_judged_in_less_than_a_second(void)
{
	struct story s;

	sleeps(&s, 100, MS(6), MS(5));
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "blocked-callback");
	story_free(&s);
	sleeps(&s, 99, MS(6), MS(5));
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "");
	story_free(&s);
}

/* ASK sleeps 8 % of either loop's time, or 12 % of the second's. */
static void on_two_workers(struct story *s, uint64_t asleep_us)
{
	story_begin(s);
	for (unsigned i = 0; i < 300; i++)
		for (unsigned worker = 0; worker < 2; worker++) {
			uint64_t us = MS(10) * i + MS(5) * worker,
				 sleep_us = worker ? asleep_us : 800;

			story_unpark(s, worker, us, 0);
			story_start(s, worker, us, 1 + worker, ASK);
			story_waited(s, worker, us + sleep_us, 1 + worker, "read", sleep_us);
			story_end(s, worker, us + MS(5));
			story_park(s, worker, us + MS(5), 0);
		}
	story_analyse(s);
}

static void test_sleeps_of_several_loops_are_not_added_up(void)
{
	struct story s;

	on_two_workers(&s, 800);
	CU_ASSERT_STRING_EQUAL(blocked(&s)->check, "");
	story_free(&s);
	on_two_workers(&s, 1200);
	CU_ASSERT(has(blocked(&s)->message, "sleeps for 12 % of worker 1's time"));
	story_free(&s);
}

/* The machine has 4 of each 10 ms: 0.6 of 6 ms are a tenth. */
static void test_sleep_is_a_share_of_what_the_machine_left(void)
{
	for (int taken = 0; taken < 2; taken++) {
		struct story s;

		story_begin(&s);
		for (unsigned i = 0; i < 300; i++) {
			uint64_t us = MS(10) * i;

			story_park(&s, 0, us, 0);
			story_unpark_waited(&s, 0, us + MS(7), taken ? MS(4) : 0);
			story_start(&s, 0, us + MS(7), 1, ASK);
			story_waited(&s, 0, us + MS(7) + 600, 1, "read", 600);
			story_end(&s, 0, us + MS(10));
		}
		story_park(&s, 0, SECONDS(3), 0);
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(blocked(&s)->check, taken ? "blocked-callback" : "");
		story_free(&s);
	}
}

/* One call of 30 ms that slept is a warning by itself; with the others it slept the half of the
 * time away. */
static void test_long_sleep_is_as_bad_as_all_sleeps_together(void)
{
	for (int often = 0; often < 2; often++) {
		struct story s;

		story_begin(&s);
		for (unsigned i = 0; i < 100; i++) {
			uint64_t us = MS(20) * i, run_us = often ? MS(12) : 500;

			story_unpark(&s, 0, us, 0);
			story_start(&s, 0, us, 1, ASK);
			if (often)
				story_waited(&s, 0, us + MS(11), 1, "read", MS(11));
			story_end(&s, 0, us + run_us);
			if (often)
				story_off_cpu(&s, 0, us + run_us, 1, MS(11), 0);
			story_park(&s, 0, us + run_us, 0);
		}
		story_unpark(&s, 0, SECONDS(2), 0);
		story_start(&s, 0, SECONDS(2), 1, ASK);
		story_waited(&s, 0, SECONDS(2) + MS(30), 1, "read", MS(30));
		story_end(&s, 0, SECONDS(2) + MS(30));
		story_off_cpu(&s, 0, SECONDS(2) + MS(30), 1, MS(30), 0);
		story_park(&s, 0, SECONDS(2) + MS(30), 0);
		story_analyse(&s);

		CU_ASSERT(has(blocked(&s)->brief, "blocks 30.0 ms in read()"));
		CU_ASSERT_EQUAL(blocked(&s)->severity, often ? D9__CRITICAL : D9__WARNING);
		story_free(&s);
	}
}

/* ---- works for nothing ---- */

/* A loop that is busy for 4 s with 4,000 calls of ASK, of whose reads so many bring nothing. */
static void read_for(struct story *s, const struct story_io *io)
{
	story_begin(s);
	story_say(s, "source.io", "on");
	turns(s, 0, SECONDS(4), 900, ASK);
	story_io(s, SECONDS(4), 1, io);
	end(s, SECONDS(4));
}

static const struct d9__finding *for_nothing(const struct story *s)
{
	return story_finding_of(s, "works-for-nothing");
}

static void test_callback_whose_reads_bring_nothing_works_for_nothing(void)
{
	static const struct {
		struct story_io io;
		const char *said, *advice;
	} cases[] = {
		{ { .reads = 4000, .eof = 3999 }, "read() returns 0", "Close the descriptor" },
		{ { .reads = 4000, .again = 4000 }, "read() has to wait (EAGAIN)", "Wait for" },
		{ { .reads = 4000, .errors = 4000, .last_errno = 104 },
		  "read() fails with ECONNRESET",
		  "Close the descriptor" },
		{ { .reads = 4000, .looks = 3990 },
		  "read() takes nothing (MSG_PEEK)",
		  "keep it until the message is whole" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story s;

		read_for(&s, &cases[i].io);
		CU_ASSERT_STRING_EQUAL(for_nothing(&s)->check, "works-for-nothing");
		CU_ASSERT_EQUAL(for_nothing(&s)->severity, D9__CRITICAL);
		CU_ASSERT(has(for_nothing(&s)->brief, cases[i].said));
		CU_ASSERT(has(for_nothing(&s)->advice, cases[i].advice));
		CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
		story_free(&s);
	}
}

/* Errors come in the first second, and 0 bytes in the next: the errno of the former stays known. */
static void test_errno_of_an_earlier_second_stays_known(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "source.io", "on");
	turns(&s, 0, SECONDS(4), 900, ASK);
	story_io(&s, SECONDS(2), 1,
		 &(struct story_io) { .reads = 3000, .errors = 3000, .last_errno = 104 });
	story_io(&s, SECONDS(4), 1, &(struct story_io) { .reads = 1000, .eof = 1000 });
	end(&s, SECONDS(4));
	CU_ASSERT(has(for_nothing(&s)->brief, "fails with ECONNRESET"));
	story_free(&s);
}

static void test_callback_whose_reads_bring_data_is_no_finding(void)
{
	static const struct story_io innocent[] = {
		{ .reads = 4000 },
		/* Each call looks how much there is before it takes that. */
		{ .reads = 8000, .looks = 4000 },
		/* Each call reads until there is nothing left. */
		{ .reads = 8000, .again = 4000 },
	};

	for (size_t i = 0; i < sizeof(innocent) / sizeof(innocent[0]); i++) {
		struct story s;

		read_for(&s, &innocent[i]);
		CU_ASSERT_STRING_EQUAL(for_nothing(&s)->check, "");
		CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
		story_free(&s);
	}
}

/* A loop that is busy for 4 s with calls of ASK, one each |each_us|, that are there at once. */
static void again_for(struct story *s, const char *kind, unsigned reason, unsigned tasks,
		      uint64_t each_us)
{
	story_begin(s);
	story_say(s, "source.io", "on");
	for (unsigned task = 1; task <= tasks; task++)
		story_spawn(s, 0, task, ASK, kind);
	story_unpark(s, 0, 0, 0);
	for (uint64_t i = 0; i < SECONDS(4) / each_us; i++) {
		if (reason == D9__WAKE_ACTIVE)
			story_wake(s, i * each_us, 1 + i % tasks, 1 + i % tasks, reason);
		else if (reason)
			story_wake_by(s, i * each_us, 255, 1 + i % tasks, reason);
		story_poll(s, 0, i * each_us + 1, (i + 1) * each_us - 3, 1 + i % tasks, ASK);
	}
	/* The last one is long by the machine's doing. */
	story_poll(s, 0, SECONDS(4), SECONDS(4) + MS(12), 1, ASK);
	story_off_cpu(s, 0, SECONDS(4) + MS(12), 1, 0, MS(11));
	story_park(s, 0, SECONDS(4) + MS(12), 0);
	end(s, SECONDS(4) + MS(12));
}

static void test_callback_that_is_called_again_at_once_works_for_nothing(void)
{
	static const struct {
		const char *kind;
		unsigned reason;
		uint64_t each_us;
		enum d9__severity severity;
	} cases[] = { { "timer", D9__WAKE_TIMER, 20, D9__CRITICAL },
		      { "timer", D9__WAKE_TIMER, 55, D9__CRITICAL },
		      { "idle", 0, 20, D9__CRITICAL },
		      { "idle", 0, 55, D9__CRITICAL },
		      { "async", D9__WAKE_ACTIVE, 20, D9__CRITICAL },
		      /* It may be read in a way that is not counted. */
		      { "io", D9__WAKE_FD, 20, D9__WARNING } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story s;

		again_for(&s, cases[i].kind, cases[i].reason, 1, cases[i].each_us);
		CU_ASSERT_STRING_EQUAL(for_nothing(&s)->check, "works-for-nothing");
		CU_ASSERT_EQUAL(for_nothing(&s)->severity, cases[i].severity);
		CU_ASSERT(has(for_nothing(&s)->brief, "is called again at once"));
		CU_ASSERT_PTR_NULL(for_nothing(&s)->time);
		CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "");
		story_free(&s);
	}
}

/* Pieces of a job, and timers and descriptors of many connections. */
static void test_callback_that_does_a_piece_each_time_is_no_finding(void)
{
	static const struct {
		const char *kind;
		unsigned reason, tasks;
		uint64_t each_us;
	} cases[] = { { "idle", 0, 1, 200 },
		      { "timer", D9__WAKE_TIMER, 1, 200 },
		      { "timer", D9__WAKE_TIMER, 100, 20 },
		      { "io", D9__WAKE_FD, 100, 20 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story s;

		again_for(&s, cases[i].kind, cases[i].reason, cases[i].tasks, cases[i].each_us);
		CU_ASSERT_STRING_EQUAL(for_nothing(&s)->check, "");
		story_free(&s);
	}
}

/* It may have done anything else in the other calls. */
static void test_callback_that_reads_in_few_of_its_calls_is_no_finding(void)
{
	struct story s;

	read_for(&s, &(struct story_io) { .reads = 1000, .again = 1000 });
	CU_ASSERT_STRING_EQUAL(for_nothing(&s)->check, "");
	CU_ASSERT_STRING_EQUAL(saturated(&s)->check, "saturated");
	story_free(&s);
}

/* ---- few long calls ---- */

/* For 6 s turns of 10 ms, of which the callback has |run_us|, and one call of 60 ms. */
static const struct d9__finding *one_long_call(struct story *s, uint64_t run_us)
{
	story_begin(s);
	for (uint64_t us = 0; us < SECONDS(6); us += MS(10)) {
		story_unpark(s, 0, us, 0);
		story_poll(s, 0, us, us + run_us, 1, ASK);
		story_park(s, 0, us + run_us, 0);
	}
	story_unpark(s, 0, SECONDS(6), 0);
	story_poll(s, 0, SECONDS(6), SECONDS(6) + MS(60), 1, ASK);
	story_park(s, 0, SECONDS(6) + MS(60), 0);
	end(s, SECONDS(6) + MS(70));
	return story_finding_of(s, "long-callback");
}

static void test_few_long_calls_are_told_with_the_share_of_the_time_that_all_have(void)
{
	struct story s;

	CU_ASSERT_STRING_EQUAL(one_long_call(&s, MS(4))->brief,
			       "blocks the loop 60.0 ms, 41 % of the time in all");
	CU_ASSERT(has(story_finding_of(&s, "long-callback")->message, "1 of 601 calls"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->figure, "60.0 ms");
	story_free(&s);
	/* Of little time the calls say more. */
	CU_ASSERT_STRING_EQUAL(one_long_call(&s, 800)->brief,
			       "blocks the loop 60.0 ms, 1 of 601 calls");
	story_free(&s);
}

static void test_share_of_the_time_stands_beside_calls_that_are_all_long(void)
{
	struct story s;

	story_begin(&s);
	for (uint64_t us = 0; us < SECONDS(2); us += MS(200)) {
		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us, us + MS(50), 1, ASK);
		story_park(&s, 0, us + MS(50), 0);
	}
	end(&s, SECONDS(2));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->brief,
			       "blocks the loop 50.0 ms, 10 of 10 calls, 25 % of the time");
	story_free(&s);
}

static CU_TestInfo tests[] = {
	{ "few long calls are told with the share of the time that all have",
	  test_few_long_calls_are_told_with_the_share_of_the_time_that_all_have },
	{ "the share of the time stands beside calls that are all long",
	  test_share_of_the_time_stands_beside_calls_that_are_all_long },
	{ "the remedy of short sleeps is that of the few longer ones",
	  test_remedy_of_short_sleeps_is_that_of_the_few_longer_ones },
	{ "a callback whose reads bring nothing works for nothing",
	  test_callback_whose_reads_bring_nothing_works_for_nothing },
	{ "the errno of an earlier second stays known",
	  test_errno_of_an_earlier_second_stays_known },
	{ "a callback whose reads bring data is no finding",
	  test_callback_whose_reads_bring_data_is_no_finding },
	{ "a callback that reads in few of its calls is no finding",
	  test_callback_that_reads_in_few_of_its_calls_is_no_finding },
	{ "a callback that is called again at once works for nothing",
	  test_callback_that_is_called_again_at_once_works_for_nothing },
	{ "a callback that does a piece each time is no finding",
	  test_callback_that_does_a_piece_each_time_is_no_finding },
	{ "a loop that is busy for three seconds is at its limit",
	  test_loop_that_is_busy_for_three_seconds_is_at_its_limit },
	{ "a loop that is busy for a fifth of the trace is at its limit",
	  test_loop_that_is_busy_for_a_fifth_of_the_trace_is_at_its_limit },
	{ "a loop that is busy for less than a second is not judged",
	  test_loop_that_is_busy_for_less_than_a_second_is_not_judged },
	{ "a loop with a quarter of its time to spare is not at its limit",
	  test_loop_with_a_quarter_of_its_time_to_spare_is_not_at_its_limit },
	{ "a loop whose largest owner is accused already is not told again",
	  test_loop_whose_largest_owner_is_accused_already_is_not_told_again },
	{ "a loop where another callback is accused is told",
	  test_loop_where_another_callback_is_accused_is_told },
	{ "a loop whose library has most of its time is told without a callback",
	  test_loop_whose_library_has_most_of_its_time_is_told_without_a_callback },
	{ "what the machine took is no time to spare",
	  test_what_the_machine_took_is_no_time_to_spare },
	{ "a callback that sleeps a tenth of the loop's time is told",
	  test_callback_that_sleeps_a_tenth_of_the_loop_s_time_is_told },
	{ "a callback that sleeps half of the loop's time is critical",
	  test_callback_that_sleeps_half_of_the_loop_s_time_is_critical },
	{ "a callback that sleeps a quarter of the time awake is told",
	  test_callback_that_sleeps_a_quarter_of_the_time_awake_is_told },
	{ "a callback that sleeps less than a hundredth of the time is not told",
	  test_callback_that_sleeps_less_than_a_hundredth_of_the_time_is_not_told },
	{ "sleep is not judged in less than a second",
	  test_sleep_is_not_judged_in_less_than_a_second },
	{ "sleeps of several loops are not added up",
	  test_sleeps_of_several_loops_are_not_added_up },
	{ "sleep is a share of what the machine left",
	  test_sleep_is_a_share_of_what_the_machine_left },
	{ "a long sleep is as bad as all sleeps together",
	  test_long_sleep_is_as_bad_as_all_sleeps_together },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("check_shares", tests);
}
