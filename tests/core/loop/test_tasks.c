/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <string.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/loops.h"
#include "loop/samples.h"
#include "loop/tasks.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "ring/ring_file.h"
#include "support/d9_test.h"

static struct d9_loop *loop;

static uint64_t poll_task(struct d9_loop *of, struct d9_task task)
{
	struct d9_poll poll = { .loop = of, .task = task };
	uint64_t id;

	d9_poll_begin(&poll);
	id = poll.task_id;
	loop_ns += 10;
	d9_poll_end(&poll);
	return id;
}

static uint64_t poll_key(uint64_t key, uint64_t identity)
{
	return poll_task(loop, (struct d9_task){ .key = key, .identity = identity, .fd = -1 });
}

static void test_ids_are_small_and_carry_the_library(void)
{
	struct d9_loop *other;
	int address = 0;

	other = loop_events_add(D9_LIBRARY_GLIB, &address);
	poll_key(1, 0);
	CU_ASSERT_EQUAL(poll_key(1, 0) & 3, D9_LIBRARY_OWN);
	CU_ASSERT_EQUAL(poll_task(other, (struct d9_task){ .key = 1, .fd = -1 }) & 3,
			D9_LIBRARY_GLIB);
	CU_ASSERT_NOT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 1), d9_task_id(D9_LIBRARY_GLIB, 1));
	d9_loop_unregister(other);
	CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_GLIB, 1), 0);
	loop_events_collect();
}

static void test_spawn_is_written_once_before_the_first_poll(void)
{
	const struct loop_events *events;
	struct d9_task task = { .key = 10, .fd = 5, .kind = D9_TASK_TIMER,
				.flags = D9_TASK_NO_WAKES };

	poll_task(loop, task);
	poll_task(loop, task);

	events = loop_events_collect();
	CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(loop_story(events), "s()()"));
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAWN, 0)->fd, 5);
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_SPAWN, 0)->task_kind, "timer");
	CU_ASSERT_FALSE(loop_nth(events, LOOP_SPAWN, 0)->instrumented);
}

static void close_gate(void)
{
	d9__gate_set(0);
}

static void told_before_its_two_polls(uint64_t id)
{
	const struct loop_events *events = loop_events_collect();

	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAWN), 1);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_START), 2);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAWN, 0)->task, id);
	CU_ASSERT(loop_nth(events, LOOP_SPAWN, 0) < loop_nth(events, LOOP_START, 0));
}

static void test_task_whose_poll_recording_is_switched_off_in_is_told(void)
{
	struct d9_task task = { .key = 61, .fd = -1 };
	uint64_t id;

	loop_clock_read = close_gate;
	id = poll_task(loop, task);
	CU_ASSERT_NOT_EQUAL(id, 0);
	CU_ASSERT_PTR_NULL(loop_clock_read);
	d9__gate_set(D9__GATE_ALL);
	poll_task(loop, task);
	told_before_its_two_polls(id);
}

static void test_task_whose_spawn_was_lost_is_told_at_its_next_poll(void)
{
	struct d9_task task = { .key = 62, .fd = -1 };
	struct d9__slot *slot;
	const _Atomic(uint64_t) *lost;
	uint64_t id, before;

	poll_key(1, 0);
	loop_events_collect();
	slot = d9__slot_self();
	lost = &d9__ring.losses[d9__slot_index(slot)].cause[D9__LOSS_REENTRANT].events;
	before = atomic_load(lost);
	/* As in a handler that interrupts an event. */
	atomic_store(&slot->busy, 1);
	poll_task(loop, task);
	atomic_store(&slot->busy, 0);
	CU_ASSERT_EQUAL(atomic_load(lost) - before, 3); /* it, and its poll's start and end */
	id = poll_task(loop, task);
	poll_task(loop, task);
	told_before_its_two_polls(id);
}

/* Fields that tasks of one callsite have in common are written once. */
static void test_tasks_of_one_callsite_tell_each_its_own(void)
{
	struct d9_task task = { .key = 13, .fd = -1, .kind = D9_TASK_IO };
	const struct loop_events *events;

	task.callsite = d9_callsite((const void *)0x1000, (const void *)0x2000, 0);
	poll_task(loop, task);
	for (task.key = 14; task.key < 18; task.key++) {
		task.fd = (int)(1 << 4 * (task.key - 14));
		poll_task(loop, task);
	}
	task.fd = -1;
	task.kind = D9_TASK_TIMER;
	task.flags = D9_TASK_NO_WAKES;
	poll_task(loop, task);
	task.key++;
	task.name = "named";
	poll_task(loop, task);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "s()s()s()s()s()s()s()");
	for (size_t i = 0; i < 7; i++) {
		const struct loop_event *spawn = loop_nth(events, LOOP_SPAWN, i);

		CU_ASSERT_STRING_EQUAL(spawn->text, "0x1000 @ 0x2000");
		CU_ASSERT_EQUAL(spawn->task, loop_nth(events, LOOP_START, i)->task);
		CU_ASSERT_EQUAL(spawn->fd, i >= 1 && i < 5 ? 1u << 4 * (i - 1) : UINT64_MAX);
		CU_ASSERT_STRING_EQUAL(spawn->task_kind, i < 5 ? "io" : "timer");
		CU_ASSERT_EQUAL(spawn->instrumented, i < 5);
	}
}

/* Spelled for themselves: neither do they spell as the others, nor the others as they. */
static void test_named_tasks_of_one_callsite_keep_their_names(void)
{
	static const char *const names[] = { NULL, "first", NULL, "second", "second", NULL };
	struct d9_task task = { .fd = -1, .kind = D9_TASK_IDLE };
	const struct loop_events *events;

	task.callsite = d9_callsite((const void *)(uintptr_t)poll_key, NULL, 0);
	for (uint64_t i = 0; i < 2 * 6; i++) {
		task.key = 200 + i;
		task.fd = i < 6 ? -1 : (int)i;
		task.name = names[i % 6];
		poll_task(loop, task);
	}

	events = loop_events_collect();
	CU_ASSERT_EQUAL_FATAL(loop_count(events, LOOP_SPAWN), 12);
	for (size_t i = 0; i < 2 * 6; i++) {
		const struct loop_event *spawn = loop_nth(events, LOOP_SPAWN, i);

		CU_ASSERT_STRING_EQUAL(spawn->task_name, names[i % 6] ? names[i % 6] : "");
		CU_ASSERT_STRING_EQUAL(spawn->task_kind, "idle");
		CU_ASSERT_EQUAL(spawn->fd, i < 6 ? UINT64_MAX : i);
		d9_task_end(D9_LIBRARY_OWN, 200 + i);
	}
	loop_events_collect();
}

static void test_task_that_never_runs_writes_nothing(void)
{
	struct d9_task task = { .key = 11, .fd = -1 };

	CU_ASSERT_EQUAL(d9_task_arm(loop, &task), 0);
	d9_task_end(D9_LIBRARY_OWN, 11);

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "");
}

static void test_tasks_that_heap_up_are_told_without_a_run(void)
{
	struct d9_task task = { .fd = -1, .kind = D9_TASK_TIMER };
	const struct loop_events *events;

	task.callsite = d9_callsite((const void *)0x3000, NULL, 0);
	poll_key(1, 0);
	loop_events_collect();
	for (task.key = 5000; task.key < 6000; task.key++)
		d9_task_arm(loop, &task);
	d9_task_end(D9_LIBRARY_OWN, 5999);
	poll_task(loop, (struct d9_task){ .key = 5998, .fd = -1 });

	events = loop_events_collect();
	CU_ASSERT_TRUE(loop_count(events, LOOP_SPAWN) > 600);
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_SPAWN, 600)->text, "0x3000");
	CU_ASSERT_EQUAL(loop_count(events, LOOP_TERMINATE), 1);
	for (task.key = 5000; task.key < 6000; task.key++)
		d9_task_end(D9_LIBRARY_OWN, task.key);
	loop_events_collect();
}

static void test_armed_task_lends_its_callsite_to_the_first_poll(void)
{
	struct d9_task task = { .key = 12, .fd = 9, .kind = D9_TASK_SIGNAL };
	const struct loop_events *events;

	task.callsite = d9_callsite((const void *)0x1000, (const void *)0x2000, 0);
	d9_task_arm(loop, &task);
	poll_task(loop, (struct d9_task){ .key = 12, .fd = -1, .kind = D9_TASK_SIGNAL });

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_SPAWN, 0)->text, "0x1000 @ 0x2000");
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_START, 0)->text, "0x1000 @ 0x2000");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAWN, 0)->fd, 9);
}

static void test_same_identity_keeps_the_id_another_one_ends_the_task(void)
{
	uint64_t first = poll_key(20, 7), second;

	CU_ASSERT_EQUAL(poll_key(20, 7), first);
	d9_task_renew(D9_LIBRARY_OWN, 20, 7);
	CU_ASSERT_EQUAL(poll_key(20, 7), first);
	loop_events_collect();

	second = poll_key(20, 8);

	CU_ASSERT_NOT_EQUAL(second, first);
	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "ts()");
}

static void test_renewed_task_ends_at_its_next_poll(void)
{
	uint64_t first = poll_key(21, 7);

	loop_events_collect();
	d9_task_renew(D9_LIBRARY_OWN, 21, 0);
	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "");
	CU_ASSERT_NOT_EQUAL(poll_key(21, 7), first);
	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "ts()");
}

static void test_task_that_ends_in_its_own_callback_ends_behind_it(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 22, .fd = -1 } };
	uint64_t id = poll_key(22, 0);

	loop_events_collect();
	d9_poll_begin(&poll);
	loop_ns += 10;
	d9_task_end(D9_LIBRARY_OWN, 22);
	d9_poll_end(&poll);

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "()t");
	CU_ASSERT_NOT_EQUAL(poll_key(22, 0), id);
	loop_events_collect();
}

static __attribute__((noinline)) void end_in_inner_loop(uint64_t key, bool before)
{
	struct d9_loop_run run;

	if (before)
		d9_task_end(D9_LIBRARY_OWN, key);
	d9_loop_enter(loop, &run);
	poll_key(key + 1, 1);
	if (!before)
		d9_task_end(D9_LIBRARY_OWN, key);
	poll_key(key + 1, 1);
	d9_loop_leave(&run);
}

/* An event that frees itself and then runs a loop, or is freed in that: its callback goes on. */
static void test_task_that_ends_around_an_inner_loop_ends_behind_its_last_piece(void)
{
	for (int before = 0; before < 2; before++) {
		struct d9_poll poll = { .loop = loop, .task = { .key = 48, .identity = 1, .fd = -1 } };
		const struct loop_events *events;
		const char *story;

		d9_poll_begin(&poll);
		loop_ns += 10;
		end_in_inner_loop(48, before);
		loop_ns += 10;
		CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 48), 0);
		d9_poll_end(&poll);

		events = loop_events_collect();
		story = loop_story(events);
		CU_ASSERT_EQUAL(loop_count(events, LOOP_TERMINATE), 1);
		CU_ASSERT_STRING_EQUAL(story + strlen(story) - 2, ")t");
		poll_key(48, 1); /* another one */
		CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_TERMINATE), 0);
		d9_task_end(D9_LIBRARY_OWN, 48);
		loop_events_collect();
	}
}

/* Inside its own callback a loop runs it again, and then it is over. */
static __attribute__((noinline)) void run_inside(uint64_t key)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	poll_key(key, 1);
	d9_task_end(D9_LIBRARY_OWN, key);
	d9_loop_leave(&run);
}

static void test_task_that_ends_inside_its_own_callback_ends_behind_the_outermost(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 44, .identity = 1, .fd = -1 } };
	const struct loop_events *events;
	const char *story;

	d9_poll_begin(&poll);
	loop_ns += 10;
	run_inside(44);
	loop_ns += 10;
	d9_poll_end(&poll);

	CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 44), 0);
	events = loop_events_collect();
	story = loop_story(events);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_START), 3);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_TERMINATE), 1);
	CU_ASSERT_STRING_EQUAL(story + strlen(story) - 2, ")t");

	poll_key(45, 1);
	d9_task_end(D9_LIBRARY_OWN, 45);
	CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 45), 0);
	loop_events_collect();
}

static __attribute__((noinline)) void leave_behind(uint64_t key)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .identity = 1, .fd = -1 } };

	d9_poll_begin(&poll);
	d9_task_end(D9_LIBRARY_OWN, key);
}

static void test_task_that_ends_in_a_callback_which_is_left_ends_all_the_same(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 47, .identity = 1, .fd = -1 } };

	leave_behind(46);
	loop_ns += 10;
	/* Above what was left. */
	d9_poll_begin(&poll);
	d9_poll_end(&poll);

	CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 46), 0);
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_TERMINATE), 1);
}

static void test_task_that_runs_once_ends_with_its_poll(void)
{
	struct d9_task task = { .key = 23, .fd = -1, .flags = D9_TASK_RUNS_ONCE };

	poll_task(loop, task);

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "s()t");
	CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 23), 0);
}

static void test_loop_that_is_unregistered_ends_its_tasks(void)
{
	struct d9_loop *short_lived;
	int address = 0;

	short_lived = loop_events_add(D9_LIBRARY_OWN, &address);
	for (uint64_t key = 1; key <= 100; key++)
		poll_task(short_lived, (struct d9_task){ .key = 1000 + key, .fd = -1 });
	CU_ASSERT_EQUAL(d9__tasks_of(short_lived), 100);
	loop_events_collect();

	d9_loop_unregister(short_lived);

	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_TERMINATE), 100);
	CU_ASSERT_PTR_NULL(d9_loop_find(D9_LIBRARY_OWN, &address));
}

static void test_million_keys_leave_a_bounded_table_and_never_an_id_twice(void)
{
	uint64_t last = 0, evicted = d9__tasks_evicted();
	const uint32_t keys = 1000000;
	uint32_t most = 0;

	d9__tasks_set_limit(4096);
	for (uint32_t i = 0; i < keys; i++) {
		uint64_t id = poll_key(UINT64_C(0x7f0000000000) + (uint64_t)i * 64, 1);

		CU_ASSERT_TRUE_FATAL(id > last);
		last = id;
		if (i % 20000)
			continue;
		most = d9__tasks_count() > most ? d9__tasks_count() : most;
		/* The ring holds less than all. */
		loop_events_collect();
	}
	d9__tasks_set_limit(D9__TASKS_LIMIT);

	CU_ASSERT(most <= 4096);
	CU_ASSERT(d9__tasks_evicted() - evicted >= keys - 4096);
	loop_events_collect();
}

static void test_evicted_tasks_are_the_ones_that_rest(void)
{
	uint64_t busy = poll_key(30, 1);

	d9__tasks_set_limit(4096);
	for (uint32_t i = 0; i < 100000; i++) {
		poll_key(UINT64_C(0x500000000000) + (uint64_t)i * 64, 1);
		if (i % 16 == 0)
			CU_ASSERT_EQUAL_FATAL(poll_key(30, 1), busy);
		if (i % 10000 == 0)
			loop_events_collect();
	}
	d9__tasks_set_limit(D9__TASKS_LIMIT);
	loop_events_collect();
}

static void test_address_used_again_after_the_end_is_a_new_task(void)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t id = poll_key(31, 1);

		CU_ASSERT_TRUE_FATAL(id > last);
		last = id;
		d9_task_end(D9_LIBRARY_OWN, 31);
	}
	loop_events_collect();
}

/* ---- several threads ---- */

#define THREADS 8
#define ROUNDS  20000

static _Atomic(uint32_t) wrong;

/* Own keys come and go; a shared one is looked for all the time. */
static void *churn(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 32;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct d9__tasks_ended ended = { .n = 0 };
		struct d9_task task = { .key = base + i % 97, .identity = i, .fd = -1 };
		struct d9__task *entry;

		if (!d9__tasks_find(D9_LIBRARY_OWN, 40))
			wrong++;
		if (d9__tasks_obtain(loop, task.key, &task, 1, &entry, &ended))
			continue;
		if (d9__tasks_find(D9_LIBRARY_OWN, task.key) != entry)
			wrong++;
		d9_task_renew(D9_LIBRARY_OWN, task.key, i % 3);
		if (i % 5 == 0)
			d9__tasks_remove(D9_LIBRARY_OWN, task.key, 0, 1, &ended);
	}
	for (uint64_t i = 0; i < 97; i++)
		d9_task_end(D9_LIBRARY_OWN, base + i);
	return NULL;
}

static void test_threads_look_up_while_others_insert_and_remove(void)
{
	pthread_t threads[THREADS];
	uint32_t before;

	poll_key(40, 0);
	before = d9__tasks_of(loop);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);

	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(d9__tasks_of(loop), before);
	loop_events_collect();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "ids are small and carry the library", test_ids_are_small_and_carry_the_library },
		{ "spawn is written once before the first poll",
		  test_spawn_is_written_once_before_the_first_poll },
		{ "task whose poll recording is switched off in is told",
		  test_task_whose_poll_recording_is_switched_off_in_is_told },
		{ "task whose spawn was lost is told at its next poll",
		  test_task_whose_spawn_was_lost_is_told_at_its_next_poll },
		{ "tasks of one callsite tell each its own",
		  test_tasks_of_one_callsite_tell_each_its_own },
		{ "named tasks of one callsite keep their names",
		  test_named_tasks_of_one_callsite_keep_their_names },
		{ "task that never runs writes nothing", test_task_that_never_runs_writes_nothing },
		{ "tasks that heap up are told without a run",
		  test_tasks_that_heap_up_are_told_without_a_run },
		{ "armed task lends its callsite to the first poll",
		  test_armed_task_lends_its_callsite_to_the_first_poll },
		{ "same identity keeps the id, another one ends the task",
		  test_same_identity_keeps_the_id_another_one_ends_the_task },
		{ "renewed task ends at its next poll", test_renewed_task_ends_at_its_next_poll },
		{ "task that ends in its own callback ends behind it",
		  test_task_that_ends_in_its_own_callback_ends_behind_it },
		{ "task that ends around an inner loop ends behind its last piece",
		  test_task_that_ends_around_an_inner_loop_ends_behind_its_last_piece },
		{ "task that ends inside its own callback ends behind the outermost",
		  test_task_that_ends_inside_its_own_callback_ends_behind_the_outermost },
		{ "task that ends in a callback which is left ends all the same",
		  test_task_that_ends_in_a_callback_which_is_left_ends_all_the_same },
		{ "task that runs once ends with its poll",
		  test_task_that_runs_once_ends_with_its_poll },
		{ "loop that is unregistered ends its tasks",
		  test_loop_that_is_unregistered_ends_its_tasks },
		{ "million keys leave a bounded table and never an id twice",
		  test_million_keys_leave_a_bounded_table_and_never_an_id_twice },
		{ "evicted tasks are the ones that rest",
		  test_evicted_tasks_are_the_ones_that_rest },
		{ "address used again after the end is a new task",
		  test_address_used_again_after_the_end_is_a_new_task },
		{ "threads look up while others insert and remove",
		  test_threads_look_up_while_others_insert_and_remove },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("tasks", tests);
}
