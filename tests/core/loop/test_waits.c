/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of tasks, and the stacks that armed them. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "drain/side_event.h"
#include "loop/adapter.h"
#include "loop/waits.h"
#include "record/sampling.h"
#include "ring/event_types.h"
#include "ring/gate.h"
#include "ring/slot.h"
#include "sample/unwind_table.h"
#include "support/d9_test.h"

#define MS	UINT64_C(1000000)
#define MEAN_MS 10
#define PATHS	3

static struct d9_loop *loop;

/* ---- what was dumped ---- */

struct dumps {
	size_t n;
	struct dump {
		uint64_t task, ns, stack; /* hash of its addresses */
		size_t frames;
		bool truncated, kept;
	} items[4096];
};

static uint64_t hash_of(const uint64_t *pcs, size_t n)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ pcs[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return hash;
}

static const struct dumps *take_dumps(void)
{
	static struct dumps dumps;
	struct d9__side_record record;

	dumps.n = 0;
	while (d9__side_take(d9__slot_index(d9__slot_self()), &record) && dumps.n < 4096) {
		struct d9__dump_raw raw;
		uint64_t pcs[D9__SAMPLE_FRAMES_MAX];

		CU_ASSERT_EQUAL_FATAL(record.type_id, D9__EVENT_TASK_DUMP);
		CU_ASSERT_FATAL(d9__side_is_sound(&record));
		memcpy(&raw, record.payload, sizeof(raw));
		memcpy(pcs, record.payload + sizeof(raw), raw.n * sizeof(pcs[0]));
		dumps.items[dumps.n++] = (struct dump){ raw.task, record.ns, hash_of(pcs, raw.n), raw.n,
							raw.truncated != 0, raw.kept != 0 };
	}
	return &dumps;
}

/* ---- a loop whose watchers are armed in their callbacks ---- */

static __attribute__((noinline)) void arm(uint64_t key, bool stays)
{
	d9__task_waits(loop, key, -1, (const void *)(uintptr_t)arm, __builtin_return_address(0), stays);
}

/* All arm through one function, from which it cannot be told who called. */
static __attribute__((noinline)) void arm_deeply(uint64_t key, bool stays)
{
	arm(key, stays);
	__asm__ volatile("");
}

#define PATH(name)                                                                                 \
	static __attribute__((noinline)) void name(uint64_t key)                                   \
	{                                                                                          \
		arm_deeply(key, false);                                                            \
		__asm__ volatile("" : : : "memory");                                               \
	}

PATH(path_one)
PATH(path_two)
PATH(path_three)

static void (*const paths[PATHS])(uint64_t) = { path_one, path_two, path_three };

static void begin(struct d9_poll *poll, uint64_t key)
{
	*poll = (struct d9_poll){
		.loop = loop,
		.task = { .key = key,
			  .identity = 1,
			  .callsite = d9_callsite((const void *)(uintptr_t)begin, (const void *)1, 0),
			  .fd = -1 },
	};
	d9_poll_begin(poll);
}

/* The callback of |key| runs for 1 ms; |path| NULL: and arms nothing. */
static __attribute__((noinline)) void run_callback(uint64_t key, void (*path)(uint64_t))
{
	struct d9_poll poll;

	begin(&poll, key);
	loop_ns += MS / 2;
	if (path)
		path(key);
	loop_ns += MS / 2;
	d9_poll_end(&poll);
}

static uint64_t id_of(uint64_t key)
{
	return d9_task_id(D9_LIBRARY_LIBEVENT, key);
}

static void wait_ms(uint64_t ms)
{
	d9_loop_park(loop, -1);
	loop_ns += ms * MS;
	d9_loop_unpark(loop);
}

/* ---- tests ---- */

static void test_three_paths_through_one_function_are_three_stacks(void)
{
	const struct dumps *dumps;

	for (uint64_t key = 0; key < PATHS; key++)
		run_callback(1 + key, paths[key]);
	wait_ms(1000 * MEAN_MS);
	for (uint64_t key = 0; key < PATHS; key++)
		run_callback(1 + key, NULL);

	dumps = take_dumps();
	CU_ASSERT_EQUAL_FATAL(dumps->n, PATHS);
	for (size_t i = 0; i < PATHS; i++) {
		CU_ASSERT_EQUAL(dumps->items[i].task, id_of(1 + i));
		CU_ASSERT_FALSE(dumps->items[i].truncated);
		CU_ASSERT(dumps->items[i].frames > 4);
		CU_ASSERT_NOT_EQUAL(dumps->items[i].stack, dumps->items[(i + 1) % PATHS].stack);
	}
	loop_events_collect();
}

static void test_a_wait_begins_when_the_callback_that_armed_it_returns(void)
{
	const struct dumps *dumps;
	uint64_t ended_ns;

	run_callback(1, path_one);
	ended_ns = loop_ns;
	wait_ms(1000 * MEAN_MS);
	run_callback(1, NULL);

	dumps = take_dumps();
	CU_ASSERT_EQUAL_FATAL(dumps->n, 1);
	CU_ASSERT(dumps->items[0].ns >= ended_ns);
	CU_ASSERT(dumps->items[0].ns < ended_ns + 4096);
	loop_events_collect();
}

/* Waits of 1, 2 and 4 ms, 4,000 of each. */
static void test_dumps_are_as_many_as_tasks_idle(void)
{
	const struct dumps *dumps;
	double counts[PATHS] = { 0 };

	for (uint64_t key = 0; key < PATHS; key++) {
		for (int i = 0; i < 4000; i++) {
			run_callback(1 + key, paths[key]);
			wait_ms(UINT64_C(1) << key);
			if (i % 100)
				continue;
			dumps = take_dumps();
			counts[key] += (double)dumps->n;
			loop_events_collect();
		}
		run_callback(1 + key, NULL);
		counts[key] += (double)take_dumps()->n;
	}
	/* Of 1 - exp(-t / mean), five standard deviations are left. */
	CU_ASSERT_DOUBLE_EQUAL(counts[0] / 4000, 0.0952, 5 * 0.0046);
	CU_ASSERT_DOUBLE_EQUAL(counts[1] / 4000, 0.1813, 5 * 0.0061);
	CU_ASSERT_DOUBLE_EQUAL(counts[2] / 4000, 0.3297, 5 * 0.0074);
}

static void test_what_stays_armed_waits_anew_behind_each_poll_with_its_first_stack(void)
{
	const struct dumps *dumps;
	uint64_t stack;

	arm_deeply(4, true);
	wait_ms(1000 * MEAN_MS);
	run_callback(4, NULL);
	wait_ms(1000 * MEAN_MS);
	run_callback(4, NULL);

	dumps = take_dumps();
	CU_ASSERT_EQUAL_FATAL(dumps->n, 2);
	stack = dumps->items[0].stack;
	CU_ASSERT_EQUAL(dumps->items[1].stack, stack);
	CU_ASSERT_FALSE(dumps->items[0].kept);
	CU_ASSERT_TRUE(dumps->items[1].kept);
	CU_ASSERT_EQUAL(dumps->items[1].task, id_of(4));
	CU_ASSERT(dumps->items[1].ns >= dumps->items[0].ns + 1000 * MEAN_MS * MS);
	loop_events_collect();
}

static void test_what_is_not_armed_does_not_wait(void)
{
	run_callback(5, path_one);
	wait_ms(1000 * MEAN_MS);
	run_callback(5, NULL);
	CU_ASSERT_EQUAL(take_dumps()->n, 1);
	/* It was a one-shot, and was not armed again. */
	wait_ms(1000 * MEAN_MS);
	run_callback(5, NULL);
	CU_ASSERT_EQUAL(take_dumps()->n, 0);

	run_callback(5, path_one);
	d9__task_rests(D9_LIBRARY_LIBEVENT, 5);
	wait_ms(1000 * MEAN_MS);
	run_callback(5, NULL);
	CU_ASSERT_EQUAL(take_dumps()->n, 0);
	loop_events_collect();
}

static void test_a_wait_that_outlasts_a_segment_is_told_once(void)
{
	const struct loop_events *events;
	uint64_t armed_ns;

	for (uint64_t key = 1; key < 6; key++)
		d9__task_rests(D9_LIBRARY_LIBEVENT, key);
	run_callback(6, path_one);
	armed_ns = loop_ns;
	loop_events_collect();
	loop_ns += MEAN_MS * MS;
	d9__waits_tell(d9__slot_self(), loop_ns);
	events = loop_events_collect();
	CU_ASSERT_EQUAL(events->n, 0); /* not long enough for that */
	loop_ns += 1000 * MEAN_MS * MS;
	d9__waits_tell(d9__slot_self(), loop_ns);
	d9__waits_tell(d9__slot_self(), loop_ns);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "d");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_TASK_DUMP, 0)->task, id_of(6));
	CU_ASSERT(loop_nth(events, LOOP_TASK_DUMP, 0)->ns - armed_ns < 4096);
	run_callback(6, NULL);
	CU_ASSERT_EQUAL(take_dumps()->n, 0);
	loop_events_collect();
}

/* The flush thread's chunks end anywhere between a stack and what it is of. */
static void test_each_dump_is_in_one_batch_with_its_stack(void)
{
	const uint64_t stack[3] = { 1, 2, 3 };
	const struct d9__dump_raw raw = { .task = 7, .n = 3 };
	const struct loop_events *events;
	size_t whole = 0;

	for (int i = 0; i < 5000; i++)
		d9__dump_write(d9__slot_self(), &raw, stack, loop_ns);
	events = loop_events_collect();
	for (size_t i = 0; i < events->n; i++)
		whole += events->items[i].kind == LOOP_TASK_DUMP && events->items[i].frames == 3;
	CU_ASSERT_EQUAL(events->n, 5000);
	CU_ASSERT_EQUAL(whole, 5000);
}

static void test_polls_are_told_alike_with_dumps_and_without(void)
{
	char with[64];

	run_callback(7, path_one);
	run_callback(7, path_two);
	strncpy(with, loop_story(loop_events_collect()), sizeof(with) - 1);
	CU_ASSERT_STRING_EQUAL(with, "s()()");
	d9__gate_set(0);
	d9__gate_set(D9__GATE_ALL);
	run_callback(7, NULL);
	run_callback(7, NULL);
	/* Recording was off in between. */
	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "PU()()");
	wait_ms(1000 * MEAN_MS);
	run_callback(7, NULL);
	CU_ASSERT_EQUAL(take_dumps()->n, 0);
	loop_events_collect();
	d9__gate_set(0);
	d9__gate_set(D9__GATE_ALL | D9__GATE_ARM);
	run_callback(7, path_one);
	loop_events_collect();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "three paths through one function are three stacks",
		  test_three_paths_through_one_function_are_three_stacks },
		{ "a wait begins when the callback that armed it returns",
		  test_a_wait_begins_when_the_callback_that_armed_it_returns },
		{ "dumps are as many as tasks idle",
		  test_dumps_are_as_many_as_tasks_idle },
		{ "what stays armed waits anew behind each poll with its first stack",
		  test_what_stays_armed_waits_anew_behind_each_poll_with_its_first_stack },
		{ "what is not armed does not wait",
		  test_what_is_not_armed_does_not_wait },
		{ "a wait that outlasts a segment is told once",
		  test_a_wait_that_outlasts_a_segment_is_told_once },
		{ "each dump is in one batch with its stack", test_each_dump_is_in_one_batch_with_its_stack },
		{ "polls are told alike with dumps and without",
		  test_polls_are_told_alike_with_dumps_and_without },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	atomic_store(&d9__sampling.idle_ns, MEAN_MS * MS);
	d9__gate_set(D9__GATE_ALL | D9__GATE_ARM);
	loop = loop_events_add(D9_LIBRARY_LIBEVENT, &loop);
	d9__unwind_tables_want_rows();
	if (d9__unwind_tables_refresh(loop_ns))
		return 99;
	return d9_test_main("waits", tests);
}
