/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about wakes for nothing, about which task or thread of many is slow, and about CPU time
 * outside of loops. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define READ  "app+0x100 @ app+0x110"
#define TICK  "app+0x200 @ app+0x210"
#define FD    1
#define TIMER 2

#define MS(n)	   ((n)*UINT64_C(1000))
#define SECONDS(n) ((n)*UINT64_C(1000000))

static int has(const char *text, const char *part)
{
	return text && strstr(text, part) != NULL;
}

static const struct d9__finding *empty_wakes(const struct story *s)
{
	return story_finding_of(s, "empty-wakes");
}

/* For two seconds, each 4 ms: READ is called, and |io| comes of it; by a timer, or not. */
static void answers(struct story *s, const struct story_io *io, unsigned reason)
{
	story_begin(s);
	story_say(s, "source.io", "on");
	story_spawn_fd(s, 0, 1, READ, 7);
	story_park(s, 0, 0, 0);
	for (uint64_t us = MS(4); us <= SECONDS(2); us += MS(4)) {
		story_unpark(s, 0, us, 0);
		story_wake(s, us, 0, 1, reason);
		story_poll(s, 0, us, us + 10, 1, READ);
		story_park(s, 0, us + 20, 0);
	}
	story_io(s, SECONDS(2) + 30, 1, io);
	story_analyse(s);
}

/* Of |n| reads |again| bring nothing. */
static void reads(struct story *s, uint64_t n, uint64_t again, unsigned reason)
{
	answers(s, &(struct story_io) { .reads = n, .again = again }, reason);
}

static void test_callback_that_wakes_and_reads_nothing_is_named(void)
{
	struct story s;

	reads(&s, 500, 400, FD);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "empty-wakes");
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->name, "app+0x100");
	CU_ASSERT(has(empty_wakes(&s)->message, "has to wait (EAGAIN)"));
	story_free(&s);
}

/*
 * Four seconds in which a loop of GLib goes round |rounds| times a second and asks a source of
 * READ in each; every 100 ms it calls something, every |wait_us| it waits.
 */
static void go_round(struct story *s, uint64_t rounds, uint64_t wait_us, bool by_itself)
{
	story_begin(s);
	story_say(s, "source.io", "on");
	story_say(s, "loop.glib.capabilities", "poll=full,park=on,wake=full,task_end=full");
	story_spawn(s, 0, 1, READ, "custom");
	story_spawn(s, 0, 2, TICK, "timer");
	story_unpark(s, 0, 0, 0);
	for (uint64_t us = 1; us < SECONDS(4); us += MS(100)) {
		story_poll(s, 0, us, us + 10, 2, TICK);
		if (rounds)
			story_source_time(s, 0, us + 20, 1, "prepare", rounds / 10, MS(3), 10);
		if (by_itself)
			story_source_time(s, 0, us + 20, 0, "between", 50000, MS(6), 10);
		for (uint64_t at = us + 100; wait_us && at + wait_us < us + MS(100);
		     at += wait_us) {
			story_park(s, 0, at, 0);
			story_unpark(s, 0, at + wait_us / 2, 0);
		}
	}
	story_park(s, 0, SECONDS(4), 0);
	story_analyse(s);
}

static void test_source_that_has_its_loop_not_wait_is_named(void)
{
	struct story s;

	go_round(&s, 500000, 0, false);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "empty-wakes");
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->name, "app+0x100");
	CU_ASSERT_EQUAL(empty_wakes(&s)->severity, D9__CRITICAL);
	CU_ASSERT(has(empty_wakes(&s)->brief, "has its loop not wait, 500,000 rounds a second"));
	CU_ASSERT(has(empty_wakes(&s)->advice, "timeout to -1"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "inside-library")->check, "");
	story_free(&s);
}

/* It is asked in few rounds, the loop waits in most, or the program goes round by itself. */
static void test_source_that_is_only_asked_is_no_finding(void)
{
	static const struct {
		uint64_t rounds, wait_us;
		bool by_itself;
	} cases[] = { { 500, 0, false },
		      { 2000, MS(2), false },
		      { 500000, 0, true },
		      { 0, 0, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story s;

		go_round(&s, cases[i].rounds, cases[i].wait_us, cases[i].by_itself);
		CU_ASSERT(!has(empty_wakes(&s)->brief, "its loop not wait"));
		/* Nor are rounds of a program that does not wait the library's. */
		if (cases[i].by_itself)
			CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "inside-library")->check, "");
		story_free(&s);
	}
}

static void test_callback_that_polls_by_a_timer_is_told_to_wait_instead(void)
{
	struct story s;

	reads(&s, 500, 500, TIMER);
	CU_ASSERT(has(empty_wakes(&s)->advice, "Wait for the descriptor instead"));
	CU_ASSERT(has(empty_wakes(&s)->advice, "for reading (EV_READ"));
	story_free(&s);

	/* By how it tries and fails. */
	answers(&s, &(struct story_io) { .writes = 500, .again = 450 }, TIMER);
	CU_ASSERT(has(empty_wakes(&s)->message, "write("));
	CU_ASSERT(has(empty_wakes(&s)->advice, "for writing (EV_WRITE"));
	story_free(&s);
	answers(&s, &(struct story_io) { .reads = 500, .errors = 450, .last_errno = 104 }, TIMER);
	CU_ASSERT(has(empty_wakes(&s)->advice, "Stop the timer"));
	story_free(&s);
}

/* It reads until there is no more: one that brings something and one that does not, each time. */
static void test_callback_that_reads_until_there_is_no_more_wakes_for_something(void)
{
	struct story s;

	reads(&s, 1000, 500, FD);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "");
	story_free(&s);
}

static void test_callback_that_seldom_reads_nothing_wakes_for_something(void)
{
	struct story s;

	reads(&s, 500, 90, FD);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "");
	story_free(&s);
}

/* It greets each connection that it gets: that makes up for none that another loop got. */
static void test_listener_that_others_outrun_wakes_for_nothing_whatever_it_writes(void)
{
	struct story s;

	answers(&s, &(struct story_io) { .accepts = 500, .again = 250, .writes = 250 }, FD);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->name, "app+0x100");
	CU_ASSERT(has(empty_wakes(&s)->message, "a thundering herd"));
	CU_ASSERT(has(empty_wakes(&s)->advice, "EPOLLEXCLUSIVE"));
	story_free(&s);
	/* All there are, in each call. */
	answers(&s, &(struct story_io) { .accepts = 1000, .again = 500, .writes = 500 }, FD);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "");
	story_free(&s);
}

/* One function for all descriptors, as gevent has: it took a few connections, reads until there is
 * no more, and answers. */
static void test_function_that_serves_and_took_connections_too_is_no_listener(void)
{
	struct story s;

	answers(&s,
		&(struct story_io) { .reads = 1000, .again = 500, .writes = 500, .accepts = 10 },
		FD);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "");
	story_free(&s);
}

/* A loop of libevent that sleeps. */
static void begin(struct story *s)
{
	story_begin(s);
	story_say(s, "loop.libevent.capabilities", "poll=full,park=on");
	story_park(s, 0, 0, 0);
}

/* Each 4 ms an empty wake, and a timer's call |late_us| later. */
static void early_wakes(struct story *s, uint64_t late_us, unsigned reason)
{
	begin(s);
	for (uint64_t us = MS(8); us <= SECONDS(2); us += MS(8)) {
		story_unpark(s, 0, us, 0);
		story_park(s, 0, us + 5, 0);
		story_unpark(s, 0, us + late_us, 0);
		story_wake(s, us + late_us, 0, 1, reason);
		story_poll(s, 0, us + late_us, us + late_us + 5, 1, READ);
		story_park(s, 0, us + late_us + 8, 0);
	}
	story_analyse(s);
}

static void test_wake_that_comes_early_for_a_timer_is_not_for_nothing(void)
{
	struct story s;

	/* By a clock of 4 ms a library looks again and again. */
	begin(&s);
	for (uint64_t us = MS(8); us <= SECONDS(2); us += MS(8)) {
		for (unsigned i = 0; i < 4; i++) {
			story_unpark(&s, 0, us + MS(i), 0);
			if (i == 3) {
				story_wake(&s, us + MS(i), 0, 1, TIMER);
				story_poll(&s, 0, us + MS(i), us + MS(i) + 5, 1, READ);
			}
			story_park(&s, 0, us + MS(i) + 8, 0);
		}
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "");
	story_free(&s);

	early_wakes(&s, MS(2), TIMER);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "");
	story_free(&s);
	early_wakes(&s, MS(6), TIMER);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "empty-wakes");
	story_free(&s);
	early_wakes(&s, MS(2), FD);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "empty-wakes");
	story_free(&s);
}

/* GLib looks again after each call; where that comes to nothing again and again, the loop turns in
 * circles. */
static void test_look_at_descriptors_behind_a_call_is_no_wake(void)
{
	struct story s;
	uint64_t look_us;

	begin(&s);
	for (uint64_t us = MS(4); us <= SECONDS(2); us += MS(4)) {
		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us, us + 10, 1, READ);
		story_park(&s, 0, us + 20, 0);
		/* Of a thousand descriptors, every other time. */
		look_us = us / MS(4) % 2 ? 3 : 300;
		story_unpark(&s, 0, us + 20 + look_us, 0);
		story_park(&s, 0, us + 22 + look_us, 0);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "");
	story_free(&s);

	/* Critical from half of the time on. */
	for (unsigned awake_us = 8; awake_us <= 18; awake_us += 10) {
		begin(&s);
		for (uint64_t us = 20; us <= SECONDS(2); us += 20) {
			story_unpark(&s, 0, us, 0);
			story_park(&s, 0, us + awake_us, 0);
		}
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(empty_wakes(&s)->check, "empty-wakes");
		CU_ASSERT_EQUAL(empty_wakes(&s)->severity,
				awake_us < 10 ? D9__WARNING : D9__CRITICAL);
		story_free(&s);
	}
}

/* ---- one of many ---- */

/* Twenty tasks of |place|, one after the other, each 10 ms; |slow| of them takes 40 ms instead of
 * 100 us. */
static void test_task_that_alone_has_the_long_calls_is_named(void)
{
	struct story s;

	story_begin(&s);
	for (uint64_t task = 1; task <= 20; task++)
		story_spawn_fd(&s, task, task, READ, 100 + (unsigned)task);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t us = MS(10) + i * MS(50), task = 1 + i % 20;

		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us, us + (task == 7 ? MS(40) : 100), task, READ);
		story_park(&s, 0, us + MS(41), 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->task, 7);
	CU_ASSERT(has(story_finding(&s, 0)->brief, ", 1 task of 20"));
	story_free(&s);
}

/* Four loops call READ each 50 ms; |slow| of them, or all (4), for 40 ms. */
static const char *brief_of_loops(struct story *s, unsigned slow)
{
	story_begin(s);
	for (unsigned i = 0; i < 40; i++)
		for (unsigned worker = 0; worker < 4; worker++) {
			uint64_t us = MS(10) + i * MS(50) + worker;

			story_unpark(s, worker, us, 0);
			story_poll(s, worker, us, us + (slow == 4 || worker == slow ? MS(40) : 100),
				   worker + 1, READ);
			story_park(s, worker, us + MS(41), 0);
		}
	story_analyse(s);
	return story_finding(s, 0)->brief;
}

static void test_thread_that_alone_has_the_long_calls_is_named(void)
{
	struct story s;

	CU_ASSERT(has(brief_of_loops(&s, 2), " on worker 2 alone"));
	story_free(&s);
	CU_ASSERT_FALSE(has(brief_of_loops(&s, 4), "alone"));
	story_free(&s);
}

/* ---- elsewhere ---- */

/* The process used |cpu_us| in two seconds, its loop |loop_us| of that. */
static void used(struct story *s, uint64_t cpu_us, uint64_t loop_us)
{
	story_begin(s);
	story_cpu_usage(s, 0, 0);
	story_unpark(s, 0, 0, 0);
	story_poll(s, 0, 0, loop_us, 1, READ);
	story_park(s, 0, loop_us, loop_us);
	story_cpu_usage(s, SECONDS(2), cpu_us);
	story_unpark(s, 0, SECONDS(2), loop_us);
	story_park(s, 0, SECONDS(2) + 1, loop_us);
	story_analyse(s);
}

static void test_process_that_computes_outside_of_its_loops_is_told(void)
{
	struct story s;

	used(&s, MS(900), 1000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "elsewhere");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__INFO);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "100 % of the CPU time is outside of loops");
	story_free(&s);
	used(&s, 1900, 1000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "elsewhere")->check, "");
	story_free(&s);
}

/* Its loop was read when it woke, and never waited again. */
static void test_cpu_time_of_a_loop_that_never_waits_is_not_told_as_that_of_others(void)
{
	struct story s;

	story_begin(&s);
	story_cpu_usage(&s, 0, 0);
	story_unpark(&s, 0, 0, 0);
	story_park(&s, 0, 5, 5);
	story_unpark(&s, 0, 10, 10);
	for (unsigned i = 0; i < 2000; i++)
		story_poll(&s, 0, 1000 * i + 20, 1000 * i + 1010, 1, READ);
	story_cpu_usage(&s, SECONDS(2), SECONDS(2));
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "elsewhere")->check, "");
	story_free(&s);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		{ "function that serves, and took connections too, is no listener",
	  test_function_that_serves_and_took_connections_too_is_no_listener },
	{ "listener that others outrun wakes for nothing, whatever it writes",
	  test_listener_that_others_outrun_wakes_for_nothing_whatever_it_writes },
	{ "callback that wakes and reads nothing is named",
		  test_callback_that_wakes_and_reads_nothing_is_named },
		{ "a source that has its loop not wait is named",
	  test_source_that_has_its_loop_not_wait_is_named },
	{ "a source that is only asked is no finding",
	  test_source_that_is_only_asked_is_no_finding },
	{ "callback that polls by a timer is told to wait instead",
		  test_callback_that_polls_by_a_timer_is_told_to_wait_instead },
		{ "callback that reads until there is no more wakes for something",
		  test_callback_that_reads_until_there_is_no_more_wakes_for_something },
		{ "callback that seldom reads nothing wakes for something",
		  test_callback_that_seldom_reads_nothing_wakes_for_something },
		{ "wake that comes early for a timer is not for nothing",
		  test_wake_that_comes_early_for_a_timer_is_not_for_nothing },
		{ "look at descriptors behind a call is no wake",
		  test_look_at_descriptors_behind_a_call_is_no_wake },
		{ "task that alone has the long calls is named",
		  test_task_that_alone_has_the_long_calls_is_named },
		{ "thread that alone has the long calls is named",
		  test_thread_that_alone_has_the_long_calls_is_named },
		{ "process that computes outside of its loops is told",
		  test_process_that_computes_outside_of_its_loops_is_told },
		{ "CPU time of a loop that never waits is not told as that of others",
		  test_cpu_time_of_a_loop_that_never_waits_is_not_told_as_that_of_others },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("check_wakes", tests);
}
