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
	CU_ASSERT(has(finding->message, "sets the timer app+0x200 by a clock that is "));
	CU_ASSERT(has(finding->message, "it was due 900 us after it was set, not 10.0 ms"));
	CU_ASSERT(has(finding->message, "(4 of 4 such timers ran early)"));
	CU_ASSERT(has(finding->evidence[0].text, "looked at the clock 9.10 ms before"));
	CU_ASSERT(has(finding->evidence[0].text,
		      "2 calls had run for 9.10 ms, 1 of them app+0x100 (9.00 ms)"));
	CU_ASSERT_EQUAL(finding->evidence[0].at_ns, UINT64_C(5009100000));
	story_free(&s);
}

static void test_very_old_clock_is_a_warning_even_once_and_for_a_long_timer(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_start(&s, 0, 1, 1, WORK);
	story_stale_timer(&s, 0, 400000, 2, 5000000, 5000000);
	story_end(&s, 0, 400001);
	story_park(&s, 0, 400002, 400002);
	story_unpark(&s, 0, 5000010, 400012);
	story_wake(&s, 5000000, 0, 2, DUE);
	story_poll(&s, 0, 5000011, 5000020, 2, TIMER);
	story_park(&s, 0, 5000021, 400023);
	for (unsigned i = 0; i < 40; i++) {
		story_wake(&s, 5000100 + 100 * i, 0, 2, DUE);
		story_poll(&s, 0, 5000100 + 100 * i, 5000110 + 100 * i, 2, TIMER);
	}
	story_analyse(&s);

	finding = story_finding_of(&s, "stale-clock");
	CU_ASSERT_EQUAL(finding->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(finding->brief, "sets app+0x200 by a clock that is 400 ms old");
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

/* Behind by many periods, the loop counts from when each call begins: deadlines lie far apart. */
/* 50 runs of a timer of 5 ms that take |took_us|: deadlines that pass meanwhile come at their time.
 */
static void overrun_story(struct story *s, const char *library, uint64_t took_us)
{
	uint64_t free_us = 1000;

	story_begin(s);
	story_say(s, library, "poll=full");
	story_wake(s, 1000, 0, 3, DUE);
	for (unsigned i = 0; i < 50; i++) {
		uint64_t due = 1000 + 5000 * i, start = free_us > due ? free_us : due;

		story_poll(s, 0, start, start + took_us, 3, TIMER);
		story_wake(s, due + 5000, 0, 3, DUE);
		free_us = start + took_us + 1;
	}
	story_analyse(s);
}

static void test_timer_whose_call_takes_longer_than_its_period_is_named(void)
{
	struct story s;

	overrun_story(&s, "loop.libevent.capabilities", 6000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "timer-overrun")->name, "app+0x200");
	CU_ASSERT_EQUAL(story_finding_of(&s, "timer-overrun")->severity, D9__CRITICAL);
	CU_ASSERT(has(story_finding_of(&s, "timer-overrun")->message,
		      "is due every 5.00 ms and takes 6.00 ms each time"));
	story_free(&s);
}

/* libev counts a missed period from the call that was late: what lies between its deadlines is a
 * call. */
static void test_period_that_a_loop_library_does_not_keep_is_not_told(void)
{
	const struct d9__finding *finding;
	struct story s;

	overrun_story(&s, "loop.libev.capabilities", 6000);
	finding = story_finding_of(&s, "timer-overrun");
	CU_ASSERT(has(finding->message, "The timer app+0x200 takes 6.00 ms each time: "));
	CU_ASSERT_STRING_EQUAL(finding->brief,
			       "takes 6.00 ms each time, and is due again before it ends");
	story_free(&s);
}

static void test_timer_whose_call_ends_before_the_next_is_no_overrun(void)
{
	struct story s;

	overrun_story(&s, "loop.libevent.capabilities", 4000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "timer-overrun")->check, "");
	story_free(&s);
}

/* Five calls of 8 ms before a timer that is due; the kernel took |taken_us| from each. */
static void late_story(struct story *s, uint64_t taken_us)
{
	uint64_t us = 40000;

	story_begin(s);
	story_routine(s, 0, 0, 300);
	for (unsigned i = 0; i < 5; i++, us += 8001) {
		story_poll(s, 0, us, us + 8000, 1, WORK);
		story_off_cpu(s, 0, us + 8000, 1, 0, taken_us);
	}
	story_wake(s, 41000, 0, 3, DUE);
	story_poll(s, 0, us, us + 10, 3, TIMER);
	story_analyse(s);
}

static void test_timer_behind_several_calls_is_late_and_they_are_named(void)
{
	struct story s;
	const struct d9__finding *late;

	late_story(&s, 0);
	late = story_finding_of(&s, "timer-late");
	CU_ASSERT_EQUAL(late->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(late->name, "app+0x100");
	CU_ASSERT(has(late->message, "app+0x200 ran 39.0 ms late because app+0x100 ran 5 times"));
	story_free(&s);
}

static void test_timer_behind_calls_that_the_kernel_interrupted_is_information(void)
{
	struct story s;
	const struct d9__finding *late;

	late_story(&s, 6000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "short-of-cpu");
	late = story_effect_of(&s, "timer-late");
	CU_ASSERT_EQUAL(late->severity, D9__INFO);
	CU_ASSERT(has(late->message, "preempted)"));
	story_free(&s);
}

static void test_timer_that_a_busy_kernel_lets_run_rarely_is_still_seen_to_be_overrun(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t us = 40000 * i;

		story_unpark(&s, 0, us, 6000 * i);
		story_start(&s, 0, us + 1, 2, TIMER);
		story_wake(&s, us + 3000, 0, 2, DUE);
		story_end(&s, 0, us + 35001);
		story_off_cpu(&s, 0, us + 35001, 2, 0, 30000);
		story_park(&s, 0, us + 35002, 6000 * i + 5000);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "timer-overrun")->name, "app+0x200");
	CU_ASSERT(has(story_finding_of(&s, "timer-overrun")->message,
		      "is due every 3.00 ms and takes 5.00 ms each time"));
	story_free(&s);
}

static void test_timer_that_sleeps_past_its_next_deadline_is_told_as_what_it_sleeps_in(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t us = 60000 * i;

		story_unpark(&s, 0, us, 0);
		story_start(&s, 0, us + 1, 2, TIMER);
		story_wake(&s, us + 20001, 0, 2, DUE);
		story_asleep(&s, 0, us + 30000, 2, "write(4)", 0, "");
		story_end(&s, 0, us + 58001);
		story_off_cpu(&s, 0, us + 58001, 2, 57000, 0);
		story_park(&s, 0, us + 58002, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "timer-overrun")->check, "");
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "timer-overrun")->effect,
			       "it takes 58.0 ms each time and is due every 20.0 ms");
	story_free(&s);
}

/* The least that is known of the period is longer than what a call takes where the kernel stretches
 * all. */
static void test_period_that_is_hidden_by_stretched_calls_is_not_told(void)
{
	const struct d9__finding *found;
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t us = 60100 * i;

		story_unpark(&s, 0, us, 25000 * i);
		story_start(&s, 0, us + 1, 2, TIMER);
		story_wake(&s, us + 25400, 0, 2, DUE);
		story_end(&s, 0, us + 60001);
		story_off_cpu(&s, 0, us + 60001, 2, 0, 35000);
		story_park(&s, 0, us + 60002, 25000 * i + 25000);
	}
	story_analyse(&s);

	found = story_finding_of(&s, "timer-overrun");
	CU_ASSERT(has(found->message, "The timer app+0x200 takes 25.0 ms each time: "));
	story_free(&s);
}

/* Calls of 20 to 24 ms, each of which sets the timer anew, due at once by the clock of its round. */
static void test_timer_that_each_call_sets_anew_has_no_period(void)
{
	const struct d9__finding *found;
	struct story s;
	uint64_t us = 30000;

	story_begin(&s);
	story_wake(&s, 10000, 0, 3, DUE);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t takes_us = 20000 + 1000 * (i % 5);

		story_poll(&s, 0, us, us + takes_us, 3, TIMER);
		story_wake(&s, us - 5, 0, 3, DUE);
		us += takes_us + 5;
	}
	story_analyse(&s);

	found = story_finding_of(&s, "timer-overrun");
	CU_ASSERT(has(found->brief, "each time, and is due again before it ends"));
	story_free(&s);
}

static void test_timer_whose_first_calls_came_late_is_not_taken_for_one_without_a_period(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t us = 8000 * i;

		story_unpark(&s, 0, us, 500 * i);
		story_start(&s, 0, us + 1, 2, TIMER);
		/* Half a millisecond of its own; the kernel lets the next deadline pass meanwhile.
		 */
		story_wake(&s, i > 1 ? us + 5000 : us + 5, 0, 2, DUE);
		story_end(&s, 0, us + 6001);
		story_off_cpu(&s, 0, us + 6001, 2, 0, 5500);
		story_park(&s, 0, us + 6002, 500 * (i + 1));
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "timer-overrun")->name, "");
	story_free(&s);
}

/* Five calls of 8 ms run in four rounds, each stretched by the kernel; without it they were two. */
static void held_up(struct story *s, uint64_t run_queue_us)
{
	uint64_t us = 1000, call_us = 8000 + run_queue_us;

	story_unpark(s, 0, 0, 0);
	for (unsigned i = 0; i < 5; i++) {
		story_poll(s, 0, us + 1, us + 1 + call_us, 10 + i, WORK);
		if (run_queue_us)
			story_off_cpu(s, 0, us + 1 + call_us, 10 + i, 0, run_queue_us);
		us += call_us + 10;
		story_park(s, 0, us, 8000 * (i + 1));
		story_unpark(s, 0, us + 1, 8000 * (i + 1));
	}
	story_wake(s, 2000, 0, 2, DUE);
	story_poll(s, 0, us + 2, us + 10, 2, TIMER);
	story_park(s, 0, us + 20, 40010);
	story_analyse(s);
}

static void test_timer_that_is_late_behind_what_the_kernel_heaped_up_is_information(void)
{
	struct story s;

	story_begin(&s);
	held_up(&s, 40000);
	CU_ASSERT_EQUAL(story_effect_of(&s, "timer-late")->severity, D9__INFO);
	CU_ASSERT(has(story_effect_of(&s, "timer-late")->message, "preempted) (1 of 1 timer runs"));
	story_free(&s);

	story_begin(&s);
	held_up(&s, 0);
	CU_ASSERT_EQUAL(story_finding_of(&s, "timer-late")->severity, D9__WARNING);
	CU_ASSERT(has(story_finding_of(&s, "timer-late")->message, " because app+"));
	story_free(&s);
}

/* At |us| a call of |own_us|, from which the kernel takes |run_queue_us| more, makes a timer late.
 */
static void late_behind(struct story *s, uint64_t us, uint64_t own_us, uint64_t run_queue_us)
{
	uint64_t call_us = own_us + run_queue_us;

	story_unpark(s, 0, us, us);
	story_poll(s, 0, us + 1, us + 1 + call_us, 1, WORK);
	if (run_queue_us)
		story_off_cpu(s, 0, us + 1 + call_us, 1, 0, run_queue_us);
	story_wake(s, us + 100, 0, 2, DUE);
	story_poll(s, 0, us + call_us + 2, us + call_us + 10, 2, TIMER);
	story_park(s, 0, us + call_us + 11, us + own_us + 11);
}

static void test_late_timer_stands_under_its_callback_though_the_machine_made_another_later(void)
{
	static const uint64_t preempted_us[] = { 300000, 90000 };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		story_begin(&s);
		late_behind(&s, 0, 60000, 0);
		/* Once by the machine alone, once by both. */
		late_behind(&s, 1000000, i ? 70000 : 2000, preempted_us[i]);
		story_analyse(&s);

		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->n_effects, 1);
		if (story_finding(&s, 0)->n_effects)
			CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->effects[0]->check,
					       "timer-late");
		CU_ASSERT_EQUAL(story_finding_of(&s, "short-of-cpu")->n_effects, 0);
		story_free(&s);
	}
}

/* A thread without a loop stamps a wake and loses its CPU before it sends it. */
static void late_wakes(struct story *s, uint64_t forced_switches)
{
	story_begin(s);
	story_usage(s, 0, 0);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t us = 50000 * i, late_us = i % 5 ? 10 : 15000;

		story_wake(s, us + 20000 - late_us, 0, 1, FD);
		story_unpark(s, 0, us + 20000, 10 * i);
		story_poll(s, 0, us + 20001, us + 20006, 1, WORK);
		story_park(s, 0, us + 20007, 10 * i + 7);
	}
	story_usage(s, 1000000, forced_switches);
	story_analyse(s);
}

static void test_waits_while_nothing_ran_are_the_kernels_if_it_took_the_cpu_as_often(void)
{
	struct story s;

	late_wakes(&s, 50);
	CU_ASSERT_EQUAL(story_finding_of(&s, "wake-delay")->severity, D9__INFO);
	story_free(&s);

	late_wakes(&s, 1);
	CU_ASSERT_EQUAL(story_finding_of(&s, "wake-delay")->severity, D9__WARNING);
	story_free(&s);
}

/* |n| timers of 500 ms are set between two rounds, |early| of them by a clock that is 300 ms old.
 */
static const struct d9__finding *set_between_rounds(struct story *s, unsigned n, unsigned early)
{
	story_begin(s);
	for (unsigned i = 0; i < n; i++) {
		uint64_t us = 1000000 * (uint64_t)i, due_us = us + (i < early ? 500000 : 800000);

		story_unpark(s, 0, us, us);
		story_outside(s, 0, us + 10, us + 300000);
		if (i < early)
			story_stale_timer(s, 0, us + 300000, 2, 500000, due_us);
		story_park(s, 0, us + 300010, us + 300010);
		story_unpark(s, 0, due_us, us + 300010);
		story_wake(s, due_us, 0, 2, 2);
		story_poll(s, 0, due_us + 1, due_us + 10, 2, TIMER);
		story_park(s, 0, due_us + 20, us + 300020);
	}
	story_analyse(s);
	return story_finding_of(s, "stale-clock");
}

static void test_timers_set_between_two_rounds_by_an_old_clock_are_told(void)
{
	const struct d9__finding *finding;
	struct story s;

	finding = set_between_rounds(&s, 4, 4);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "stale-clock");
	CU_ASSERT_EQUAL(finding->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(finding->name, "work between rounds");
	CU_ASSERT_STRING_EQUAL(finding->brief, "sets app+0x200 by a clock that is 300 ms old");
	CU_ASSERT(has(finding->message, "it was due 200 ms after it was set, not 500 ms (4 of 4"));
	CU_ASSERT(has(finding->advice, "ev_now_update()"));
	story_free(&s);

	/* The machine may have put the thread aside now and then. */
	CU_ASSERT_EQUAL(set_between_rounds(&s, 8, 2)->severity, D9__INFO);
	story_free(&s);
}

/* Due in the middle of a sleep of its loop, which nothing explains. */
static void test_late_timer_that_nothing_explains_is_told_as_that(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_park(&s, 0, 100, 100);
	story_unpark(&s, 0, 231000, 110);
	story_wake(&s, 200000, 0, 2, 2);
	story_poll(&s, 0, 231001, 231010, 2, TIMER);
	story_park(&s, 0, 231020, 130);
	story_analyse(&s);
	finding = story_finding_of(&s, "timer-late");
	CU_ASSERT(has(finding->message, "ran 31.0 ms late, cause not recorded"));
	story_free(&s);
}

static CU_TestInfo tests[] = {
	{ "timers set between two rounds by an old clock are told",
	  test_timers_set_between_two_rounds_by_an_old_clock_are_told },
	{ "late timer that nothing explains is told as that",
	  test_late_timer_that_nothing_explains_is_told_as_that },
	{ "late timer stands under its callback though the machine made another later",
	  test_late_timer_stands_under_its_callback_though_the_machine_made_another_later },
	{ "period that is hidden by stretched calls is not told",
	  test_period_that_is_hidden_by_stretched_calls_is_not_told },
	{ "timer that each call sets anew has no period",
	  test_timer_that_each_call_sets_anew_has_no_period },
	{ "timer whose first calls came late is not taken for one without a period",
	  test_timer_whose_first_calls_came_late_is_not_taken_for_one_without_a_period },
	{ "timer that sleeps past its next deadline is told as what it sleeps in",
	  test_timer_that_sleeps_past_its_next_deadline_is_told_as_what_it_sleeps_in },
	{ "timer whose call takes longer than its period is named",
	  test_timer_whose_call_takes_longer_than_its_period_is_named },
	{ "period that a loop library does not keep is not told",
	  test_period_that_a_loop_library_does_not_keep_is_not_told },
	{ "timer whose call ends before the next is no overrun",
	  test_timer_whose_call_ends_before_the_next_is_no_overrun },
	{ "timer behind several calls is late, and they are named",
	  test_timer_behind_several_calls_is_late_and_they_are_named },
	{ "timer behind calls that the kernel interrupted is information",
	  test_timer_behind_calls_that_the_kernel_interrupted_is_information },
	{ "timer that a busy kernel lets run rarely is still seen to be overrun",
	  test_timer_that_a_busy_kernel_lets_run_rarely_is_still_seen_to_be_overrun },
	{ "timer that is late behind what the kernel heaped up is information",
	  test_timer_that_is_late_behind_what_the_kernel_heaped_up_is_information },
	{ "waits while nothing ran are the kernel's if it took the CPU as often",
	  test_waits_while_nothing_ran_are_the_kernels_if_it_took_the_cpu_as_often },
	{ "timer that is set by an old clock and runs early is told",
	  test_timer_that_is_set_by_an_old_clock_and_runs_early_is_told },
	{ "very old clock is a warning even once and for a long timer",
	  test_very_old_clock_is_a_warning_even_once_and_for_a_long_timer },
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
