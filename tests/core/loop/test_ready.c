/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that stay ready behind their poll, by the machine's ticks: with a clock that the test moves no stamp
 * is had without a call, and d9__poll_end_ready() does not take its short way.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/adapter.h"
#include "loop/cpu_time.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/slot.h"
#include "support/d9_test.h"

#define MANY	 10000
#define SLACK_NS 1000000 /* the two clocks may be apart by that, if the machine was busy */

static struct d9_loop *loop;

static void begin(struct d9_poll *poll, uint64_t key)
{
	*poll = (struct d9_poll){
		.loop = loop,
		.task = { .key = key,
			  .identity = 1,
			  .callsite = d9_callsite((const void *)(uintptr_t)begin, (const void *)1, 0),
			  .fd = -1 },
	};
	if (!d9__poll_begin_known(poll))
		d9__poll_begin_other(poll);
}

/* Of a frame of its own: what runs inside another one lies below it on the stack. */
static __attribute__((noinline)) void poll_that_stays_ready(uint64_t key)
{
	struct d9_poll poll;

	begin(&poll, key);
	d9__poll_end_ready(&poll);
}

/* Polls of |key| so far are behind us, and it waits. */
static void know(uint64_t key)
{
	struct d9_poll poll;

	poll_that_stays_ready(key);
	begin(&poll, key);
	d9_poll_end(&poll);
	loop_events_collect();
	CU_ASSERT_EQUAL(d9__slot_self()->clock, D9__CLOCK_TICKS);
}

static void test_poll_that_stays_ready_ends_with_its_next_wake_in_one_stamp(void)
{
	const struct loop_event *end, *wake, *start;
	const struct loop_events *events;
	uint64_t before, after;

	know(1);
	before = d9__clock_mono_ns();
	for (int i = 0; i < 3; i++)
		poll_that_stays_ready(1);
	after = d9__clock_mono_ns();

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "()w()w()");
	CU_ASSERT(loop_nth(events, LOOP_START, 0)->ns + SLACK_NS >= before);
	CU_ASSERT(loop_nth(events, LOOP_END, 2)->ns <= after + SLACK_NS);
	for (size_t i = 0; i < 2; i++) {
		start = loop_nth(events, LOOP_START, i);
		end = loop_nth(events, LOOP_END, i);
		wake = loop_nth(events, LOOP_WAKE, i);
		CU_ASSERT(start->ns <= end->ns);
		CU_ASSERT_EQUAL(wake->ns, end->ns);
		CU_ASSERT_EQUAL(wake->task, start->task);
		CU_ASSERT_EQUAL(wake->waker, 0);
		CU_ASSERT_EQUAL(wake->issuer, start->worker);
		CU_ASSERT_EQUAL(wake->reason, D9_WAKE_DEFERRED);
	}
}

static void test_poll_that_stays_ready_is_told_across_chunks(void)
{
	const char order[] = { LOOP_START, LOOP_END, LOOP_WAKE };
	const struct loop_events *events;
	size_t wrong = 0;
	uint64_t task, last_ns = 0;

	know(2);
	for (int i = 0; i < MANY; i++)
		poll_that_stays_ready(2);

	events = loop_events_collect();
	CU_ASSERT_EQUAL_FATAL(events->n, 3 * MANY - 1);
	task = loop_nth(events, LOOP_START, 0)->task;
	for (size_t i = 0; i < events->n; i++) {
		const struct loop_event *event = &events->items[i];

		wrong += (char)event->kind != order[i % 3] || event->ns < last_ns ||
			 (event->kind != LOOP_END && event->task != task);
		last_ns = event->ns;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void test_poll_that_stays_ready_and_was_woken_meanwhile_has_one_wake(void)
{
	const struct loop_events *events;
	struct d9_poll poll;

	know(3);
	begin(&poll, 3);
	CU_ASSERT_EQUAL(d9_wake(loop, 3, D9_WAKE_ACTIVE, NULL), 1);
	d9__poll_end_ready(&poll);
	poll_that_stays_ready(3);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "(w)()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->reason, D9_WAKE_ACTIVE);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->waker, loop_nth(events, LOOP_START, 0)->task);
}

static void test_poll_that_stays_ready_in_another_one_ends_before_that_goes_on(void)
{
	const struct loop_events *events;
	struct d9_poll outer;
	uint64_t task;

	know(4);
	know(5);
	begin(&outer, 4);
	poll_that_stays_ready(5);
	d9__poll_end_ready(&outer);
	poll_that_stays_ready(4);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
	/* Of the outer one: its end is the wake for its next poll. */
	task = loop_nth(events, LOOP_START, 0)->task;
	CU_ASSERT_EQUAL(events->items[events->n - 3].kind, LOOP_WAKE);
	CU_ASSERT_EQUAL(events->items[events->n - 3].task, task);
	CU_ASSERT_EQUAL(events->items[events->n - 3].reason, D9_WAKE_DEFERRED);
	CU_ASSERT_EQUAL(events->items[events->n - 3].waker, 0);
	CU_ASSERT_EQUAL(events->items[events->n - 3].ns, events->items[events->n - 4].ns);
}

static void test_poll_that_stays_ready_is_no_wake_while_wakes_are_off(void)
{
	know(6);
	d9__gate_set(D9__GATE_ALL & ~D9__GATE_WAKE);
	poll_that_stays_ready(6);
	poll_that_stays_ready(6);
	d9__gate_set(D9__GATE_ALL);

	CU_ASSERT_PTR_NULL(strchr(loop_story(loop_events_collect()), LOOP_WAKE));
}

/* What a long poll lost is in no story here: the machine may take the CPU at any time. */
static bool unknown(struct d9__cpu_reading *out)
{
	(void)out;
	return false;
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "poll that stays ready ends with its next wake in one stamp",
		  test_poll_that_stays_ready_ends_with_its_next_wake_in_one_stamp },
		{ "poll that stays ready is told across chunks",
		  test_poll_that_stays_ready_is_told_across_chunks },
		{ "poll that stays ready and was woken meanwhile has one wake",
		  test_poll_that_stays_ready_and_was_woken_meanwhile_has_one_wake },
		{ "poll that stays ready in another one ends before that goes on",
		  test_poll_that_stays_ready_in_another_one_ends_before_that_goes_on },
		{ "poll that stays ready is no wake while wakes are off",
		  test_poll_that_stays_ready_is_no_wake_while_wakes_are_off },
		CU_TEST_INFO_NULL,
	};

	if (!loop_events_start_on_ticks()) {
		puts("no ticks here");
		return 77;
	}
	d9__cpu_time_fake(unknown, NULL);
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("ready", tests);
}
