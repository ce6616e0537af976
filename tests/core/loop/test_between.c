/* SPDX-License-Identifier: Apache-2.0 */
/* Time from where a thread leaves its loop to where it enters one again. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/adapter.h"
#include "loop/thread_state.h"
#include "ring/gate.h"
#include "support/d9_test.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

static struct d9_loop *loop;

static void call(void (*inside)(void))
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 } };

	d9_poll_begin(&poll);
	loop_ns += 10 * US;
	if (inside)
		inside();
	d9_poll_end(&poll);
}

static void wait_for(uint64_t ns)
{
	d9_loop_park(loop, -1);
	loop_ns += ns;
	d9_loop_unpark(loop);
}

/* One run of the loop, with a wait and a callback. */
static void run_round(uint64_t wait_ns, void (*inside)(void))
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	wait_for(wait_ns);
	call(inside);
	d9_loop_leave(&run);
}

/* Task 1 has its spawn behind it, and no time in between is left to be told. */
static void prepare(void)
{
	run_round(0, NULL);
	loop_ns += 2000 * MS;
	run_round(0, NULL);
	loop_events_collect();
}

static size_t count_of(enum loop_event_kind kind)
{
	const struct loop_events *events = loop_events_collect();

	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
	return loop_count(events, kind);
}

static void test_work_of_a_millisecond_is_told_before_all_else_of_its_round(void)
{
	const struct loop_events *events;
	const struct loop_event *outside;
	uint64_t left_ns;

	prepare();
	left_ns = loop_ns;
	loop_ns += MS;
	run_round(50, NULL);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "OPU()");
	outside = loop_nth(events, LOOP_OUTSIDE, 0);
	CU_ASSERT_EQUAL(outside->from_ns, left_ns);
	CU_ASSERT_EQUAL(outside->to_ns, left_ns + MS);
	CU_ASSERT_EQUAL(outside->ns, left_ns + MS);
	CU_ASSERT_EQUAL(outside->worker, loop_nth(events, LOOP_START, 0)->worker);
}

static void test_shorter_work_is_summed_for_a_second(void)
{
	const struct loop_events *events;
	const struct loop_event *sum;

	prepare();
	for (unsigned i = 0; i < 5; i++) {
		loop_ns += i == 2 ? 999 * US : 100 * US;
		run_round(300 * MS, NULL);
	}

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_OUTSIDE), 0);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SOURCE_TIME), 1);
	sum = loop_nth(events, LOOP_SOURCE_TIME, 0);
	CU_ASSERT_STRING_EQUAL(sum->text, "between");
	CU_ASSERT_EQUAL(sum->task, 0);
	CU_ASSERT_EQUAL(sum->worker, loop_nth(events, LOOP_START, 0)->worker);
	CU_ASSERT_EQUAL(sum->calls, 5);
	CU_ASSERT_EQUAL(sum->total_ns, 1399 * US);
	CU_ASSERT_EQUAL(sum->max_ns, 999 * US);
}

static void test_next_second_has_a_sum_of_its_own(void)
{
	const struct loop_events *events;

	prepare();
	for (unsigned i = 0; i < 10; i++) {
		loop_ns += 100 * US;
		run_round(300 * MS, NULL);
	}

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SOURCE_TIME), 2);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SOURCE_TIME, 1)->calls, 5);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SOURCE_TIME, 1)->total_ns, 500 * US);
}

static void test_work_that_is_told_is_in_no_sum(void)
{
	const struct loop_events *events;

	prepare();
	loop_ns += 100 * US;
	run_round(600 * MS, NULL);
	loop_ns += 400 * MS;
	run_round(0, NULL);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_OUTSIDE), 1);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SOURCE_TIME, 0)->calls, 1);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SOURCE_TIME, 0)->total_ns, 100 * US);
}

/* A round whose loop needs 300 ns from the end of its callback to where it is left. */
static void run_round_with_end(uint16_t flags)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 }, .flags = flags };
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	wait_for(50);
	d9_poll_begin(&poll);
	loop_ns += 10 * US;
	d9_poll_end(&poll);
	loop_ns += 300;
	d9_loop_leave(&run);
}

static uint64_t length_behind(uint16_t flags)
{
	const struct loop_event *outside;

	prepare();
	run_round_with_end(flags);
	loop_ns += 5 * MS;
	run_round(0, NULL);

	outside = loop_nth(loop_events_collect(), LOOP_OUTSIDE, 0);
	return outside->to_ns - outside->from_ns;
}

static void test_time_begins_at_the_last_callback_if_nothing_can_have_run_since(void)
{
	CU_ASSERT_EQUAL(length_behind(D9_POLL_BATCHED), 5 * MS + 300);
	CU_ASSERT_EQUAL(length_behind(D9_POLL_BREAKS_BATCH), 5 * MS);
}

static void run_two_inside(void)
{
	run_round(0, NULL);
	loop_ns += 5 * MS;
	run_round(0, NULL);
	loop_ns += 5 * MS;
}

static void test_callback_that_runs_loops_is_not_outside_between_them(void)
{
	prepare();
	run_round(0, run_two_inside);

	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);
}

static void test_run_inside_a_run_is_not_outside(void)
{
	struct d9_loop_run outer;

	prepare();
	d9_loop_enter(loop, &outer);
	run_two_inside();
	d9_loop_leave(&outer);

	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);
}

static void test_callback_or_wait_without_an_entry_is_not_told_as_outside(void)
{
	prepare();
	loop_ns += 5 * MS;
	call(NULL);
	loop_ns += 5 * MS;
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);

	loop_ns += 5 * MS;
	wait_for(5 * MS);
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);

	loop_ns += 5 * MS;
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 1);
}

static void test_run_of_an_unknown_loop_is_not_outside(void)
{
	struct d9_loop_run run;

	prepare();
	loop_ns += 5 * MS;
	d9_loop_enter(NULL, &run);
	loop_ns += 5 * MS;
	d9_loop_leave(&run);
	run_round(0, NULL);

	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);
}

static void reopen_gate(void)
{
	d9__gate_set(0);
	loop_ns += 5 * MS;
	d9__gate_set(D9__GATE_ALL);
}

static void test_time_in_which_recording_was_off_is_not_outside(void)
{
	prepare();
	reopen_gate();
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);

	d9__gate_set(0);
	run_round(0, NULL);
	loop_ns += 5 * MS;
	d9__gate_set(D9__GATE_ALL);
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);
}

static void test_run_in_which_recording_was_off_stays_a_gap(void)
{
	const struct loop_events *events;
	struct d9_loop_run run;
	uint64_t last_ns;

	prepare();
	d9_loop_enter(loop, &run);
	wait_for(10);
	last_ns = loop_ns;
	reopen_gate();
	loop_ns += MS;
	d9_loop_leave(&run);
	loop_ns += 5 * MS;
	run_round(0, NULL);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_OUTSIDE), 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_PARK, 1)->ns, last_ns);
}

static jmp_buf out;

static void jump(void)
{
	longjmp(out, 1);
}

static void test_run_that_a_longjmp_left_has_no_end(void)
{
	prepare();
	if (!setjmp(out))
		run_round(0, jump);
	loop_ns += 5 * MS;
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);

	loop_ns += 5 * MS;
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 1);
}

static void *run_twice(void *arg)
{
	loop_ns += 5 * MS;
	run_round(0, NULL);
	loop_ns += 100 * US;
	run_round(0, NULL);
	return arg;
}

static void run_thread(void *(*fn)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, fn, NULL);
	pthread_join(thread, NULL);
}

static void test_thread_that_ends_tells_its_sum_and_leaves_nothing_to_the_next(void)
{
	const struct loop_events *events;

	prepare();
	run_thread(run_twice);
	run_thread(run_twice);
	events = loop_events_collect();

	CU_ASSERT_EQUAL(loop_nth(events, LOOP_START, 0)->worker,
			loop_nth(events, LOOP_START, 2)->worker);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_OUTSIDE), 0);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SOURCE_TIME), 2);
	for (size_t i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(loop_nth(events, LOOP_SOURCE_TIME, i)->calls, 1);
		CU_ASSERT_EQUAL(loop_nth(events, LOOP_SOURCE_TIME, i)->total_ns, 100 * US);
	}
}

static void test_child_does_not_go_on_with_its_parents_time(void)
{
	int status = -1;
	pid_t pid;

	prepare();
	loop_ns += 100 * US;
	run_round(0, NULL);
	pid = fork();
	if (pid == 0) {
		const struct d9__between_rounds *own = &d9__thread_peek()->between;

		_exit(own->left_ns || own->calls || own->total_ns);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);

	loop_ns += 5 * MS;
	run_round(0, NULL);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 1);
}

static void test_clock_that_steps_back_is_no_time(void)
{
	const struct loop_events *events;

	prepare();
	loop_ns -= 5 * MS;
	run_round(0, NULL);
	loop_ns += 5 * MS + 2000 * MS;
	run_round(0, NULL);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SOURCE_TIME, 0)->max_ns, 0);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_OUTSIDE), 1);
}

static void test_slot_whose_clock_is_behind_makes_no_length(void)
{
	prepare();
	/* As if the thread had got another one. */
	d9__slot_self()->last_ns = 0;
	loop_ns -= 5 * MS;
	run_round(0, NULL);
	loop_ns += 5 * MS;

	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_OUTSIDE), 0);
}

/* ---- rounds of GLib's, which enter nothing ---- */

static void round_with(void (*inside)(void))
{
	d9__loop_round_begin();
	wait_for(0);
	call(inside);
	d9__loop_round_end();
}

static void test_rounds_are_told_like_runs(void)
{
	const struct loop_events *events;
	const struct loop_event *first;

	prepare();
	round_with(NULL);
	loop_ns += 5 * MS;
	round_with(NULL);
	loop_ns += 5 * MS;
	run_round(0, NULL);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(loop_story(events), "PU()OPU()OPU()");
	first = loop_nth(events, LOOP_OUTSIDE, 0);
	CU_ASSERT_EQUAL(first->to_ns - first->from_ns, 5 * MS);
}

static void rounds_inside(void)
{
	round_with(NULL);
	loop_ns += 5 * MS;
	round_with(NULL);
}

static void test_rounds_inside_a_callback_or_a_run_are_not_outside(void)
{
	struct d9_loop_run run;

	prepare();
	round_with(rounds_inside);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);

	d9_loop_enter(loop, &run);
	rounds_inside();
	d9_loop_leave(&run);
	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);
}

static void test_round_that_begins_twice_and_ends_twice_is_one(void)
{
	prepare();
	d9__loop_round_begin();
	loop_ns += 5 * MS;
	round_with(NULL);
	d9__loop_round_end();
	loop_ns += 5 * MS;
	round_with(NULL);

	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 1);
}

static void test_rounds_do_not_tell_time_in_which_recording_was_off(void)
{
	prepare();
	round_with(NULL);
	reopen_gate();
	round_with(NULL);

	CU_ASSERT_EQUAL(count_of(LOOP_OUTSIDE), 0);
}

static void spin_in_rounds(void)
{
	for (int i = 0; i < 3; i++) {
		d9__loop_round_begin();
		d9_loop_park(loop, 0);
		d9_loop_unpark(loop);
		d9__loop_round_end();
		loop_ns += 5 * MS;
	}
}

static void test_rounds_in_which_nothing_runs_begin_the_worker(void)
{
	spin_in_rounds();

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "UOO");
}

static void test_rounds_are_told_from_where_recording_is_on_again(void)
{
	prepare();
	reopen_gate();
	spin_in_rounds();

	CU_ASSERT_STRING_EQUAL(loop_story(loop_events_collect()), "PUOO");
}

static void test_errno_is_kept(void)
{
	prepare();
	errno = ENOTTY;
	for (int i = 0; i < 3; i++) {
		loop_ns += 5 * MS;
		run_round(0, NULL);
		loop_ns += 100 * US;
		round_with(NULL);
		wait_for(1000 * MS);
	}
	CU_ASSERT_EQUAL(errno, ENOTTY);
	loop_events_collect();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		/* The first of all: the worker is in no trace yet. */
		{ "rounds in which nothing runs begin the worker",
		  test_rounds_in_which_nothing_runs_begin_the_worker },
		{ "errno is kept", test_errno_is_kept },
		{ "work of a millisecond is told before all else of its round",
		  test_work_of_a_millisecond_is_told_before_all_else_of_its_round },
		{ "shorter work is summed for a second", test_shorter_work_is_summed_for_a_second },
		{ "next second has a sum of its own", test_next_second_has_a_sum_of_its_own },
		{ "work that is told is in no sum", test_work_that_is_told_is_in_no_sum },
		{ "time begins at the last callback if nothing can have run since",
		  test_time_begins_at_the_last_callback_if_nothing_can_have_run_since },
		{ "callback that runs loops is not outside between them",
		  test_callback_that_runs_loops_is_not_outside_between_them },
		{ "run inside a run is not outside", test_run_inside_a_run_is_not_outside },
		{ "callback or wait without an entry is not told as outside",
		  test_callback_or_wait_without_an_entry_is_not_told_as_outside },
		{ "run of an unknown loop is not outside",
		  test_run_of_an_unknown_loop_is_not_outside },
		{ "time in which recording was off is not outside",
		  test_time_in_which_recording_was_off_is_not_outside },
		{ "run in which recording was off stays a gap",
		  test_run_in_which_recording_was_off_stays_a_gap },
		{ "run that a longjmp left has no end", test_run_that_a_longjmp_left_has_no_end },
		{ "thread that ends tells its sum and leaves nothing to the next",
		  test_thread_that_ends_tells_its_sum_and_leaves_nothing_to_the_next },
		{ "child does not go on with its parent's time",
		  test_child_does_not_go_on_with_its_parents_time },
		{ "clock that steps back is no time", test_clock_that_steps_back_is_no_time },
		{ "slot whose clock is behind makes no length",
		  test_slot_whose_clock_is_behind_makes_no_length },
		{ "rounds are told like runs", test_rounds_are_told_like_runs },
		{ "rounds inside a callback or a run are not outside",
		  test_rounds_inside_a_callback_or_a_run_are_not_outside },
		{ "round that begins twice and ends twice is one",
		  test_round_that_begins_twice_and_ends_twice_is_one },
		{ "rounds are told from where recording is on again",
		  test_rounds_are_told_from_where_recording_is_on_again },
		{ "rounds do not tell time in which recording was off",
		  test_rounds_do_not_tell_time_in_which_recording_was_off },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("between", tests);
}
