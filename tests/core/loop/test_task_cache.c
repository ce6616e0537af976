/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/thread_state.h"
#include "support/d9_test.h"

#define FIRST_MASK ((1u << D9__CACHED_BITS) * sizeof(struct d9__cached_task) - 1)
#define LAST_MASK  ((1u << D9__CACHED_MAX_BITS) * sizeof(struct d9__cached_task) - 1)

static struct d9_loop *loop;

static struct d9__task_cache *cache_of_this_thread(void)
{
	return &d9__thread_peek()->cache;
}

static void poll_key(uint64_t key, uint16_t flags)
{
	static struct d9_callsite *callsite;
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = -1, .flags = flags } };

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
			poll_key(i * 64, 0);
		loop_events_collect();
	}
}

static uint64_t count_kept(uint64_t n)
{
	uint64_t kept = 0;

	for (uint64_t i = 1; i <= n; i++)
		kept += d9__task_cache_find(cache_of_this_thread(), i * 64)->key == i * 64;
	return kept;
}

static void test_two_tasks_of_one_place_are_both_kept(void)
{
	static struct d9__task_cache cache;
	static struct d9__task tasks[3];
	uint64_t keys[3] = { 64 };
	const struct d9__cached_task *place;

	d9__task_cache_init(&cache);
	place = d9__task_cache_place(&cache, keys[0]);
	for (unsigned i = 1; i < 3; i++) {
		keys[i] = keys[i - 1];
		do
			keys[i] += 64;
		while (d9__task_cache_place(&cache, keys[i]) != place);
	}
	for (unsigned i = 0; i < 3; i++) {
		atomic_init(&tasks[i].id, i + 1);
		d9__task_cache_put(&cache, D9_LIBRARY_OWN, keys[i], &tasks[i]);
		CU_ASSERT_PTR_EQUAL(d9__task_cache_find(&cache, keys[i])->task, &tasks[i]);
		if (i)
			CU_ASSERT_PTR_EQUAL(d9__task_cache_find(&cache, keys[i - 1])->task,
					    &tasks[i - 1]);
	}
	/* The third drove out the one that was put there first. */
	CU_ASSERT_NOT_EQUAL(d9__task_cache_find(&cache, keys[0])->key, keys[0]);
	d9__task_cache_free(&cache);
}

static void test_an_empty_place_is_no_task(void)
{
	static struct d9__task_cache cache;

	d9__task_cache_init(&cache);
	CU_ASSERT_FALSE(d9__cached_task_is(d9__task_cache_find(&cache, 0), D9_LIBRARY_OWN, 0));
	d9__task_cache_free(&cache);
}

static void test_tasks_that_come_back_get_room_for_all(void)
{
	poll_in_turns(100, 3);
	CU_ASSERT_EQUAL(cache_of_this_thread()->mask | 63, FIRST_MASK);
	poll_in_turns(3000, 8);
	CU_ASSERT_TRUE(cache_of_this_thread()->mask > FIRST_MASK);
	CU_ASSERT_TRUE(count_kept(3000) > 2900);
}

static void *poll_ever_new_keys(void *arg)
{
	uint32_t *mask = arg;

	for (uint64_t i = 1; i <= 20000; i++)
		poll_key(UINT64_C(1) << 40 | i << 6, D9_TASK_RUNS_ONCE);
	*mask = cache_of_this_thread()->mask;
	return NULL;
}

static void test_tasks_that_never_come_back_get_none(void)
{
	pthread_t thread;
	uint32_t mask = 0;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, poll_ever_new_keys, &mask), 0);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(mask | 63, FIRST_MASK);
	loop_events_collect();
}

static void test_room_has_an_end(void)
{
	poll_in_turns(100000, 6);
	CU_ASSERT_TRUE(cache_of_this_thread()->mask <= LAST_MASK);
	CU_ASSERT_TRUE(count_kept(100000) > 20000);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		{ "two tasks of one place are both kept",
		  test_two_tasks_of_one_place_are_both_kept },
		{ "an empty place is no task", test_an_empty_place_is_no_task },
		{ "tasks that come back get room for all",
		  test_tasks_that_come_back_get_room_for_all },
		{ "tasks that never come back get none", test_tasks_that_never_come_back_get_none },
		{ "room has an end", test_room_has_an_end },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("task cache", tests);
}
