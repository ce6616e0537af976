/* SPDX-License-Identifier: Apache-2.0 */
/* Idle tasks: the waits that their dumps show. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/idle.h"
#include "story.h"
#include "support/d9_test.h"

#define PLACE "app+0x100 @ app+0x110"

#define HERE  0x1000u
#define THERE 0x2000u

/* The stack that was armed at |address|. */
static struct d9__idle_stack stack_at(const struct story *s, uint64_t address)
{
	struct d9__idle_stack found = { .dumps = 0 };
	const struct d9__idle_stack **sorted;
	size_t n;

	sorted = d9__idle_sorted(&s->analysis.idle, &n);
	for (size_t i = 0; i < n; i++)
		if (sorted[i]->stack->addresses[0] == address)
			found = *sorted[i];
	free(sorted);
	return found;
}

static void test_wait_lasts_from_its_dump_to_the_next_poll_of_its_task(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "task_dump.idle_threshold_ms", "1");
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, 10, 20, 1, PLACE);
	story_dump(&s, 20, 1, HERE);
	story_poll(&s, 0, 30, 40, 2, PLACE);
	story_dump(&s, 40, 2, THERE);
	story_poll(&s, 0, 200020, 200030, 1, PLACE);
	story_poll(&s, 0, 300040, 300050, 2, PLACE);
	story_park(&s, 0, 300060, 0);
	story_analyse(&s);
	CU_ASSERT_DOUBLE_EQUAL(stack_at(&s, HERE).idle_ns, 200e6, 1);
	CU_ASSERT_EQUAL(stack_at(&s, HERE).longest_ns, 200000000);
	CU_ASSERT_DOUBLE_EQUAL(stack_at(&s, THERE).idle_ns, 300e6, 1);
	CU_ASSERT_EQUAL(s.analysis.idle.dumps, 2);
	story_free(&s);
}

/* Of waits of 1 ms, one in ten has a dump if the mean is 10 ms. */
static void test_short_wait_stands_for_those_that_were_not_dumped(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "task_dump.idle_threshold_ms", "10");
	story_unpark(&s, 0, 0, 0);
	story_dump(&s, 20, 1, HERE);
	story_poll(&s, 0, 1020, 1030, 1, PLACE);
	story_park(&s, 0, 1060, 0);
	story_analyse(&s);
	CU_ASSERT_DOUBLE_EQUAL(stack_at(&s, HERE).idle_ns, 1e6 / (1 - 0.904837418), 1e3);
	story_free(&s);
}

static void test_wait_that_no_poll_ends_lasts_to_the_end_of_its_task_or_of_the_trace(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "task_dump.idle_threshold_ms", "1");
	story_unpark(&s, 0, 0, 0);
	story_spawn(&s, 10, 1, PLACE, "timer");
	story_dump(&s, 20, 1, HERE);
	story_dump(&s, 30, 2, THERE);
	story_terminate(&s, 100020, 1);
	story_park(&s, 0, 500030, 0);
	story_analyse(&s);
	CU_ASSERT_DOUBLE_EQUAL(stack_at(&s, HERE).idle_ns, 100e6, 1);
	CU_ASSERT_DOUBLE_EQUAL(stack_at(&s, THERE).idle_ns, 500e6, 1);
	story_free(&s);
}

/* As of a dump at the end of a segment whose others are gone. */
static void test_old_dump_does_not_stretch_the_trace(void)
{
	struct story s;

	story_begin(&s);
	story_dump(&s, 20, 1, HERE);
	story_unpark(&s, 0, 900000, 0);
	story_poll(&s, 0, 1000000, 1000010, 1, PLACE);
	story_park(&s, 0, 1000020, 0);
	story_analyse(&s);
	CU_ASSERT_EQUAL(s.analysis.last_ns - s.analysis.first_ns, 100020000);
	CU_ASSERT_EQUAL(stack_at(&s, HERE).longest_ns, 999980000);
	story_free(&s);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "wait lasts from its dump to the next poll of its task",
		  test_wait_lasts_from_its_dump_to_the_next_poll_of_its_task },
		{ "short wait stands for those that were not dumped",
		  test_short_wait_stands_for_those_that_were_not_dumped },
		{ "wait that no poll ends lasts to the end of its task or of the trace",
		  test_wait_that_no_poll_ends_lasts_to_the_end_of_its_task_or_of_the_trace },
		{ "old dump does not stretch the trace", test_old_dump_does_not_stretch_the_trace },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("idle tasks", tests);
}
