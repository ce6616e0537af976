/* SPDX-License-Identifier: Apache-2.0 */
/* Findings on tasks that are made and do not end. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW "app+0x100 @ app+0x110"
#define WEB  "app+0x400 @ app+0x410"
#define READ "libevent-2.1.so.7+0x300 @ libevent-2.1.so.7+0x310"

#define MS(n) ((n)*UINT64_C(1000))

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* Ten tasks a step are made; |ended| of them end in the same step. */
static void populate(struct story *s, unsigned ended)
{
	uint64_t task = 1000;

	for (unsigned step = 0; step < 100; step++) {
		for (unsigned i = 0; i < 10; i++, task++) {
			story_spawn(s, step * 1000 + i, task, WEB, "timer");
			if (i < ended)
				story_terminate(s, step * 1000 + 500 + i, task);
		}
	}
	story_routine(s, 0, 0, 1000);
}

static void test_tasks_that_only_grow_are_a_leak_by_the_place_that_makes_them(void)
{
	struct story s;
	const struct d9__finding *leak;

	story_begin(&s);
	populate(&s, 1);
	story_analyse(&s);

	leak = story_finding_of(&s, "task-leak");
	CU_ASSERT_EQUAL(leak->severity, D9__WARNING);
	CU_ASSERT(has(leak->message, "1,000 were made, 100 ended, 900 are left"));
	CU_ASSERT_STRING_EQUAL(leak->evidence[0].text, "made at app+0x410");
	story_free(&s);
}

static void test_leak_is_seen_although_the_shutdown_frees_all(void)
{
	struct story s;

	story_begin(&s);
	populate(&s, 1);
	for (uint64_t task = 1000; task < 2000; task++)
		story_terminate(&s, 100100, task);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_finding_of(&s, "task-leak")->severity, D9__WARNING);
	CU_ASSERT(has(story_finding_of(&s, "task-leak")->message, "100 ended, 900 are left"));
	story_free(&s);
}

static void test_tasks_that_end_are_no_leak(void)
{
	struct story s;

	story_begin(&s);
	populate(&s, 10);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "task-leak")->check, "");
	story_free(&s);
}

static void test_population_that_was_made_at_the_start_is_no_leak(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 1000; i++)
		story_spawn(&s, i, 1000 + i, WEB, "io");
	story_routine(&s, 0, 0, 1000);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "task-leak")->check, "");
	story_free(&s);
}

static const char *leak_beside(unsigned first_tasks, unsigned last_tasks)
{
	const char *check;
	struct story s;

	story_begin(&s);
	story_tasks(&s, 0, first_tasks);
	populate(&s, 0);
	story_tasks(&s, 100000, last_tasks);
	story_analyse(&s);
	check = story_finding_of(&s, "task-leak")->check[0] ? "task-leak" : "";
	story_free(&s);
	return check;
}

static void test_old_tasks_that_run_for_the_first_time_are_no_leak(void)
{
	CU_ASSERT_STRING_EQUAL(leak_beside(1001, 1001), "");
	CU_ASSERT_STRING_EQUAL(leak_beside(1, 1001), "task-leak");
}

static void test_growth_whose_ends_are_invisible_is_only_a_hint(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.libevent.capabilities", "task_end=partial");
	populate(&s, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_finding_of(&s, "task-leak")->severity, D9__INFO);
	story_free(&s);
}

static void test_growth_of_tasks_that_never_ran_is_a_leak_where_their_ends_would_be_seen(void)
{
	struct story s;
	const struct d9__finding *leak;

	story_begin(&s);
	story_say(&s, "loop.libevent.capabilities", "task_end=partial,armed_end=full");
	populate(&s, 0);
	story_analyse(&s);

	leak = story_finding_of(&s, "task-leak");
	CU_ASSERT_EQUAL(leak->severity, D9__WARNING);
	CU_ASSERT(has(leak->message, "at least 1,000 were made, 0 ended, 1,000 are left, of which "
				     "1,000 never ran"));
	story_free(&s);
}

static void test_tasks_that_lived_when_a_segment_began_did_not_begin_in_it(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "segment.told_ns", "5001000000");
	for (unsigned i = 1; i <= 200; i++)
		story_spawn(&s, 1000, i, SLOW, "io");
	story_spawn(&s, 1001, 201, SLOW, "io");
	story_terminate(&s, 1002, 7);
	/* After a loss they are told again. */
	for (unsigned i = 1; i <= 201; i++)
		if (i != 7)
			story_spawn(&s, 500000, i, SLOW, "io");
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.analysis.tasks.spawned, 1);
	CU_ASSERT_EQUAL(s.analysis.tasks.at_start, 200);
	CU_ASSERT_EQUAL(s.analysis.tasks.ended, 1);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->alive, 200);
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->peak_alive, 201);
	story_free(&s);
}

static void test_leaked_tasks_of_the_library_are_named_by_who_has_them_made(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.libevent.capabilities", "poll=full,park=on,wake=full,task_end=full");
	for (unsigned i = 0; i < 400; i++) {
		story_unpark(&s, 0, i * MS(10), 0);
		story_start(&s, 0, i * MS(10) + 1, 1, SLOW);
		story_spawn_fd(&s, i * MS(10) + 5, 100 + i, READ, 20 + i);
		story_end(&s, 0, i * MS(10) + 10);
		story_poll(&s, 0, i * MS(10) + 20, i * MS(10) + 30, 100 + i, READ);
		story_park(&s, 0, i * MS(10) + 40, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "task-leak")->name, "app+0x100");
	CU_ASSERT(
		has(story_finding_of(&s, "task-leak")->evidence[0].text, "in calls of app+0x100"));
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "tasks that only grow are a leak by the place that makes them",
	  test_tasks_that_only_grow_are_a_leak_by_the_place_that_makes_them },
	{ "leak is seen although the shutdown frees all",
	  test_leak_is_seen_although_the_shutdown_frees_all },
	{ "tasks that end are no leak", test_tasks_that_end_are_no_leak },
	{ "old tasks that run for the first time are no leak",
	  test_old_tasks_that_run_for_the_first_time_are_no_leak },
	{ "population that was made at the start is no leak",
	  test_population_that_was_made_at_the_start_is_no_leak },
	{ "growth whose ends are invisible is only a hint",
	  test_growth_whose_ends_are_invisible_is_only_a_hint },
	{ "growth of tasks that never ran is a leak where their ends would be seen",
	  test_growth_of_tasks_that_never_ran_is_a_leak_where_their_ends_would_be_seen },
	{ "tasks that lived when a segment began did not begin in it",
	  test_tasks_that_lived_when_a_segment_began_did_not_begin_in_it },
	{ "leaked tasks of the library are named by who has them made",
	  test_leaked_tasks_of_the_library_are_named_by_who_has_them_made },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings on leaks", tests);
}
