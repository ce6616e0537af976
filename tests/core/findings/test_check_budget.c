/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about loops that are woken for little, and about several that spin. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define TICK "app+0x100 @ app+0x110"
#define WEB  "app+0x400 @ app+0x410"

#define FD	     1
#define TIMER	     2
#define SIGNAL	     3
#define CROSS_THREAD 5

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* |n| wakes, one every |apart_us|, for calls of |us| of one of |tasks| tasks in turn. */
struct wakes {
	unsigned n, apart_us, us, tasks, reason;
};

static void wake_up(struct story *s, struct wakes wakes)
{
	for (unsigned i = 0; i < wakes.n; i++) {
		uint64_t us = (uint64_t)i * wakes.apart_us;
		unsigned task = 1 + i % wakes.tasks;

		story_unpark(s, 0, us, 0);
		story_wake(s, us, 0, task, wakes.reason);
		story_poll(s, 0, us + 1, us + 1 + wakes.us, task, TICK);
		story_park(s, 0, us + wakes.us + 3, 0);
	}
}

static void wakes_story(struct story *s, struct wakes wakes)
{
	story_begin(s);
	for (unsigned i = 0; i < wakes.tasks; i++)
		story_spawn_fd(s, 0, 1 + i, TICK, 7 + i);
	wake_up(s, wakes);
	story_analyse(s);
}

static void test_wakes_for_little_are_told_by_their_cause(void)
{
	static const struct {
		struct wakes wakes;
		const char *text;
	} shapes[] = {
		{ { 2000, 1000, 5, 20, TIMER }, "20 timers, app+0x100 most often" },
		{ { 1500, 2500, 20, 4, TIMER }, "4 timers" },
		{ { 2000, 1000, 8, 1, SIGNAL }, "signals, for app+0x100" },
		{ { 2000, 1000, 2, 1, FD }, "1 descriptor, app+0x100 (7)" },
		{ { 2000, 1000, 2, 2, FD }, "2 descriptors, app+0x100 most often (" },
		{ { 2000, 1000, 5, 1, CROSS_THREAD }, "for app+0x100" },
	};

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct story s;

		wakes_story(&s, shapes[i].wakes);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "many-wakes");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT(has(story_finding(&s, 0)->message, shapes[i].text));
		story_free(&s);
	}
}

static void test_wakes_that_are_few_or_worth_it_are_within_the_budget(void)
{
	static const struct wakes shapes[] = {
		{ 200, 20000, 5, 4, TIMER }, /* 50 a second */
		{ 2000, 1000, 300, 1, SIGNAL }, { 2000, 2000, 100, 10, TIMER },
		{ 4000, 300, 9, 1, FD }, /* a peer that asks one thing after the other */
		{ 4000, 300, 9, 2, FD },	{ 4000, 300, 2, 40, FD }, /* clients */
		{ 1500, 2000, 5, 500, TIMER }, /* one a second for each of them */
		{ 50000, 4, 3, 2, SIGNAL },				  /* busy all the time */
	};

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct story s;

		wakes_story(&s, shapes[i]);
		CU_ASSERT(strcmp(story_finding_of(&s, "many-wakes")->check, "many-wakes") ||
			  story_finding_of(&s, "many-wakes")->severity == D9__INFO);
		story_free(&s);
	}
}

static void test_wakes_of_one_timer_are_told_once(void)
{
	struct story s;

	wakes_story(&s, (struct wakes) { 2000, 1000, 5, 1, TIMER });
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "idle-wakes");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "many-wakes")->check, "");
	story_free(&s);
}

/* A wake each 2 ms: of five, four are for WEB, by one of |tasks| in turn, and one for TICK's one
 * timer. */
static void wake_for_two(struct story *s, unsigned tasks)
{
	story_begin(s);
	story_spawn(s, 0, 1, TICK, "timer");
	for (unsigned i = 0; i < tasks; i++)
		story_spawn(s, 0, 10 + i, WEB, "timer");
	for (unsigned i = 0; i < 1000; i++) {
		unsigned task = i % 5 ? 10 + i % tasks : 1;

		story_unpark(s, 0, 2000 * i, 0);
		story_wake(s, 2000 * i, 0, task, TIMER);
		story_poll(s, 0, 2000 * i + 1, 2000 * i + 6, task, task == 1 ? TICK : WEB);
		story_park(s, 0, 2000 * i + 8, 0);
	}
	story_analyse(s);
}

static void test_callback_with_most_calls_is_named_whatever_each_of_its_tasks_has(void)
{
	struct story s;

	wake_for_two(&s, 11);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "many-wakes")->name, "app+0x400");
	CU_ASSERT(has(story_finding_of(&s, "many-wakes")->message, "timers, app+0x400 most often"));
	story_free(&s);
	wake_for_two(&s, 19);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "many-wakes")->name, "app+0x400");
	story_free(&s);
}

/* A wake each |apart_us| for a timer that is set anew |live| times ahead, and each 20 ms TICK. */
static void wake_for_new_ones(struct story *s, unsigned apart_us, unsigned live)
{
	unsigned n = 2000000 / apart_us;

	story_begin(s);
	story_spawn(s, 0, 1, TICK, "timer");
	for (unsigned i = 0; i < live; i++)
		story_spawn(s, 0, 10 + i, WEB, "once");
	for (unsigned i = 0; i < n; i++) {
		uint64_t us = (uint64_t)apart_us * i;

		story_unpark(s, 0, us, 0);
		story_wake(s, us, 0, 10 + i, TIMER);
		story_poll(s, 0, us + 1, us + 6, 10 + i, WEB);
		story_terminate(s, us + 6, 10 + i);
		story_spawn(s, us + 6, 10 + i + live, WEB, "once");
		if (us % 20000 < apart_us) {
			story_wake(s, us + 6, 0, 1, TIMER);
			story_poll(s, 0, us + 7, us + 12, 1, TICK);
		}
		story_park(s, 0, us + 15, 0);
	}
	story_analyse(s);
}

static void test_timers_that_are_made_anew_for_each_call_are_one(void)
{
	struct story s;

	wake_for_new_ones(&s, 2000, 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "idle-wakes");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x400");
	CU_ASSERT(has(story_finding(&s, 0)->message, "wakes worker 0 500 times a second"));
	story_free(&s);

	/* Many at once, as of connections, are none. */
	wake_for_new_ones(&s, 2000, 100);
	CU_ASSERT_STRING_NOT_EQUAL(story_finding_of(&s, "idle-wakes")->name, "app+0x400");
	CU_ASSERT(has(story_finding_of(&s, "many-wakes")->message,
		      "many timers, app+0x400 most often"));
	CU_ASSERT_EQUAL(story_finding_of(&s, "many-wakes")->severity, D9__INFO);
	story_free(&s);
}

/* |descriptors| that are ready all the time, one after the other, with no wait. */
static void spin_story(struct story *s, unsigned descriptors, unsigned us, unsigned n)
{
	story_begin(s);
	for (unsigned i = 0; i < descriptors; i++)
		story_spawn_fd(s, 0, 1 + i, WEB, 7 + i);
	for (unsigned i = 0; i < n; i++) {
		story_unpark(s, 0, (uint64_t)i * (us + 8), 0);
		story_wake(s, (uint64_t)i * (us + 8), 0, 1 + i % descriptors, FD);
		story_poll(s, 0, (uint64_t)i * (us + 8), (uint64_t)i * (us + 8) + us,
			   1 + i % descriptors, WEB);
		story_park(s, 0, (uint64_t)i * (us + 8) + us + 7, 0);
	}
	story_analyse(s);
}

static void test_descriptors_that_spin_together_are_one_spin_with_their_number(void)
{
	struct story s;

	spin_story(&s, 60, 1, 100000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
	CU_ASSERT(has(story_finding(&s, 0)->message, "(as were 59 others) was ready again"));
	story_free(&s);
	/* Each call does something. */
	spin_story(&s, 60, 20, 40000);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
}
/* Worker 0 is awake |busy_us| of each 10 ms for 2 s; |idle| others wait, and call |place| once if
 * that is given. */
static void workers_story(struct story *s, unsigned busy_us, unsigned idle, const char *place)
{
	story_begin(s);
	for (unsigned i = 1; i <= idle; i++)
		story_park(s, i, i, 0);
	for (unsigned i = 0; i < 200; i++) {
		story_unpark(s, 0, i * 10000, i * busy_us);
		story_poll(s, 0, i * 10000 + 1, i * 10000 + busy_us, 1 + i % 7, WEB);
		story_park(s, 0, i * 10000 + busy_us + 1, (i + 1) * busy_us);
	}
	for (unsigned i = 1; i <= idle; i++) {
		story_unpark(s, i, 2000000 + 100 * i, 0);
		if (place)
			story_poll(s, i, 2000000 + 100 * i, 2000010 + 100 * i, 100 + i, place);
		story_park(s, i, 2000050 + 100 * i, 0);
	}
	story_analyse(s);
}

static void test_one_worker_that_does_everything_beside_idle_ones_is_told(void)
{
	static const struct {
		unsigned busy_us, idle;
		const char *place;
		enum d9__severity severity; /* D9__SEVERITIES: not told */
	} shapes[] = {
		{ 6000, 3, NULL, D9__WARNING },
		{ 6000, 3, WEB, D9__WARNING }, /* the same, once */
		{ 4000, 2, NULL, D9__INFO },
		{ 6000, 3, TICK, D9__SEVERITIES }, /* they have a job of their own */
		{ 6000, 1, NULL, D9__SEVERITIES },
		{ 1000, 3, NULL, D9__SEVERITIES },
	};

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct story s;

		workers_story(&s, shapes[i].busy_us, shapes[i].idle, shapes[i].place);
		CU_ASSERT_EQUAL(story_finding_of(&s, "idle-workers")->severity, shapes[i].severity);
		if (shapes[i].severity == D9__WARNING)
			CU_ASSERT(has(story_finding_of(&s, "idle-workers")->message,
				      "Worker 0 does everything, and 3 other loops do nothing"));
		story_free(&s);
	}
}

static void test_calls_that_heap_up_on_the_one_worker_are_an_effect_of_the_idle_ones(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 1; i <= 3; i++)
		story_park(&s, i, i, 0);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t us = 30000 * i;

		story_unpark(&s, 0, us, 20000 * i);
		for (unsigned j = 0; j < 20; j++)
			story_wake(&s, us, 0, 1 + j, 1);
		for (unsigned j = 0; j < 20; j++)
			story_poll(&s, 0, us + 1 + 1000 * j, us + 1000 * (j + 1), 1 + j, WEB);
		story_park(&s, 0, us + 20001, 20000 * (i + 1));
	}
	for (unsigned i = 1; i <= 3; i++) {
		story_unpark(&s, i, 3000000 + i, 0);
		story_park(&s, i, 3000050 + i, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "idle-workers");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "");
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "backlog")->check, "backlog");
	story_free(&s);
}

/* Fifty times a second something goes back and forth between two loops, |hops| times. */
static void hops_story(struct story *s, unsigned hops)
{
	story_begin(s);
	story_park(s, 0, 0, 0);
	story_park(s, 1, 1, 0);
	for (unsigned i = 0; i < 50; i++)
		for (unsigned hop = 0; hop < hops; hop++) {
			uint64_t us = 20000 * i + 1000 + 30 * hop;
			unsigned to = hop % 2;

			story_wake_by(s, us, !to, 1 + to, CROSS_THREAD);
			story_unpark(s, to, us + 5, 0);
			story_poll(s, to, us + 6, us + 10, 1 + to, to ? WEB : TICK);
			story_park(s, to, us + 12, 0);
		}
	story_analyse(s);
}

static void test_two_loops_that_wake_each_other_are_one_finding(void)
{
	struct story s;

	hops_story(&s, 20);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "many-wakes");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT(has(story_finding(&s, 0)->message, "Workers 0 and 1 wake each other"));
	for (size_t i = 1; i < s.findings.n; i++)
		CU_ASSERT(strcmp(story_finding(&s, i)->check, "many-wakes") != 0);
	story_free(&s);

	hops_story(&s, 2);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "many-wakes")->check, "");
	story_free(&s);
}

/* Ten times a second the library takes |us| before it calls something. */
static void library_story(struct story *s, uint64_t us, bool full)
{
	story_begin(s);
	story_say(s, "loop.libev.capabilities", full ? "poll=full" : "poll=batch");
	story_say(s, "source.io", "on");
	for (unsigned i = 0; i < 30; i++) {
		uint64_t from_us = 100000 * i;

		story_unpark(s, 0, from_us, (us + 110) * i + 1);
		story_poll(s, 0, from_us + us, from_us + us + 100, 1, TICK);
		story_park(s, 0, from_us + us + 110, (us + 110) * (i + 1) + 1);
	}
	story_analyse(s);
}

static void test_library_that_calls_nothing_holds_its_loop(void)
{
	struct story s;

	library_story(&s, 20000, true);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "inside-library")->name, "inside libev");
	CU_ASSERT(has(story_finding_of(&s, "inside-library")->brief,
		      "holds the loop 20.0 ms, 30 times"));
	CU_ASSERT_EQUAL(story_finding_of(&s, "inside-library")->severity, D9__WARNING);
	story_free(&s);

	/* Callbacks may run in there that are not seen. */
	library_story(&s, 20000, false);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "inside-library")->check, "");
	story_free(&s);

	library_story(&s, 200, true);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "inside-library")->check, "");
	story_free(&s);
}

/* Half of the time is the library's: 100 us before each of 10,000 calls, and no wait. */
static void test_library_of_a_loop_that_never_waits_is_judged_by_its_calls(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.glib.capabilities", "poll=full");
	story_say(&s, "source.io", "on");
	story_unpark(&s, 0, 0, 0);
	for (unsigned i = 0; i < 10000; i++)
		story_poll(&s, 0, 200 * i + 100, 200 * i + 200, 1, TICK);
	story_park(&s, 0, 2000000, 2000000);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "inside-library")->check, "");
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "two loops that wake each other are one finding",
	  test_two_loops_that_wake_each_other_are_one_finding },
	{ "library that calls nothing holds its loop",
	  test_library_that_calls_nothing_holds_its_loop },
	{ "library of a loop that never waits is judged by its calls",
	  test_library_of_a_loop_that_never_waits_is_judged_by_its_calls },
	{ "calls that heap up on the one worker are an effect of the idle ones",
	  test_calls_that_heap_up_on_the_one_worker_are_an_effect_of_the_idle_ones },
	{ "wakes for little are told by their cause",
	  test_wakes_for_little_are_told_by_their_cause },
	{ "wakes that are few or worth it are within the budget",
	  test_wakes_that_are_few_or_worth_it_are_within_the_budget },
	{ "callback with most calls is named, whatever each of its tasks has",
	  test_callback_with_most_calls_is_named_whatever_each_of_its_tasks_has },
	{ "timers that are made anew for each call are one",
	  test_timers_that_are_made_anew_for_each_call_are_one },
	{ "wakes of one timer are told once", test_wakes_of_one_timer_are_told_once },
	{ "descriptors that spin together are one spin with their number",
	  test_descriptors_that_spin_together_are_one_spin_with_their_number },
	{ "one worker that does everything beside idle ones is told",
	  test_one_worker_that_does_everything_beside_idle_ones_is_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_budget", tests);
}
