/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about how a loop goes round: spins, storms of wakes, wakes of an idle process; and about full tables. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW "app+0x100 @ app+0x110"
#define TICK "app+0x200 @ app+0x210"
#define READ "libevent-2.1.so.7+0x300 @ app+0x310"
#define WEB  "app+0x400 @ app+0x410"
#define GLIBS_OWN "libglib-2.0.so.0+0x52d70 @ libglib-2.0.so.0+0x52e00"
#define FD    1
#define TIMER 2
#define SIGNAL 3
#define ACTIVE 4
#define CROSS_THREAD 5
#define INTERNAL 7

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* |n| rounds of |round_us|: parked for |parked_us| of it, then one call of |call_us|. */
struct round {
	unsigned n, reason;
	uint64_t round_us, parked_us, call_us;
};

static void run_rounds_at(struct story *s, uint64_t task, const char *place, struct round round, uint64_t from_us)
{
	for (unsigned i = 0; i < round.n; i++) {
		uint64_t us = from_us + round.round_us * i;

		story_park(s, 0, us, 0);
		story_unpark(s, 0, us + round.parked_us, 0);
		story_wake(s, us + round.parked_us, 0, task, round.reason);
		story_poll(s, 0, us + round.parked_us, us + round.parked_us + round.call_us, task,
			   place);
	}
}

static void run_rounds(struct story *s, uint64_t task, const char *place, struct round round)
{
	run_rounds_at(s, task, place, round, 1000);
}

static void rounds_story(struct story *s, struct round round)
{
	story_begin(s);
	story_spawn_fd(s, 0, 1, WEB, 7);
	run_rounds(s, 1, WEB, round);
	story_analyse(s);
}

static void test_descriptor_that_is_always_ready_for_nothing_is_a_spin(void)
{
	struct round busy = { 100000, FD, 10, 2, 1 };
	struct story s;

	rounds_story(&s, busy);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT(has(story_finding(&s, 0)->message, "is called 100,0"));
	CU_ASSERT(has(story_finding(&s, 0)->message, "descriptor 7 was ready again at once"));
	CU_ASSERT_EQUAL(s.findings.by_severity[D9__WARNING], 0);
	story_free(&s);
}

/* 40,000 calls, of the last 10,000 of which is told that they made |calls| reads, all with data. */
static void lossy_spin(struct story *s, uint64_t calls)
{
	story_begin(s);
	story_say(s, "source.io", "on");
	story_spawn_fd(s, 0, 1, WEB, 7);
	story_loss(s, 1, "no_chunk", 40000);
	for (unsigned i = 0; i < 40000; i++)
		story_poll(s, 0, 1000 + 10 * i, 1001 + 10 * i, 1, WEB);
	story_io(s, 402000, 1, &(struct story_io) { .reads = calls });
	story_analyse(s);
}

static void test_few_reads_that_loss_has_left_do_not_make_a_spin_useful(void)
{
	struct story s;

	lossy_spin(&s, 900);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "spin");
	story_free(&s);
	lossy_spin(&s, 10000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
}

/* Another program took the CPU between the calls: they took less than half of the time. */
static void test_descriptor_that_is_always_ready_for_something_is_no_spin(void)
{
	struct round busy = { 20000, FD, 50, 2, 15 };
	struct story s;

	rounds_story(&s, busy);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
}

/* One call of 60 ms in each window, of which the kernel took nearly all. */
static void test_spin_whose_calls_the_kernel_interrupts_is_one(void)
{
	struct story s;

	story_begin(&s);
	story_spawn_fd(&s, 0, 1, WEB, 7);
	for (unsigned i = 0; i < 50000; i++) {
		uint64_t us = 1000 + 10 * i + 60000 * (i / 4000);

		story_poll(&s, 0, us, us + 1, 1, WEB);
		if (i % 4000 != 3999)
			continue;
		story_poll(&s, 0, us + 2, us + 60002, 1, WEB);
		story_off_cpu(&s, 0, us + 60002, 1, 0, 59990);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	story_free(&s);
}

enum told { UNTOLD, TOLD_AFTER, TOLD_BEFORE };

/* Others have the CPU for 80 %, in waits; |told|: whether a reading behind or before the wait tells
 * it. */
static void rounds_on_a_busy_machine(struct story *s, uint64_t call_us, enum told told)
{
	struct round busy = { 200, FD, 10, 2, call_us };

	story_begin(s);
	story_spawn_fd(s, 0, 1, WEB, 7);
	for (uint64_t us = 1000; us < 2000000; us += 10000) {
		run_rounds_at(s, 1, WEB, busy, us);
		if (told == TOLD_BEFORE)
			story_put_aside_since(s, 0, us, us + 2000, 7980);
		story_park(s, 0, us + 2000, 0);
		story_unpark(s, 0, us + 9990, 0);
		if (told == TOLD_AFTER)
			story_put_aside(s, 0, us + 9990, 7980);
	}
	story_analyse(s);
}

static void test_spin_that_others_take_the_cpu_from_in_its_waits_is_one(void)
{
	const struct d9__loop_time *time;
	struct story s;

	for (enum told told = TOLD_AFTER; told <= TOLD_BEFORE; told++) {
		rounds_on_a_busy_machine(&s, 1, told);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "short-of-cpu")->check, "short-of-cpu");
		time = &s.analysis.timeline.items[0]->loop_time;
		CU_ASSERT_EQUAL(time->wait_ready_ns, 200 * 7980 * UINT64_C(1000));
		CU_ASSERT_EQUAL(s.analysis.timeline.items[0]->time.ready_ns, time->wait_ready_ns);
		story_free(&s);
	}

	/* It may as well have slept. */
	rounds_on_a_busy_machine(&s, 1, UNTOLD);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);

	/* Its calls take most of what it gets. */
	rounds_on_a_busy_machine(&s, 7, TOLD_AFTER);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
}

/* The machine leaves it a hundredth of the time: 100 calls a window, and one wait with a sleep's
 * length. */
static void test_spin_to_which_the_machine_leaves_hardly_any_time_is_one(void)
{
	struct round burst = { 100, FD, 10, 2, 1 };
	struct story s;

	story_begin(&s);
	story_spawn_fd(&s, 0, 1, WEB, 7);
	for (uint64_t us = 1000; us < 2000000; us += 100000) {
		run_rounds_at(&s, 1, WEB, burst, us);
		story_park(&s, 0, us + 1000, 0);
		story_unpark(&s, 0, us + 99999, 0);
		/* Read in the next window. */
		story_put_aside_since(&s, 0, us + 900, us + 100010, 98990);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	story_free(&s);
}

static void test_listener_that_spins_is_told_as_accept_storm_by_its_error_callback(void)
{
	struct story s;

	story_begin(&s);
	story_spawn(&s, 0, 1, READ, "listener");
	for (unsigned i = 0; i < 50000; i++) {
		story_start(&s, 0, 1000 + 20 * i, 1, READ);
		story_span(&s, 0, 1001 + 20 * i, 1003 + 20 * i, i + 1, SLOW);
		story_end(&s, 0, 1004 + 20 * i);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "accept-storm");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT(has(story_finding(&s, 0)->message, "takes no connection"));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
}

/*
 * A task for each call, as GIO makes sources; another program has the CPU for |taken_us| of each hundredth of them.
 * What is told of its descriptor, which must be the first.
 */
static const char *told_of_descriptor(const char *kind, uint64_t call_us, uint64_t gap_us, uint64_t taken_us)
{
	static char check[32];
	uint64_t us = 1000;
	struct story s;

	story_begin(&s);
	story_spawn(&s, 0, 1, READ, kind);
	for (unsigned i = 0; us < 801000; i++) {
		uint64_t end_us = us + call_us + (i % 100 ? 0 : taken_us);

		story_spawn_fd(&s, us, 2 + i, READ, 7);
		story_poll(&s, 0, us + 1, end_us + 1, 2 + i, READ);
		story_terminate(&s, end_us + 2, 2 + i);
		us = end_us + gap_us;
	}
	story_analyse(&s);
	check[0] = '\0';
	if (has(story_finding(&s, 0)->message, "descriptor 7"))
		snprintf(check, sizeof(check), "%s", story_finding(&s, 0)->check);
	story_free(&s);
	return check;
}

static void test_listener_whose_tasks_are_made_anew_for_each_refusal_is_an_accept_storm(void)
{
	CU_ASSERT_STRING_EQUAL(told_of_descriptor("listener", 6, 5, 0), "accept-storm");
	/* Reads what there is, in as many calls. */
	CU_ASSERT_STRING_EQUAL(told_of_descriptor("io", 6, 5, 0), "");
}

/* What GIO takes for a refusal and for a connection, measured on two machines and beside other programs. */
static void test_refusals_are_told_from_connections_on_any_machine(void)
{
	CU_ASSERT_STRING_EQUAL(told_of_descriptor("listener", 12, 9, 0), "accept-storm");
	CU_ASSERT_STRING_EQUAL(told_of_descriptor("listener", 24, 18, 4000), "accept-storm");
	CU_ASSERT_STRING_EQUAL(told_of_descriptor("listener", 9, 2, 0), "");
	CU_ASSERT_STRING_EQUAL(told_of_descriptor("listener", 30, 7, 0), "");
	CU_ASSERT_STRING_EQUAL(told_of_descriptor("listener", 30, 7, 4000), "");
}

static void test_spin_that_filled_a_part_of_the_trace_is_a_warning(void)
{
	struct story s;

	story_begin(&s);
	run_rounds(&s, 1, WEB, (struct round){ 50000, FD, 10, 2, 1 });
	for (unsigned i = 0; i < 1000; i++)
		story_poll(&s, 0, 600000 + 2000 * i, 600100 + 2000 * i, 2, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT(has(story_finding(&s, 0)->message, "its descriptor was ready again at once"));
	story_free(&s);
}

/* |workers| of them spin at the same time, in the same function, for |ms|. */
static void spin_side_by_side(struct story *s, unsigned workers, unsigned ms)
{
	story_begin(s);
	for (unsigned i = 0; i < workers; i++)
		story_spawn_fd(s, 0, i + 1, WEB, 7 + i);
	for (uint64_t us = 1000; us < 1000 * (uint64_t)ms; us += 50)
		for (unsigned i = 0; i < workers; i++) {
			story_park(s, i, us, 0);
			story_unpark(s, i, us + 2, 0);
			story_poll(s, i, us + 2, us + 3, i + 1, WEB);
		}
	story_analyse(s);
}

static void test_spins_of_many_workers_are_not_added_up(void)
{
	const struct d9__finding *found;
	struct story s;

	/* None of them spins for three tenths of a second. */
	spin_side_by_side(&s, 40, 180);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);

	spin_side_by_side(&s, 8, 500);
	found = story_finding_of(&s, "spin");
	CU_ASSERT_STRING_EQUAL(found->check, "spin");
	CU_ASSERT(found->n_evidence >= 2);
	CU_ASSERT(has(found->message, "never slept for 4") || has(found->message, "never slept for 5"));
	CU_ASSERT(has(found->message, " ms."));
	CU_ASSERT_STRING_EQUAL(found->evidence[1].text, "so it was on 7 other workers");
	story_free(&s);
}

static void test_busy_loops_that_work_or_wait_do_not_spin(void)
{
	/* Works for most of the time; waits, if not for long; is not called often. */
	static const struct round innocent[] = { { 50000, FD, 10, 2, 6 },
						 { 50000, FD, 20, 12, 1 },
						 { 1000, FD, 1000, 2, 1 } };

	for (unsigned i = 0; i < sizeof(innocent) / sizeof(innocent[0]); i++) {
		struct story s;

		rounds_story(&s, innocent[i]);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
		story_free(&s);
	}
}

static void test_bursts_of_work_between_long_sleeps_do_not_spin(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned burst = 0; burst < 10; burst++) {
		uint64_t us = 100000 * burst;

		story_unpark(&s, 0, us, 0);
		for (unsigned i = 0; i < 300; i++)
			story_poll(&s, 0, us + 100 * i, us + 100 * i + 99, 1, WEB);
		story_park(&s, 0, us + 30000, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
}

static void test_one_wake_by_another_thread_for_each_call_is_a_storm(void)
{
	struct round storm = { 20000, CROSS_THREAD, 50, 40, 2 };
	struct story s;

	rounds_story(&s, storm);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "wake-storm");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT(has(story_finding(&s, 0)->message, "worker 0 wakes worker 0 20,0"));
	story_free(&s);
}

/* As g_idle_add() makes a source for each call. */
static void test_storm_of_tasks_that_are_made_anew_counts_them_all(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 20000; i++)
		run_rounds_at(&s, 100 + i, WEB, (struct round){ 1, CROSS_THREAD, 50, 40, 2 }, 1000 + 50 * i);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "wake-storm");
	CU_ASSERT(has(story_finding(&s, 0)->brief, "is woken 20,0"));
	story_free(&s);
}

static void test_wakes_that_are_few_or_worth_it_are_no_storm(void)
{
	static const struct round innocent[] = { { 20000, CROSS_THREAD, 50, 20, 25 },
						 { 1000, CROSS_THREAD, 1000, 900, 2 },
						 { 20000, FD, 50, 40, 2 } };

	for (unsigned i = 0; i < sizeof(innocent) / sizeof(innocent[0]); i++) {
		struct story s;

		rounds_story(&s, innocent[i]);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "wake-storm")->check, "");
		story_free(&s);
	}
}

/* |n| wakes by another thread while the loop sleeps, which goes on sleeping for |late_us|. */
static void sleep_on(struct story *s, unsigned n, uint64_t late_us, unsigned reason)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t us = 1000 + 100000 * (uint64_t)i;

		story_park(s, 0, us, 0);
		story_wake(s, us + 2000, 0, 1, reason);
		story_unpark(s, 0, us + 2000 + late_us, 0);
		story_poll(s, 0, us + 2000 + late_us, us + 2010 + late_us, 1, WEB);
	}
}

static void sleeping_story(struct story *s, unsigned n, uint64_t late_us, unsigned reason)
{
	story_begin(s);
	sleep_on(s, n, late_us, reason);
	story_analyse(s);
}

static void test_loop_that_sleeps_on_when_another_thread_makes_it_ready_was_not_woken(void)
{
	struct story s;

	sleeping_story(&s, 20, 60000, CROSS_THREAD);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "lost-wake");
	CU_ASSERT_EQUAL(story_finding_of(&s, "wake-delay")->severity, D9__INFO);
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT(has(story_finding(&s, 0)->message, "slept on for 60.0 ms on average, 20 of 20"));
	story_free(&s);
}

/* A callback that makes itself ready each time it runs, for |ms|; |rounds| of them. */
static const struct d9__finding *round_of(struct story *s, unsigned ms, unsigned rounds)
{
	uint64_t us = 10;

	story_begin(s);
	story_say(s, "loop.libevent.capabilities", "poll=full,park=on");
	story_unpark(s, 0, 1, 1);
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned j = 0; j < ms; j++, us += 1000) {
			story_wake(s, us, 1, 1, ACTIVE);
			story_poll(s, 0, us, us + 990, 1, WEB);
		}
		story_park(s, 0, us, us);
		story_unpark(s, 0, us + 1, us);
	}
	story_analyse(s);
	return story_finding_of(s, "long-round");
}

static void test_round_that_does_not_end_is_told_by_who_keeps_it_going(void)
{
	const struct d9__finding *found;
	struct story s;

	found = round_of(&s, 2000, 1);
	CU_ASSERT_EQUAL(found->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(found->name, "app+0x400");
	CU_ASSERT(strstr(found->message, "ran 2,000 callbacks") != NULL);
	story_free(&s);

	CU_ASSERT_STRING_EQUAL(round_of(&s, 100, 20)->check, "");
	story_free(&s);
}

/*
 * One round of 1,500 calls of 2 ms, of which the kernel took |taken_us| of each of the first
 * |taken|; |waits|: another callback waits for it to end.
 */
static const struct d9__finding *round_of_calls(struct story *s, uint64_t taken_us, unsigned taken,
						unsigned reason, bool waits)
{
	uint64_t us = 10;

	story_begin(s);
	story_say(s, "loop.libevent.capabilities", "poll=full,park=on");
	story_unpark(s, 0, 1, 1);
	if (waits)
		story_wake(s, us, 0, 2, FD);
	for (unsigned i = 0; i < 1500; i++, us += 2000) {
		story_wake(s, us, 1, 1, reason);
		story_poll(s, 0, us, us + 1990, 1, WEB);
		story_off_cpu(s, 0, us + 1990, 1, 0, i < taken ? taken_us : 0);
	}
	story_poll(s, 0, us, us + 10, 2, "app+0x500 @ app+0x510");
	story_park(s, 0, us + 20, us + 20);
	story_unpark(s, 0, us + 21, us + 20);
	story_analyse(s);
	return story_finding(s, 0);
}

static const struct d9__finding *round_beside(struct story *s, uint64_t taken_us, unsigned taken,
					      unsigned reason)
{
	return round_of_calls(s, taken_us, taken, reason, true);
}

static void test_endless_round_is_shortened_by_what_the_kernel_took(void)
{
	const struct d9__finding *found;
	struct story s;

	found = round_beside(&s, 0, 0, ACTIVE);
	CU_ASSERT_STRING_EQUAL(found->check, "long-round");
	CU_ASSERT_STRING_EQUAL(found->brief, "keeps the loop in one round for 3.00 s");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "unfair")->check, "");
	story_free(&s);

	/* It is half of all that the loop did, and went on for so long by the clock. */
	found = round_of_calls(&s, 1890, 1500, ACTIVE, false);
	CU_ASSERT_STRING_EQUAL(found->check, "long-round");
	CU_ASSERT_EQUAL(found->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(found->brief, "keeps the loop in one round for 165 ms");
	story_free(&s);

	found = round_beside(&s, 995, 1500, ACTIVE);
	CU_ASSERT_STRING_EQUAL(found->check, "long-round");
	CU_ASSERT_EQUAL(found->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(found->brief, "keeps the loop in one round for 1.51 s");
	CU_ASSERT(has(found->advice, "event_active()"));
	story_free(&s);

	/* Not of those that are remembered. */
	found = round_beside(&s, 1500, 800, ACTIVE);
	CU_ASSERT_STRING_EQUAL(found->brief, "keeps the loop in one round for 1.80 s");
	story_free(&s);
}

/* libevent calls it once for each that came. */
static void test_endless_round_of_signals_is_told_to_take_fewer(void)
{
	const struct d9__finding *found;
	struct story s;

	found = round_beside(&s, 0, 0, SIGNAL);
	CU_ASSERT_STRING_EQUAL(found->check, "long-round");
	CU_ASSERT(has(found->advice, "Send fewer signals"));
	story_free(&s);
}

/* On a loop of the name |loop|, which calls |place|. */
static const char *empty_wakes_on(const char *loop, unsigned calls_in_hundred, const char *place)
{
	const char *check;
	struct story s;

	story_begin(&s);
	story_say(&s, loop, "0");
	story_say(&s, "loop.glib.capabilities", "poll=full,park=all");
	story_park(&s, 0, 0, 1);
	for (unsigned i = 1; i < 20000; i++) {
		uint64_t us = 100 * i;

		story_unpark(&s, 0, us, 1 + i);
		if (i % 100 < calls_in_hundred)
			story_poll(&s, 0, us + 1, us + 2, 1, place);
		story_park(&s, 0, us + 3, 1 + i);
	}
	story_analyse(&s);
	check = story_finding_of(&s, "empty-wakes")->severity == D9__WARNING &&
				story_finding_of(&s, "empty-wakes")->check[0]
			? "empty-wakes"
			: "";
	story_free(&s);
	return check;
}

static void test_loop_that_wakes_and_finds_nothing_to_run_is_told(void)
{
	CU_ASSERT_STRING_EQUAL(empty_wakes_on("runtime.default", 0, NULL), "empty-wakes");
	CU_ASSERT_STRING_EQUAL(empty_wakes_on("runtime.default", 75, WEB), "empty-wakes");
	CU_ASSERT_STRING_EQUAL(empty_wakes_on("runtime.default", 85, WEB), "");
}

static void test_empty_wakes_of_glibs_own_threads_are_nobodys_fault(void)
{
	CU_ASSERT_STRING_EQUAL(empty_wakes_on("runtime.gmain", 0, NULL), "");
	CU_ASSERT_STRING_EQUAL(empty_wakes_on("runtime.gdbus", 2, GLIBS_OWN), "");
	CU_ASSERT_STRING_EQUAL(empty_wakes_on("runtime.gmain", 2, WEB), "empty-wakes");
	CU_ASSERT_STRING_EQUAL(empty_wakes_on("runtime.gmain-2", 0, NULL), "empty-wakes");
}

static void test_loop_that_gets_up_or_was_woken_by_a_descriptor_lost_no_wake(void)
{
	static const struct {
		unsigned n, reason;
		uint64_t late_us;
	} innocent[] = { { 20, CROSS_THREAD, 2000 }, { 2, CROSS_THREAD, 60000 }, { 20, FD, 60000 } };

	for (unsigned i = 0; i < sizeof(innocent) / sizeof(innocent[0]); i++) {
		struct story s;

		sleeping_story(&s, innocent[i].n, innocent[i].late_us, innocent[i].reason);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "lost-wake")->check, "");
		story_free(&s);
	}
}

/* It wakes the loop with each source that another thread adds: what came late waited for a CPU. */
static void test_loop_of_glib_lost_no_wake(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.glib.capabilities", "poll=full,park=all");
	sleep_on(&s, 20, 60000, CROSS_THREAD);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "lost-wake")->check, "");
	story_free(&s);
}

static void test_timer_that_keeps_an_idle_process_awake_is_named_with_its_rate(void)
{
	struct round often = { 1000, TIMER, 1000, 980, 5 }, sometimes = { 100, TIMER, 10000, 9980, 5 };
	struct story s;

	rounds_story(&s, often);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "idle-wakes");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT(has(story_finding(&s, 0)->message, "wakes worker 0 1,000 times a second"));
	story_free(&s);
	rounds_story(&s, sometimes);
	CU_ASSERT_EQUAL(story_finding_of(&s, "idle-wakes")->severity, D9__INFO);
	story_free(&s);
}

/* One that paces a stream, say, computes each time: what it costs is told, and no fault. */
static void test_timer_that_works_each_time_is_no_fault_of_an_idle_process(void)
{
	struct round computes = { 1000, TIMER, 1000, 960, 30 };
	struct story s;

	rounds_story(&s, computes);
	CU_ASSERT_EQUAL(story_finding_of(&s, "idle-wakes")->severity, D9__INFO);
	story_free(&s);

	/* Short calls that write. */
	story_begin(&s);
	story_spawn(&s, 0, 1, WEB, "timer");
	run_rounds(&s, 1, WEB, (struct round) { 1000, TIMER, 1000, 980, 5 });
	story_io(&s, 1001000, 1, &(struct story_io) { .writes = 1000 });
	story_analyse(&s);
	CU_ASSERT_EQUAL(story_finding_of(&s, "idle-wakes")->severity, D9__INFO);
	story_free(&s);
}

/* As gevent does: libev's prepare watchers run before each wait, and wake no task. */
static void test_timer_beside_a_watcher_of_each_round_keeps_an_idle_process_awake(void)
{
	struct story s;

	story_begin(&s);
	story_spawn(&s, 0, 1, WEB, "timer");
	story_spawn(&s, 0, 2, SLOW, "prepare");
	for (uint64_t us = 1000; us < 1000000; us += 1000) {
		story_park(&s, 0, us, 0);
		story_unpark(&s, 0, us + 950, 0);
		story_wake(&s, us + 950, 0, 1, TIMER);
		story_poll(&s, 0, us + 950, us + 985, 1, WEB);
		story_wake(&s, us + 986, 0, 2, INTERNAL);
		story_poll(&s, 0, us + 986, us + 990, 2, SLOW);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "idle-wakes");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	story_free(&s);
}

static void test_timers_that_work_or_rest_are_no_waste(void)
{
	static const struct round innocent[] = { { 500, TIMER, 2000, 1000, 900 },
						 { 20, TIMER, 50000, 49980, 5 },
						 { 1000, FD, 1000, 980, 5 } };

	for (unsigned i = 0; i < sizeof(innocent) / sizeof(innocent[0]); i++) {
		struct story s;

		rounds_story(&s, innocent[i]);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "idle-wakes")->check, "");
		story_free(&s);
	}
}

static void test_task_that_runs_once_a_round_does_not_starve_a_late_timer(void)
{
	struct story s;

	story_begin(&s);
	story_wake(&s, 2000, 0, 3, TIMER);
	run_rounds(&s, 1, WEB, (struct round){ 100, FD, 200, 2, 190 });
	story_poll(&s, 0, 21000, 21010, 3, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "unfair")->check, "");
	story_free(&s);
}

static void test_wait_for_a_loop_that_was_left_is_not_said_to_have_a_finding_of_its_own(void)
{
	struct story s;
	const struct d9__finding *delay;

	story_begin(&s);
	/* The kernel is known to have interrupted a call, so what nobody did might be its doing too. */
	story_poll(&s, 0, 1000, 3000, 1, TICK);
	story_off_cpu(&s, 0, 3000, 1, 0, 1500);
	story_wake(&s, 40000, 0, 2, FD);
	story_poll(&s, 0, 70000, 70010, 2, WEB);
	story_analyse(&s);

	delay = story_finding_of(&s, "wake-delay");
	CU_ASSERT(has(delay->evidence[0].text, "1 while their worker ran little or nothing"));
	CU_ASSERT(has(delay->advice, "two runs of its loop, if it leaves it"));
	CU_ASSERT_FALSE(has(delay->advice, "mend that"));
	story_free(&s);
}

static void test_what_the_recorder_had_no_room_for_or_could_not_follow_is_told(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, 0, 10, 1, TICK);
	story_say(&s, "callsites.unknown", "12");
	story_say(&s, "names.other", "0");
	story_say(&s, "processes.cloned", "3");
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "incomplete-data");
	CU_ASSERT(has(story_finding(&s, 0)->message, "12 registrations"));
	CU_ASSERT(has(story_finding(&s, 1)->message, "3 copies of the process"));
	CU_ASSERT_EQUAL(s.findings.by_severity[D9__WARNING], 2);
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "endless round of signals is told to take fewer",
	  test_endless_round_of_signals_is_told_to_take_fewer },
	{ "descriptor that is always ready for nothing is a spin",
	  test_descriptor_that_is_always_ready_for_nothing_is_a_spin },
	{ "descriptor that is always ready for something is no spin",
	  test_descriptor_that_is_always_ready_for_something_is_no_spin },
	{ "spin whose calls the kernel interrupts is one",
	  test_spin_whose_calls_the_kernel_interrupts_is_one },
	{ "spin that others take the CPU from in its waits is one",
	  test_spin_that_others_take_the_cpu_from_in_its_waits_is_one },
	{ "spin to which the machine leaves hardly any time is one",
	  test_spin_to_which_the_machine_leaves_hardly_any_time_is_one },
	{ "listener that spins is told as accept storm by its error callback",
	  test_listener_that_spins_is_told_as_accept_storm_by_its_error_callback },
	{ "listener whose tasks are made anew for each refusal is an accept storm",
	  test_listener_whose_tasks_are_made_anew_for_each_refusal_is_an_accept_storm },
	{ "refusals are told from connections on any machine",
	  test_refusals_are_told_from_connections_on_any_machine },
	{ "spin that filled a part of the trace is a warning",
	  test_spin_that_filled_a_part_of_the_trace_is_a_warning },
	{ "spins of many workers are not added up", test_spins_of_many_workers_are_not_added_up },
	{ "busy loops that work or wait do not spin",
	  test_busy_loops_that_work_or_wait_do_not_spin },
	{ "bursts of work between long sleeps do not spin",
	  test_bursts_of_work_between_long_sleeps_do_not_spin },
	{ "one wake by another thread for each call is a storm",
	  test_one_wake_by_another_thread_for_each_call_is_a_storm },
	{ "storm of tasks that are made anew counts them all",
	  test_storm_of_tasks_that_are_made_anew_counts_them_all },
	{ "wakes that are few or worth it are no storm",
	  test_wakes_that_are_few_or_worth_it_are_no_storm },
	{ "loop that sleeps on when another thread makes it ready was not woken",
	  test_loop_that_sleeps_on_when_another_thread_makes_it_ready_was_not_woken },
	{ "endless round is shortened by what the kernel took",
	  test_endless_round_is_shortened_by_what_the_kernel_took },
	{ "round that does not end is told by who keeps it going",
	  test_round_that_does_not_end_is_told_by_who_keeps_it_going },
	{ "loop that wakes and finds nothing to run is told",
	  test_loop_that_wakes_and_finds_nothing_to_run_is_told },
	{ "empty wakes of GLib's own threads are nobody's fault",
	  test_empty_wakes_of_glibs_own_threads_are_nobodys_fault },
	{ "few reads that loss has left do not make a spin useful",
	  test_few_reads_that_loss_has_left_do_not_make_a_spin_useful },
	{ "loop that gets up, or was woken by a descriptor, lost no wake",
	  test_loop_that_gets_up_or_was_woken_by_a_descriptor_lost_no_wake },
	{ "loop of GLib lost no wake", test_loop_of_glib_lost_no_wake },
	{ "timer beside a watcher of each round keeps an idle process awake",
	  test_timer_beside_a_watcher_of_each_round_keeps_an_idle_process_awake },
	{ "timer that works each time is no fault of an idle process",
	  test_timer_that_works_each_time_is_no_fault_of_an_idle_process },
	{ "timer that keeps an idle process awake is named with its rate",
	  test_timer_that_keeps_an_idle_process_awake_is_named_with_its_rate },
	{ "timers that work or rest are no waste", test_timers_that_work_or_rest_are_no_waste },
	{ "task that runs once a round does not starve a late timer",
	  test_task_that_runs_once_a_round_does_not_starve_a_late_timer },
	{ "wait for a loop that was left is not said to have a finding of its own",
	  test_wait_for_a_loop_that_was_left_is_not_said_to_have_a_finding_of_its_own },
	{ "what the recorder had no room for or could not follow is told",
	  test_what_the_recorder_had_no_room_for_or_could_not_follow_is_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_loops", tests);
}
