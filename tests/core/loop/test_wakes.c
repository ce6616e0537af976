/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <signal.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/adapter.h"
#include "loop/samples.h"
#include "ring/event_types.h"
#include "support/d9_test.h"

static struct d9_loop *loop;

static void poll_begin(struct d9_poll *poll, uint64_t key)
{
	*poll = (struct d9_poll){ .loop = loop, .task = { .key = key, .fd = -1 } };
	d9_poll_begin(poll);
}

static void poll_due(uint64_t key, uint64_t ready_ns, enum d9_wake_reason reason)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = -1 },
				.ready_ns = ready_ns, .reason = (uint16_t)reason };

	d9_poll_begin(&poll);
	loop_ns += 10;
	d9_poll_end(&poll);
}

static void poll_key(uint64_t key)
{
	poll_due(key, 0, D9_WAKE_UNKNOWN);
}

/* Tasks 1 to 4 were seen, time has passed. */
static void prepare(void)
{
	for (uint64_t key = 1; key <= 4; key++)
		poll_key(key);
	loop_ns += 1000000;
	loop_events_collect();
}

static void test_wakes_of_a_wait_stand_behind_its_unpark(void)
{
	const struct loop_events *events;
	uint64_t end;

	prepare();
	d9_loop_park(loop, -1);
	loop_ns += 100;
	CU_ASSERT_EQUAL(d9_wake(loop, 1, D9_WAKE_UNKNOWN, NULL), 1);
	CU_ASSERT_EQUAL(d9_wake(loop, 2, D9_WAKE_UNKNOWN, NULL), 1);
	loop_ns += 100;
	d9_loop_unpark(loop);
	end = loop_ns;
	loop_ns += 10;
	poll_key(1);
	poll_key(2);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "PUww()()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, end);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->reason, D9_WAKE_FD);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->waker, 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->issuer,
			loop_nth(events, LOOP_UNPARK, 0)->worker);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_UNPARK, 0)->depth, 2);
}

static void test_wakes_behind_a_wait_without_timeout_have_one_stamp(void)
{
	const struct loop_events *events;
	uint64_t end, later;

	prepare();
	d9_loop_park(loop, 0);
	d9_loop_unpark(loop);
	end = loop_ns;
	for (uint64_t key = 1; key <= 3; key++) {
		CU_ASSERT_EQUAL(d9_wake(loop, key, D9_WAKE_FD, NULL), 1);
		loop_ns += 100;
	}
	poll_key(1);
	later = loop_ns += 100;
	CU_ASSERT_EQUAL(d9_wake(loop, 4, D9_WAKE_FD, NULL), 1);
	loop_ns += 100;
	for (uint64_t key = 2; key <= 4; key++)
		poll_key(key);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "www()w()()()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, end);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->ns, end);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 2)->ns, end);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 3)->ns, later);
}

static void test_known_wake_is_of_a_task_that_was_polled_as_what_it_is(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 9900, .identity = 1, .fd = -1 } };

	poll.task.callsite = d9_callsite((const void *)loop_events_collect, NULL, 0);
	d9_poll_begin(&poll);
	d9_poll_end(&poll);
	loop_events_collect();
	d9_loop_park(loop, -1);

	CU_ASSERT_FALSE(d9__wake_known_fd(loop, 9901, 1));
	CU_ASSERT_FALSE(d9__wake_known_fd(loop, 9900, 2));
	CU_ASSERT_TRUE(d9__wake_known_fd(loop, 9900, 1));
	CU_ASSERT_TRUE(d9__wake_known_fd(loop, 9900, 1));
	d9_loop_unpark(loop);
	loop_ns += 10;
	d9_poll_begin(&poll);
	d9_poll_end(&poll);

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "PUw()");
}

/* A poll as adapters begin it: of a task with a callsite, by the short way if it can be. */
static struct d9_poll poll_with_callsite(uint64_t key, uint64_t ready_ns, enum d9_wake_reason reason)
{
	struct d9_poll poll = { .loop = loop,
				.task = { .key = key, .identity = 1, .fd = -1 },
				.ready_ns = ready_ns,
				.depth = 7,
				.reason = (uint16_t)reason };

	poll.task.callsite = d9_callsite((const void *)loop_events_collect, NULL, 0);
	return poll;
}

static void poll_woken(uint64_t key, uint64_t ready_ns, enum d9_wake_reason reason)
{
	struct d9_poll poll = poll_with_callsite(key, ready_ns, reason);

	if (!d9__poll_begin_woken(&poll))
		d9__poll_begin_other(&poll);
	loop_ns += 10;
	d9_poll_end(&poll);
}

static void test_poll_that_tells_why_it_runs_has_its_wake_before_it(void)
{
	const struct loop_events *events;
	const struct loop_event *wake, *start;
	uint64_t end;

	poll_woken(9910, 0, D9_WAKE_UNKNOWN);
	loop_events_collect();
	d9_loop_park(loop, -1);
	loop_ns += 100;
	d9_loop_unpark(loop);
	end = loop_ns;
	loop_ns += 30;
	poll_woken(9910, 0, D9_WAKE_FD);
	/* Further away than a delta can be, both ways. */
	loop_ns += UINT64_C(1000000000);
	poll_woken(9910, loop_ns - 500000000, D9_WAKE_TIMER);
	poll_woken(9910, loop_ns + 1000, D9_WAKE_TIMER);
	poll_woken(9910, 0, D9_WAKE_UNKNOWN);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "PUw()w()w()()");
	wake = loop_nth(events, LOOP_WAKE, 0);
	start = loop_nth(events, LOOP_START, 0);
	CU_ASSERT_EQUAL(wake->ns, end);
	CU_ASSERT_EQUAL(wake->reason, D9_WAKE_FD);
	CU_ASSERT_EQUAL(wake->waker, 0);
	CU_ASSERT_EQUAL(wake->task, start->task);
	CU_ASSERT_EQUAL(wake->issuer, start->worker);
	CU_ASSERT_EQUAL(start->ns, end + 30);
	CU_ASSERT_EQUAL(start->depth, 7);
	start = loop_nth(events, LOOP_START, 1);
	CU_ASSERT_EQUAL(start->ns, end + 40 + 1000000000);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->ns, start->ns - 500000000);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 2)->ns, loop_nth(events, LOOP_START, 2)->ns);
}

static void test_wake_with_a_waker_is_told_with_a_poll_by_the_short_way(void)
{
	struct d9_waker waker = { .task_id = 4711, .worker = 9 };
	const struct loop_events *events;

	poll_woken(9920, 0, D9_WAKE_UNKNOWN);
	loop_events_collect();
	waker.ns = loop_ns;
	d9_wake(loop, 9920, D9_WAKE_TIMER, &waker);
	loop_ns += 50;
	poll_woken(9920, 0, D9_WAKE_UNKNOWN);
	poll_woken(9920, 0, D9_WAKE_UNKNOWN);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "w()()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, waker.ns);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->waker, 4711);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->issuer, 9);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->task,
			loop_nth(events, LOOP_START, 0)->task);
}

static void poll_that_stays_ready(uint64_t key)
{
	struct d9_poll poll = poll_with_callsite(key, 0, D9_WAKE_UNKNOWN);

	if (!d9__poll_begin_known(&poll))
		d9__poll_begin_other(&poll);
	loop_ns += 10;
	d9__poll_end_ready(&poll);
}

static void test_task_that_stays_ready_is_woken_by_the_end_of_its_poll(void)
{
	const struct loop_events *events;

	poll_that_stays_ready(9930);
	loop_events_collect();
	for (int i = 0; i < 3; i++) {
		loop_ns += 20;
		poll_that_stays_ready(9930);
	}

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "w()w()w()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->ns, loop_nth(events, LOOP_END, 0)->ns);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->reason, D9_WAKE_DEFERRED);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->waker, 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->task,
			loop_nth(events, LOOP_START, 1)->task);
}

static void test_poll_has_one_wake_however_often_it_was_woken(void)
{
	prepare();
	CU_ASSERT_EQUAL(d9_wake(loop, 1, D9_WAKE_ACTIVE, NULL), 1);
	CU_ASSERT_EQUAL(d9_wake(loop, 1, D9_WAKE_ACTIVE, NULL), 0);
	poll_due(1, 0, D9_WAKE_FD);
	CU_ASSERT_EQUAL(d9_wake(loop, 1, D9_WAKE_ACTIVE, NULL), 1);
	poll_key(1);

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "w()w()");
}

static void test_callback_that_wakes_another_is_its_waker(void)
{
	const struct loop_events *events;
	struct d9_poll poll;

	prepare();
	poll_begin(&poll, 1);
	loop_ns += 50;
	d9_wake(loop, 2, D9_WAKE_UNKNOWN, NULL);
	loop_ns += 50;
	d9_poll_end(&poll);
	poll_key(2);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "(w)()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->waker,
			loop_nth(events, LOOP_START, 0)->task);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->reason, D9_WAKE_ACTIVE);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 1)->ns - loop_nth(events, LOOP_WAKE, 0)->ns,
			50 + 0);
}

static void test_timer_is_stamped_with_its_due_time(void)
{
	const struct loop_events *events;
	uint64_t due;

	prepare();
	d9_loop_park(loop, 1000);
	loop_ns += 1500;
	due = loop_ns - 500;
	d9_loop_unpark(loop);
	loop_ns += 20;
	d9_wake(loop, 1, D9_WAKE_UNKNOWN, NULL);
	poll_due(1, due, D9_WAKE_UNKNOWN);
	poll_due(2, due, D9_WAKE_TIMER);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "PUw()w()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, due);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->reason, D9_WAKE_TIMER);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 0)->ns, due + 520);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->ns, due);
}

static void test_reason_without_a_moment_means_the_latest_unpark(void)
{
	const struct loop_events *events;

	prepare();
	d9_loop_park(loop, -1);
	loop_ns += 100;
	d9_loop_unpark(loop);
	loop_ns += 100;
	poll_due(1, 0, D9_WAKE_FD);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, loop_nth(events, LOOP_UNPARK, 0)->ns);
}

static void test_reason_behind_a_wait_without_timeout_means_the_first_poll_of_the_round(void)
{
	const struct loop_events *events;
	uint64_t first;

	prepare();
	d9_loop_park(loop, -1);
	d9_loop_unpark(loop);
	loop_ns += 20000000;
	d9_loop_park(loop, 0);
	d9_loop_unpark(loop);
	first = loop_ns;
	poll_due(1, 0, D9_WAKE_FD);
	loop_ns += 100;
	poll_due(2, 0, D9_WAKE_FD);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, first);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->ns, first);
}

static void test_moment_in_the_future_counts_as_now(void)
{
	const struct loop_events *events;

	prepare();
	poll_due(1, loop_ns + 1000000, D9_WAKE_TIMER);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, loop_nth(events, LOOP_START, 0)->ns);
}

static void test_wake_of_an_unknown_task_is_written_with_its_first_poll(void)
{
	const struct loop_events *events;
	uint64_t woken;

	prepare();
	CU_ASSERT_EQUAL(d9_wake(loop, 100, D9_WAKE_DEFERRED, NULL), 1);
	woken = loop_ns;
	loop_ns += 100;
	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "");
	poll_key(100);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "sw()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, woken);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->reason, D9_WAKE_DEFERRED);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->task,
			loop_nth(events, LOOP_SPAWN, 0)->task);
}

static void test_wake_of_a_renewed_task_belongs_to_the_new_one(void)
{
	const struct loop_events *events;
	uint64_t old;

	prepare();
	old = d9_task_id(D9_LIBRARY_OWN, 1);
	d9_task_renew(D9_LIBRARY_OWN, 1, 0);
	d9_wake(loop, 1, D9_WAKE_ACTIVE, NULL);
	poll_key(1);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "tsw()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_TERMINATE, 0)->task, old);
	CU_ASSERT_NOT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->task, old);
}

static void test_wait_with_more_wakes_than_are_held_loses_none(void)
{
	prepare();
	for (uint64_t key = 1; key <= 1000; key++)
		poll_key(key);
	loop_events_collect();
	d9_loop_park(loop, -1);
	for (uint64_t key = 1; key <= 1000; key++)
		d9_wake(loop, key, D9_WAKE_UNKNOWN, NULL);
	d9_loop_unpark(loop);
	for (uint64_t key = 1; key <= 1000; key++)
		poll_key(key);

	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_WAKE), 1000);
}

static void *wake_from_outside(void *arg)
{
	d9_wake(loop, (uint64_t)(uintptr_t)arg, D9_WAKE_UNKNOWN, NULL);
	return NULL;
}

static void in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fn, arg);
	pthread_join(thread, NULL);
}

static void test_wake_from_another_thread_counts_until_it_is_polled(void)
{
	const struct loop_events *events;

	prepare();
	in_thread(wake_from_outside, (void *)1);
	in_thread(wake_from_outside, (void *)1);
	in_thread(wake_from_outside, (void *)200);
	CU_ASSERT_EQUAL(d9__samples_global_queue(), 2);
	poll_key(1);
	CU_ASSERT_EQUAL(d9__samples_global_queue(), 1);
	poll_key(200);
	CU_ASSERT_EQUAL(d9__samples_global_queue(), 0);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_WAKE), 2);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->reason, D9_WAKE_CROSS_THREAD);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->issuer, 255);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->waker, 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 1)->reason, D9_WAKE_CROSS_THREAD);
}

static struct d9_wake_cell cell;
static volatile sig_atomic_t filled;

static void handle(int signal)
{
	(void)signal;
	filled += d9_wake_cell_fill(&cell, loop);
}

static void test_cell_carries_a_wake_out_of_a_signal_handler(void)
{
	struct sigaction action = { .sa_handler = handle };
	const struct loop_events *events;
	struct d9_waker waker;
	struct d9_poll poll;
	uint64_t woken;

	prepare();
	sigaction(SIGUSR1, &action, NULL);
	poll_begin(&poll, 2);
	loop_ns += 50;
	woken = loop_ns;
	raise(SIGUSR1);
	raise(SIGUSR1);
	loop_ns += 50;
	d9_poll_end(&poll);
	CU_ASSERT_EQUAL(filled, 1);
	CU_ASSERT_EQUAL(d9_wake_cell_take(&cell, loop, &waker), 1);
	CU_ASSERT_EQUAL(d9_wake_cell_take(&cell, loop, &waker), 0);
	d9_wake(loop, 1, D9_WAKE_SIGNAL, &waker);
	poll_key(1);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, woken);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->waker,
			loop_nth(events, LOOP_START, 0)->task);
}

static void *fill_from_outside(void *arg)
{
	(void)arg;
	d9_wake_cell_fill(&cell, loop);
	return NULL;
}

static void test_cell_filled_from_outside_counts_until_it_is_taken(void)
{
	struct d9_waker waker;

	prepare();
	in_thread(fill_from_outside, NULL);
	CU_ASSERT_EQUAL(d9__samples_global_queue(), 1);
	CU_ASSERT_EQUAL(d9_wake_cell_take(&cell, loop, &waker), 1);
	CU_ASSERT_EQUAL(d9__samples_global_queue(), 0);
	CU_ASSERT_EQUAL(waker.worker, 255);
}

static void test_call_by_the_library_is_one_event_at_its_end(void)
{
	const struct d9_callsite *site = d9_callsite((void *)0x10, (void *)0x20, 0);
	const struct loop_events *events;
	struct d9_loop_span outer, inner;
	struct d9_poll poll;

	prepare();
	poll_begin(&poll, 1);
	loop_ns += 2;
	d9_loop_span_enter(&outer, site);
	loop_ns += 3;
	d9_loop_span_enter(&inner, site);
	loop_ns += 5;
	d9_loop_span_exit(&inner);
	loop_ns += 7;
	d9_loop_span_exit(&outer);
	d9_loop_span_exit(&outer);
	d9_poll_end(&poll);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "(CC)");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CALL, 0)->active_ns, 5);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CALL, 1)->active_ns, 15);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CALL, 1)->ns,
			loop_nth(events, LOOP_START, 0)->ns + 17);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CALL, 1)->worker,
			loop_nth(events, LOOP_START, 0)->worker);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CALL, 0)->span, 0);
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_SPAN_CALL, 0)->text, "0x10 @ 0x20");
}

/* Leaves the inner call by a jump: its event never comes, that of the outer one does. */
static void test_call_that_was_jumped_out_of_is_not_told(void)
{
	const struct d9_callsite *site = d9_callsite((void *)0x10, (void *)0x20, 0);
	struct d9_loop_span outer, inner;
	struct d9_poll poll;

	prepare();
	poll_begin(&poll, 1);
	d9_loop_span_enter(&outer, site);
	d9_loop_span_enter(&inner, site);
	d9_loop_span_exit(&outer);
	d9_poll_end(&poll);

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "(C)");
}

static void test_old_span_lies_inside_the_poll_and_knows_its_parent(void)
{
	const struct d9_callsite *site = d9_callsite((void *)0x10, (void *)0x20, 0);
	const struct loop_events *events;
	struct d9_loop_span outer, inner;
	struct d9_poll poll;

	prepare();
	atomic_store(&d9__event_types_old, true);
	poll_begin(&poll, 1);
	d9_loop_span_enter(&outer, site);
	d9_loop_span_enter(&inner, site);
	loop_ns += 5;
	d9_loop_span_exit(&inner);
	d9_loop_span_exit(&outer);
	d9_loop_span_exit(&outer);
	d9_poll_end(&poll);
	atomic_store(&d9__event_types_old, false);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "(<<>c>c)");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 0)->parent, 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 1)->parent,
			loop_nth(events, LOOP_SPAN_ENTER, 0)->span);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_EXIT, 0)->span,
			loop_nth(events, LOOP_SPAN_ENTER, 1)->span);
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_SPAN_EXIT, 0)->text, "0x10 @ 0x20");
}

static void test_span_outside_of_a_poll_is_not_written(void)
{
	struct d9_loop_span span;

	prepare();
	d9_loop_span_enter(&span, NULL);
	d9_loop_span_exit(&span);

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "");
}

static void test_stale_timer_is_told_inside_the_callback_that_set_it(void)
{
	const struct loop_events *events;
	const struct loop_event *stale;
	struct d9_poll poll;
	uint64_t due_ns;

	prepare();
	poll_begin(&poll, 1);
	loop_ns += 500000;
	due_ns = loop_ns + 1000000;
	d9_timer_stale(loop, 7700, 10000000, due_ns);
	d9_poll_end(&poll);
	loop_ns += 1000000;
	poll_due(7700, due_ns, D9_WAKE_TIMER);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "(z)sw()");
	stale = loop_nth(events, LOOP_STALE_TIMER, 0);
	CU_ASSERT_EQUAL(stale->task, loop_nth(events, LOOP_START, 1)->task);
	CU_ASSERT_EQUAL(stale->worker, loop_nth(events, LOOP_START, 0)->worker);
	CU_ASSERT_EQUAL(stale->timeout_ns, 10000000);
	CU_ASSERT_EQUAL(stale->due_ns, due_ns);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_WAKE, 0)->ns, due_ns);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "wakes of a wait stand behind its unpark",
		  test_wakes_of_a_wait_stand_behind_its_unpark },
		{ "wakes behind a wait without timeout have one stamp",
		  test_wakes_behind_a_wait_without_timeout_have_one_stamp },
		{ "known wake is of a task that was polled as what it is",
		  test_known_wake_is_of_a_task_that_was_polled_as_what_it_is },
		{ "poll that tells why it runs has its wake before it",
		  test_poll_that_tells_why_it_runs_has_its_wake_before_it },
		{ "wake with a waker is told with a poll by the short way",
		  test_wake_with_a_waker_is_told_with_a_poll_by_the_short_way },
		{ "task that stays ready is woken by the end of its poll",
		  test_task_that_stays_ready_is_woken_by_the_end_of_its_poll },
		{ "poll has one wake however often it was woken",
		  test_poll_has_one_wake_however_often_it_was_woken },
		{ "callback that wakes another is its waker",
		  test_callback_that_wakes_another_is_its_waker },
		{ "timer is stamped with its due time", test_timer_is_stamped_with_its_due_time },
		{ "reason without a moment means the latest unpark",
		  test_reason_without_a_moment_means_the_latest_unpark },
		{ "reason behind a wait without timeout means the first poll of the round",
		  test_reason_behind_a_wait_without_timeout_means_the_first_poll_of_the_round },
		{ "moment in the future counts as now", test_moment_in_the_future_counts_as_now },
		{ "wake of an unknown task is written with its first poll",
		  test_wake_of_an_unknown_task_is_written_with_its_first_poll },
		{ "wake of a renewed task belongs to the new one",
		  test_wake_of_a_renewed_task_belongs_to_the_new_one },
		{ "wait with more wakes than are held loses none",
		  test_wait_with_more_wakes_than_are_held_loses_none },
		{ "wake from another thread counts until it is polled",
		  test_wake_from_another_thread_counts_until_it_is_polled },
		{ "cell carries a wake out of a signal handler",
		  test_cell_carries_a_wake_out_of_a_signal_handler },
		{ "cell filled from outside counts until it is taken",
		  test_cell_filled_from_outside_counts_until_it_is_taken },
		{ "call by the library is one event at its end",
		  test_call_by_the_library_is_one_event_at_its_end },
		{ "call that was jumped out of is not told",
		  test_call_that_was_jumped_out_of_is_not_told },
		{ "old span lies inside the poll and knows its parent",
		  test_old_span_lies_inside_the_poll_and_knows_its_parent },
		{ "span outside of a poll is not written",
		  test_span_outside_of_a_poll_is_not_written },
		{ "stale timer is told inside the callback that set it",
		  test_stale_timer_is_told_inside_the_callback_that_set_it },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("wakes", tests);
}
