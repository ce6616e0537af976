/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <string.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/adapter.h"
#include "loop/polls.h"
#include "loop/tasks.h"
#include "ring/gate.h"
#include "support/d9_test.h"

static struct d9_loop *loop;
static const struct d9_callsite *callsite;

static void begin(struct d9_poll *poll, uint64_t key)
{
	*poll = (struct d9_poll){ .loop = loop,
				  .depth = 3,
				  .flags = D9_POLL_BATCHED,
				  .task = { .key = key,
					    .identity = 7,
					    .callsite = callsite,
					    .fd = -1,
					    .kind = D9_TASK_ONCE,
					    .flags = D9_TASK_RUNS_ONCE } };
	d9__poll_begin_once(poll);
}

/* Frames of its own, as callbacks have: what is inside another poll lies below it on the stack. */
static __attribute__((noinline)) uint64_t poll_once(uint64_t key)
{
	struct d9_poll poll;
	uint64_t id;

	begin(&poll, key);
	id = poll.task_id;
	loop_ns += 10;
	d9__poll_end_once(&poll);
	return id;
}

static void poll_other(uint64_t key)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = -1 } };

	d9_poll_begin(&poll);
	loop_ns += 10;
	d9_poll_end(&poll);
}

/* The chunk knows the names: the short way is open. */
static void prepare(void)
{
	loop_events_collect();
	poll_once(1);
	loop_ns += 1000;
}

static const char *story_behind_first(void)
{
	const char *story = loop_story(loop_events_collect());

	return strchr(story, 't') ? strchr(story, 't') + 1 : "";
}

/* ---- the short way ---- */

static void test_life_of_a_task_that_runs_once_is_told_as_any_others(void)
{
	const struct loop_event *first, *second;
	const struct loop_events *events;
	uint64_t id, woken_ns;

	prepare();
	woken_ns = loop_ns;
	CU_ASSERT_EQUAL(d9_wake(loop, 2, D9_WAKE_ACTIVE, NULL), 1);
	loop_ns += 100;
	id = poll_once(2);

	events = loop_events_collect();
	CU_ASSERT_PTR_NOT_NULL(strstr(loop_story(events), "s()tsw()t"));
	first = loop_nth(events, LOOP_SPAWN, 0);
	second = loop_nth(events, LOOP_SPAWN, 1);
	CU_ASSERT_EQUAL(second->task, id);
	CU_ASSERT(id > first->task);
	CU_ASSERT_STRING_EQUAL(second->text, first->text);
	CU_ASSERT_STRING_EQUAL(second->task_kind, "once");
	CU_ASSERT_EQUAL(second->fd, UINT64_MAX);
	CU_ASSERT_TRUE(second->instrumented);
	CU_ASSERT_EQUAL(second->ns, woken_ns);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, woken_ns);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->task, id);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 1)->ns, woken_ns + 100);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 1)->task, id);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 1)->depth, 3);
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_START, 1)->text, first->text);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_END, 1)->ns, woken_ns + 110);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_TERMINATE, 1)->task, id);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_TERMINATE, 1)->ns, woken_ns + 110);
}

static void test_table_never_sees_a_task_that_runs_once(void)
{
	uint32_t before;

	prepare();
	before = d9__tasks_count();
	for (uint64_t key = 10; key < 20; key++) {
		d9_wake(loop, key, D9_WAKE_ACTIVE, NULL);
		CU_ASSERT_EQUAL(d9__tasks_count(), before);
		poll_once(key);
	}
	CU_ASSERT_EQUAL(d9__tasks_count(), before);
	loop_events_collect();
}

static void test_task_that_the_table_knows_ends_there(void)
{
	struct d9_task task = { .key = 3, .fd = 9, .kind = D9_TASK_SIGNAL };
	const struct loop_events *events;

	prepare();
	d9_task_arm(loop, &task);
	d9_wake(loop, 3, D9_WAKE_ACTIVE, NULL);
	poll_once(3);
	CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 3), 0);

	events = loop_events_collect();
	CU_ASSERT_PTR_NOT_NULL(strstr(loop_story(events), "tsw()t"));
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAWN, 1)->fd, 9);
}

static void test_batch_shares_its_stamps(void)
{
	const struct loop_events *events;

	prepare();
	poll_once(4);
	loop_ns += 500;
	poll_once(5);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 2)->ns, loop_nth(events, LOOP_END, 1)->ns);
}

static void test_chunk_that_does_not_know_the_names_learns_them(void)
{
	const struct loop_events *events;

	prepare();
	loop_events_collect();
	poll_once(6);
	poll_once(7);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "s()ts()t");
	CU_ASSERT(strlen(loop_nth(events, LOOP_SPAWN, 0)->text) > 0);
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_SPAWN, 1)->text,
			       loop_nth(events, LOOP_SPAWN, 0)->text);
}

/* ---- what may happen meanwhile ---- */

static __attribute__((noinline)) void run_inside(void)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	loop_ns += 10;
	poll_once(9);
	loop_ns += 10;
	d9_loop_leave(&run);
}

static void test_loop_inside_the_callback_splits_its_poll(void)
{
	struct d9_poll outer;

	prepare();
	begin(&outer, 8);
	run_inside();
	loop_ns += 10;
	d9__poll_end_once(&outer);

	CU_ASSERT_STRING_EQUAL(story_behind_first(), "s()s()tw()t");
}

static jmp_buf escape;

static __attribute__((noinline)) void leave_by_longjmp(void)
{
	struct d9_poll poll;

	begin(&poll, 10);
	longjmp(escape, 1);
}

static void test_callback_left_by_longjmp_ends_the_task(void)
{
	struct d9_loop_run run;

	prepare();
	d9_loop_enter(loop, &run);
	if (!setjmp(escape))
		leave_by_longjmp();
	d9_loop_leave(&run);
	d9_loop_enter(loop, &run);
	poll_once(11);
	d9_loop_leave(&run);

	CU_ASSERT_PTR_NOT_NULL(strstr(story_behind_first(), "s()ts()t"));
}

static void test_recording_is_switched_off_and_on_inside_the_callback(void)
{
	struct d9_poll poll;

	prepare();
	begin(&poll, 12);
	d9__gate_set(0);
	loop_ns += 10;
	d9__gate_set(D9__GATE_ALL);
	d9__poll_end_once(&poll);
	poll_once(13);
	CU_ASSERT_STRING_EQUAL(story_behind_first(), "s()ts()t");

	prepare();
	begin(&poll, 14);
	d9__gate_set(0);
	loop_ns += 10;
	d9__poll_end_once(&poll);
	d9__gate_set(D9__GATE_ALL);
	poll_once(15);
	poll_once(16);
	CU_ASSERT_STRING_EQUAL(story_behind_first(), "s()PUs()ts()t");
}

static void test_without_tasks_and_wakes_only_polls_are_written(void)
{
	prepare();
	d9__gate_set(D9__GATE_LOOP);
	d9_wake(loop, 17, D9_WAKE_ACTIVE, NULL);
	poll_once(17);
	d9__gate_set(D9__GATE_ALL);

	CU_ASSERT_PTR_NOT_NULL(strstr(story_behind_first(), "()"));
	CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, 17), 0);
}

/* ---- early wakes ---- */

static void test_early_wake_waits_for_the_first_poll_of_any_task(void)
{
	const struct loop_events *events;
	uint64_t woken_ns;

	prepare();
	woken_ns = loop_ns;
	CU_ASSERT_EQUAL(d9_wake(loop, 20, D9_WAKE_DEFERRED, NULL), 1);
	loop_ns += 50;
	CU_ASSERT_EQUAL(d9_wake(loop, 20, D9_WAKE_ACTIVE, NULL), 0);
	loop_ns += 50;
	poll_other(20);
	poll_other(20);

	events = loop_events_collect();
	CU_ASSERT_PTR_NOT_NULL(strstr(loop_story(events), "tsw()()"));
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, woken_ns);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->reason, D9_WAKE_DEFERRED);
}

static void test_early_wake_is_void_when_the_loop_has_waited(void)
{
	const struct loop_events *events;

	prepare();
	d9_wake(loop, 21, D9_WAKE_ACTIVE, NULL);
	d9_loop_park(loop, 0);
	d9_loop_unpark(loop);
	poll_once(21);
	d9_wake(loop, 22, D9_WAKE_ACTIVE, NULL);
	loop_ns += 10;
	d9_loop_park(loop, -1);
	loop_ns += 1000;
	d9_loop_unpark(loop);
	CU_ASSERT_EQUAL(d9_wake(loop, 22, D9_WAKE_ACTIVE, NULL), 1);
	poll_once(22);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_WAKE), 2);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->ns, loop_nth(events, LOOP_UNPARK, 0)->ns);
}

/* The inner loop's waits are not the outer one's. */
static void test_early_wake_outlives_the_waits_of_other_loops(void)
{
	static int address;
	struct d9_loop *inner = loop_events_add(D9_LIBRARY_OWN, &address);
	struct d9_loop_run run;
	struct d9_poll outer;

	prepare();
	d9_wake(loop, 23, D9_WAKE_ACTIVE, NULL);
	begin(&outer, 24);
	d9_loop_enter(inner, &run);
	d9_loop_park(inner, -1);
	loop_ns += 1000;
	d9_loop_unpark(inner);
	d9_loop_leave(&run);
	d9__poll_end_once(&outer);
	d9_loop_unregister(inner);
	poll_once(23);

	/* The other wake is that of the outer poll's second piece. */
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_WAKE), 2);
}

static void test_early_wake_of_an_object_that_was_freed_is_not_the_next_ones(void)
{
	prepare();
	d9_wake(loop, 25, D9_WAKE_ACTIVE, NULL);
	d9_task_end(D9_LIBRARY_OWN, 25);
	poll_once(25);

	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_WAKE), 0);
}

static void test_early_wake_is_not_from_before_recording_was_off(void)
{
	prepare();
	d9_wake(loop, 26, D9_WAKE_ACTIVE, NULL);
	d9__gate_set(0);
	poll_once(26);
	d9__gate_set(D9__GATE_ALL);
	poll_once(27);
	poll_once(26);

	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_WAKE), 0);
}

/* They do not all find a place: the table takes the rest. */
static void test_thousands_of_early_wakes_are_all_written(void)
{
	const uint64_t n = 3000;

	prepare();
	loop_events_collect();
	for (uint64_t key = 1000; key < 1000 + n; key++)
		CU_ASSERT_EQUAL(d9_wake(loop, key, D9_WAKE_ACTIVE, NULL), 1);
	for (uint64_t key = 1000; key < 1000 + n; key++)
		poll_once(key);
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_WAKE), n);
	/* Waits make all the places free again. */
	for (uint64_t key = 5000; key < 5000 + n; key++)
		d9_wake(loop, key, D9_WAKE_ACTIVE, NULL);
	for (int i = 0; i < 2000; i++) {
		d9_loop_park(loop, -1);
		d9_loop_unpark(loop);
	}
	poll_once(2);
	for (uint64_t key = 9000; key < 9100; key++) {
		d9_wake(loop, key, D9_WAKE_ACTIVE, NULL);
		CU_ASSERT_EQUAL(d9_task_id(D9_LIBRARY_OWN, key), 0);
		poll_once(key);
	}
	loop_events_collect();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "life of a task that runs once is told as any other's",
		  test_life_of_a_task_that_runs_once_is_told_as_any_others },
		{ "table never sees a task that runs once",
		  test_table_never_sees_a_task_that_runs_once },
		{ "task that the table knows ends there",
		  test_task_that_the_table_knows_ends_there },
		{ "batch shares its stamps", test_batch_shares_its_stamps },
		{ "chunk that does not know the names learns them",
		  test_chunk_that_does_not_know_the_names_learns_them },
		{ "loop inside the callback splits its poll",
		  test_loop_inside_the_callback_splits_its_poll },
		{ "callback left by longjmp ends the task",
		  test_callback_left_by_longjmp_ends_the_task },
		{ "recording is switched off and on inside the callback",
		  test_recording_is_switched_off_and_on_inside_the_callback },
		{ "without tasks and wakes only polls are written",
		  test_without_tasks_and_wakes_only_polls_are_written },
		{ "early wake waits for the first poll of any task",
		  test_early_wake_waits_for_the_first_poll_of_any_task },
		{ "early wake is void when the loop has waited",
		  test_early_wake_is_void_when_the_loop_has_waited },
		{ "early wake outlives the waits of other loops",
		  test_early_wake_outlives_the_waits_of_other_loops },
		{ "early wake of an object that was freed is not the next one's",
		  test_early_wake_of_an_object_that_was_freed_is_not_the_next_ones },
		{ "early wake is not from before recording was off",
		  test_early_wake_is_not_from_before_recording_was_off },
		{ "thousands of early wakes are all written",
		  test_thousands_of_early_wakes_are_all_written },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	callsite = d9_callsite((const void *)0x1000, (const void *)0x2000, 0);
	return d9_test_main("polls that run once", tests);
}
