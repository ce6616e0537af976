/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/polls.h"
#include "ring/gate.h"
#include "support/d9_test.h"

#define NOINLINE __attribute__((noinline))

static struct d9_loop *loop;

/* A callback of task |key| that takes |ns| and does |inside| half-way. */
static NOINLINE void call(uint64_t key, uint64_t ns, void (*inside)(void))
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = -1 } };

	d9_poll_begin(&poll);
	loop_ns += ns / 2;
	if (inside)
		inside();
	loop_ns += ns - ns / 2;
	d9_poll_end(&poll);
}

static NOINLINE void wait_for(uint64_t ns)
{
	d9_loop_park(loop, -1);
	loop_ns += ns;
	d9_loop_unpark(loop);
}

/* One round of a loop: a wait of 100 ns, a callback of 1000 ns. */
static NOINLINE void run_once(uint64_t key, void (*inside)(void))
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	wait_for(100);
	call(key, 1000, inside);
	d9_loop_leave(&run);
}

static const struct loop_events *collect_checked(void)
{
	const struct loop_events *events = loop_events_collect();

	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
	return events;
}

/* Tasks 1 to 4 have their spawn behind them. */
static void prepare(void)
{
	loop_ns += 1000000;
	for (uint64_t key = 1; key <= 4; key++)
		run_once(key, NULL);
	loop_events_collect();
}

static void test_first_record_of_a_worker_is_an_unpark(void)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	d9_loop_leave(&run);

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "U");
}

static void test_round_is_a_wait_and_its_callbacks(void)
{
	const struct loop_events *events;

	prepare();
	wait_for(50);
	call(1, 1000, NULL);
	call(2, 1000, NULL);

	events = collect_checked();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "PU()()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_END, 0)->ns - loop_nth(events, LOOP_START, 0)->ns,
			1000);
}

static void inner(void)
{
	run_once(2, NULL);
}

static void test_callback_that_runs_a_loop_is_split_and_resumed(void)
{
	const struct loop_events *events;
	const struct loop_event *wake;

	prepare();
	run_once(1, inner);

	events = collect_checked();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "PU()PU()w()");
	wake = loop_nth(events, LOOP_WAKE, 0);
	CU_ASSERT_EQUAL(wake->reason, D9_WAKE_RESUMPTION);
	CU_ASSERT_EQUAL(wake->task, wake->waker);
	CU_ASSERT_EQUAL(wake->task, loop_nth(events, LOOP_START, 0)->task);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 2)->task, wake->task);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 2)->ns, wake->ns);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_END, 0)->ns - loop_nth(events, LOOP_START, 0)->ns +
				loop_nth(events, LOOP_END, 2)->ns -
				loop_nth(events, LOOP_START, 2)->ns, 1000);
}

/* A callback whose loop runs in it, all of one function: a compiler may put them in any order. */
struct marks {
	struct d9_poll low;
	struct d9_loop_run run;
	struct d9_poll high;
};

static void run_in_one_function(struct marks *marks, struct d9_poll *poll)
{
	prepare();
	*poll = (struct d9_poll){ .loop = loop, .task = { .key = 1, .fd = -1 } };
	d9_poll_begin(poll);
	d9_loop_enter(loop, &marks->run);
	wait_for(50);
	call(2, 10, NULL);
	d9_loop_leave(&marks->run);
	loop_ns += 10;
	d9_poll_end(poll);
	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "()PU()w()");
}

static void test_loop_of_the_same_function_is_inside_its_callback(void)
{
	struct marks marks;

	run_in_one_function(&marks, &marks.low);
	run_in_one_function(&marks, &marks.high);
}

static void test_runs_of_the_same_function_end_one_by_one(void)
{
	struct d9_loop_run runs[3];

	for (int outer = 0; outer < 3; outer += 2) {
		prepare();
		d9_loop_enter(loop, &runs[outer]);
		wait_for(50);
		d9_loop_enter(loop, &runs[1]);
		d9_loop_leave(&runs[1]);
		/* Outside of all it would not be told of a wait. */
		wait_for(50);
		CU_ASSERT_EQUAL(d9__self.thread->n_runs, 1);
		d9_loop_leave(&runs[outer]);
		CU_ASSERT_EQUAL(d9__self.thread->n_runs, 0);
		CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "PUPU");
	}
}

static void inner_of_inner(void)
{
	run_once(3, NULL);
}

static void middle(void)
{
	run_once(2, inner_of_inner);
}

/* Behind the wait it cannot be told any more how long before it the thread was off the CPU. */
static void test_long_piece_before_a_loop_inside_is_examined_at_its_end(void)
{
	struct d9_loop_run run;

	prepare();
	d9_loop_enter(loop, &run);
	wait_for(100);
	call(1, 20000000, inner);
	d9_loop_leave(&run);

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "PU()oPU()w()o");
}

static void test_three_loops_inside_one_another_alternate(void)
{
	const struct loop_events *events;
	uint64_t tasks[5];

	prepare();
	run_once(1, middle);

	events = collect_checked();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "PU()PU()PU()w()w()");
	for (size_t i = 0; i < 5; i++)
		tasks[i] = loop_nth(events, LOOP_START, i)->task;
	CU_ASSERT_EQUAL(tasks[3], tasks[1]);
	CU_ASSERT_EQUAL(tasks[4], tasks[0]);
}

static void inner_without_entry(void)
{
	wait_for(100);
	call(2, 1000, NULL);
}

static void test_piece_without_length_is_not_written(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 } };

	prepare();
	d9_poll_begin(&poll);
	loop_ns += 10;
	inner_without_entry();
	d9_poll_end(&poll);

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "()PU()");
}

static void test_piece_with_length_is_written_when_it_ends(void)
{
	prepare();
	call(1, 1000, inner_without_entry);

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "()PU()w()");
}

static void test_end_of_a_poll_starts_the_next_of_its_batch(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 },
				.flags = D9_POLL_BATCHED };
	const struct loop_events *events;
	uint64_t end;

	prepare();
	wait_for(10);
	call(2, 100, NULL);
	end = loop_ns;
	loop_ns += 7;
	d9_poll_begin(&poll);
	poll.flags |= D9_POLL_BREAKS_BATCH;
	d9_poll_end(&poll);
	loop_ns += 7;
	poll.flags = D9_POLL_BATCHED;
	d9_poll_begin(&poll);
	d9_poll_end(&poll);

	events = collect_checked();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 1)->ns, end);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 2)->ns, end + 14);
}

static void test_wait_ends_the_batch(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 },
				.flags = D9_POLL_BATCHED };
	const struct loop_events *events;

	prepare();
	call(2, 100, NULL);
	d9_loop_park(loop, 0);
	loop_ns += 9;
	d9_loop_unpark(loop);
	d9_poll_begin(&poll);
	d9_poll_end(&poll);

	events = collect_checked();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 1)->ns, loop_ns);
}

static jmp_buf escape;

static void leave_by_longjmp(void)
{
	longjmp(escape, 1);
}

static void test_callback_left_by_longjmp_is_closed_at_the_next_entry(void)
{
	uint64_t before = d9__polls_abandoned();

	prepare();
	if (!setjmp(escape))
		run_once(1, leave_by_longjmp);
	run_once(2, NULL);

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "PU()PU()");
	CU_ASSERT_EQUAL(d9__polls_abandoned(), before + 1);
	CU_ASSERT_EQUAL(d9_poll_task(), 0);
}

static void leave_two_by_longjmp(void)
{
	run_once(2, leave_by_longjmp);
}

static void test_longjmp_over_a_nested_loop_keeps_the_order(void)
{
	prepare();
	if (!setjmp(escape))
		run_once(1, leave_two_by_longjmp);
	call(3, 10, NULL);
	run_once(4, NULL);

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "PU()PU()()PU()");
}

static NOINLINE void call_with_cleanup(void)
{
	__attribute__((cleanup(d9_poll_end))) struct d9_poll poll = {
		.loop = loop, .task = { .key = 1, .fd = -1 }
	};

	d9_poll_begin(&poll);
	loop_ns += 10;
	d9_poll_end(&poll);
}

static void test_second_end_does_nothing(void)
{
	prepare();
	call_with_cleanup();

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "()");
}

static void close_gate(void)
{
	d9__gate_set(0);
}

static void reopen_gate(void)
{
	d9__gate_set(0);
	loop_ns += 5000;
	d9__gate_set(D9__GATE_ALL);
}

static void test_poll_that_ends_unrecorded_is_completed_afterwards(void)
{
	const struct loop_events *events;

	prepare();
	call(1, 1000, close_gate);
	loop_ns += 1000000;
	call(2, 1000, NULL);
	d9__gate_set(D9__GATE_ALL);
	call(3, 1000, NULL);

	events = collect_checked();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "()PU()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_END, 0)->ns - loop_nth(events, LOOP_START, 0)->ns,
			1000);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_PARK, 0)->ns, loop_nth(events, LOOP_END, 0)->ns);
}

static void test_switching_off_and_on_inside_a_callback_keeps_its_poll(void)
{
	const struct loop_events *events;

	prepare();
	call(1, 1000, reopen_gate);
	call(2, 1000, NULL);

	events = collect_checked();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "()()");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_END, 0)->ns - loop_nth(events, LOOP_START, 0)->ns,
			6000);
}

static void test_unpark_missed_while_off_is_supplied(void)
{
	prepare();
	d9_loop_park(loop, -1);
	close_gate();
	d9_loop_unpark(loop);
	d9__gate_set(D9__GATE_ALL);
	call(1, 1000, NULL);
	wait_for(10);

	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "PU()PU");
}

static void test_switched_on_in_the_middle_begins_with_an_unpark(void)
{
	prepare();
	close_gate();
	wait_for(10);
	d9_loop_park(loop, -1);
	d9__gate_set(D9__GATE_ALL);
	d9_loop_unpark(loop);
	call(1, 1000, NULL);

	/* The time when recording was off is parked: what the thread did is not known. */
	CU_ASSERT_STRING_EQUAL(loop_story(collect_checked()), "PU()");
}

static void test_nothing_is_written_while_off(void)
{
	prepare();
	close_gate();
	run_once(1, inner);
	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "");
	CU_ASSERT_EQUAL(d9_loop_recording(), 0);
	d9__gate_set(D9__GATE_ALL);
	CU_ASSERT_EQUAL(d9_loop_recording(), 1);
}

static void test_spinning_loop_gets_a_short_park_each_100_ms(void)
{
	const struct loop_events *events;

	prepare();
	wait_for(10);
	for (int i = 0; i < 1000; i++) {
		d9_loop_park(loop, 0);
		d9_loop_unpark(loop);
		call(1, 1000000, NULL);
	}

	events = collect_checked();
	CU_ASSERT(loop_count(events, LOOP_PARK) >= 10 && loop_count(events, LOOP_PARK) <= 11);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_START), 1000);
}

static void test_wait_told_afterwards_is_a_park(void)
{
	const struct loop_events *events;
	uint64_t since;

	prepare();
	call(1, 1000, NULL);
	since = loop_ns += 10;
	loop_ns += 500;
	d9_loop_parked(loop, since);

	events = collect_checked();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "()PU");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_PARK, 0)->ns, since);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_UNPARK, 0)->ns, since + 500);
}

static void *run_and_return(void *arg)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	call(1, 1000, NULL);
	return arg;
}

static void *exit_inside_a_callback(void *arg)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 } };

	d9_poll_begin(&poll);
	pthread_exit(arg);
}

static const char *story_of_thread(void *(*fn)(void *))
{
	pthread_t thread;

	prepare();
	pthread_create(&thread, NULL, fn, NULL);
	pthread_join(thread, NULL);
	return loop_story(collect_checked());
}

static void test_thread_that_ends_parks_its_worker(void)
{
	CU_ASSERT_STRING_EQUAL(story_of_thread(run_and_return), "U()P");
	CU_ASSERT_STRING_EQUAL(story_of_thread(exit_inside_a_callback), "U()P");
}

static void test_hooks_keep_errno(void)
{
	prepare();
	errno = ENOTTY;
	run_once(77, inner);
	d9_wake(loop, 78, D9_WAKE_FD, NULL);
	d9_task_end(D9_LIBRARY_OWN, 77);
	reopen_gate();
	run_once(1, NULL);

	CU_ASSERT_EQUAL(errno, ENOTTY);
	loop_events_collect();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "first record of a worker is an unpark",
		  test_first_record_of_a_worker_is_an_unpark },
		{ "round is a wait and its callbacks", test_round_is_a_wait_and_its_callbacks },
		{ "callback that runs a loop is split and resumed",
		  test_callback_that_runs_a_loop_is_split_and_resumed },
		{ "long piece before a loop inside is examined at its end",
		  test_long_piece_before_a_loop_inside_is_examined_at_its_end },
		{ "three loops inside one another alternate",
		  test_three_loops_inside_one_another_alternate },
		{ "piece without length is not written", test_piece_without_length_is_not_written },
		{ "piece with length is written when it ends",
		  test_piece_with_length_is_written_when_it_ends },
		{ "end of a poll starts the next of its batch",
		  test_end_of_a_poll_starts_the_next_of_its_batch },
		{ "wait ends the batch", test_wait_ends_the_batch },
		{ "callback left by longjmp is closed at the next entry",
		  test_callback_left_by_longjmp_is_closed_at_the_next_entry },
		{ "loop of the same function is inside its callback",
		  test_loop_of_the_same_function_is_inside_its_callback },
		{ "runs of the same function end one by one",
		  test_runs_of_the_same_function_end_one_by_one },
		{ "longjmp over a nested loop keeps the order",
		  test_longjmp_over_a_nested_loop_keeps_the_order },
		{ "second end does nothing", test_second_end_does_nothing },
		{ "poll that ends unrecorded is completed afterwards",
		  test_poll_that_ends_unrecorded_is_completed_afterwards },
		{ "switching off and on inside a callback keeps its poll",
		  test_switching_off_and_on_inside_a_callback_keeps_its_poll },
		{ "unpark missed while off is supplied", test_unpark_missed_while_off_is_supplied },
		{ "switched on in the middle begins with an unpark",
		  test_switched_on_in_the_middle_begins_with_an_unpark },
		{ "nothing is written while off", test_nothing_is_written_while_off },
		{ "spinning loop gets a short park each 100 ms",
		  test_spinning_loop_gets_a_short_park_each_100_ms },
		{ "wait told afterwards is a park", test_wait_told_afterwards_is_a_park },
		{ "thread that ends parks its worker", test_thread_that_ends_parks_its_worker },
		{ "hooks keep errno", test_hooks_keep_errno },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("polls", tests);
}
