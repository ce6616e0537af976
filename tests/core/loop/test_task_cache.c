/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/thread_state.h"
#include "support/d9_test.h"

static struct d9_loop *loop;

static struct d9__task_cache *cache_of_this_thread(void)
{
	return &d9__thread_peek()->cache;
}

static void poll_key(uint64_t key)
{
	static struct d9_callsite *callsite;
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = -1 } };

	if (!callsite)
		callsite = (struct d9_callsite *)d9_callsite((const void *)poll_key, NULL, 0);
	poll.task.callsite = callsite;
	d9_poll_begin(&poll);
	loop_ns += 10;
	d9_poll_end(&poll);
}

static void poll_in_turns(uint64_t n, unsigned turns)
{
	while (turns--) {
		for (uint64_t i = 1; i <= n; i++)
			poll_key(i * 64);
		loop_events_collect();
	}
}

static uint64_t count_kept(uint64_t n)
{
	uint64_t kept = 0;

	for (uint64_t i = 1; i <= n; i++)
		kept += d9__task_cache_get(cache_of_this_thread(), i * 64) != NULL;
	return kept;
}

static void test_two_tasks_of_one_place_are_both_kept(void)
{
	static struct d9__task_cache cache;
	static struct d9__task tasks[3];
	uint64_t keys[3] = { 64 };

	for (unsigned i = 1; i < 3; i++) {
		keys[i] = keys[i - 1];
		do
			keys[i] += 64;
		while (d9__task_cache_offset(keys[i]) != d9__task_cache_offset(keys[0]));
	}
	for (unsigned i = 0; i < 3; i++) {
		atomic_init(&tasks[i].id, i + 1);
		d9__task_cache_put(&cache, D9_LIBRARY_OWN, keys[i], &tasks[i]);
		CU_ASSERT_PTR_EQUAL(d9__task_cache_get(&cache, keys[i])->task, &tasks[i]);
		if (i)
			CU_ASSERT_PTR_EQUAL(d9__task_cache_get(&cache, keys[i - 1])->task,
					    &tasks[i - 1]);
	}
	/* The third drove out the one that was put there first. */
	CU_ASSERT_PTR_NULL(d9__task_cache_get(&cache, keys[0]));
}

static void test_an_empty_place_is_no_task(void)
{
	static struct d9__task_cache cache;

	CU_ASSERT_FALSE(d9__cached_task_is(d9__task_cache_get(&cache, 0), D9_LIBRARY_OWN));
}

static void test_a_task_that_ended_is_not_found_under_its_key(void)
{
	static struct d9__task_cache cache;
	static struct d9__task task;

	atomic_init(&task.id, 7);
	d9__task_cache_put(&cache, D9_LIBRARY_OWN, 64, &task);
	CU_ASSERT_TRUE(d9__cached_task_is(d9__task_cache_get(&cache, 64), D9_LIBRARY_OWN));
	CU_ASSERT_FALSE(d9__cached_task_is(d9__task_cache_get(&cache, 64), D9_LIBRARY_GLIB));
	atomic_store(&task.id, 8);
	CU_ASSERT_FALSE(d9__cached_task_is(d9__task_cache_get(&cache, 64), D9_LIBRARY_OWN));
}

static void test_hundreds_of_tasks_that_take_turns_are_kept(void)
{
	poll_in_turns(500, 3);
	CU_ASSERT_EQUAL(count_kept(500), 500);
}

static void test_more_tasks_than_places_are_recorded_all(void)
{
	const struct loop_events *events;
	unsigned starts = 0;

	loop_events_collect();
	for (unsigned turn = 0; turn < 2; turn++) {
		for (uint64_t i = 1; i <= 3000; i++)
			poll_key(i * 64);
	}
	events = loop_events_collect();
	for (size_t i = 0; i < events->n; i++)
		starts += events->items[i].kind == LOOP_START;
	CU_ASSERT_EQUAL(starts, 6000);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		{ "two tasks of one place are both kept",
		  test_two_tasks_of_one_place_are_both_kept },
		{ "an empty place is no task", test_an_empty_place_is_no_task },
		{ "a task that ended is not found under its key",
		  test_a_task_that_ended_is_not_found_under_its_key },
		{ "hundreds of tasks that take turns are kept",
		  test_hundreds_of_tasks_that_take_turns_are_kept },
		{ "more tasks than places are recorded all",
		  test_more_tasks_than_places_are_recorded_all },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("task cache", tests);
}
