/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define WEB  "app+0x400 @ app+0x410"
#define TICK "app+0x200 @ app+0x210"

#define US UINT64_C(1000)

static const struct d9__worker *worker(const struct story *s, size_t i)
{
	return s->analysis.timeline.items[i];
}

static void test_awake_and_parked_time_come_from_parks_and_unparks(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 100);
	story_poll(&s, 0, 10, 40, 1, WEB);
	story_park(&s, 0, 50, 125);
	story_unpark(&s, 0, 150, 125);
	story_park(&s, 0, 200, 175);
	story_queue(&s, 300, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->active_ns, 100 * US);
	CU_ASSERT_EQUAL(worker(&s, 0)->active_periods, 2);
	/* The open park ends with the trace. */
	CU_ASSERT_EQUAL(worker(&s, 0)->parked_ns, 200 * US);
	CU_ASSERT_EQUAL(worker(&s, 0)->parks, 2);
	CU_ASSERT_DOUBLE_EQUAL(d9__worker_cpu_ratio(worker(&s, 0)), 0.75, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(d9__worker_utilisation(worker(&s, 0)), 1.0 / 3, 1e-9);
	story_free(&s);
}

static void test_share_on_the_cpu_is_of_all_the_time_and_holds_what_waits_cost(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 100);
	story_park(&s, 0, 10, 110);
	/* Rounded down behind one that was rounded up. */
	story_unpark(&s, 0, 20, 106);
	story_park(&s, 0, 110, 125);
	story_unpark(&s, 0, 290, 130);
	story_park(&s, 0, 300, 130);
	story_queue(&s, 300, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->cpu_ns, 30 * US);
	CU_ASSERT_DOUBLE_EQUAL(d9__worker_on_cpu(worker(&s, 0)), 0.1, 1e-9);
	story_free(&s);
}

static void test_busy_is_the_time_in_callbacks_and_not_all_that_a_loop_is_awake(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 100);
	story_poll(&s, 0, 10, 40, 1, WEB);
	story_park(&s, 0, 60, 160);
	story_unpark(&s, 0, 300, 160);
	story_park(&s, 0, 300, 160);
	story_analyse(&s);

	CU_ASSERT_DOUBLE_EQUAL(d9__worker_busy(worker(&s, 0)), 0.1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(d9__worker_utilisation(worker(&s, 0)), 0.2, 1e-9);
	story_free(&s);
}

static void test_wait_by_a_poll_of_the_programs_own_is_a_park(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 10; i++) {
		story_unpark(&s, 0, 20000 * i, 100 * i);
		story_poll(&s, 0, 20000 * i + 10, 20000 * i + 60, 1, WEB);
		story_park(&s, 0, 20000 * i + 19900, 100 * i + 100);
	}
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->active_ns, 10 * 100 * US);
	CU_ASSERT_EQUAL(worker(&s, 0)->parked_ns, (10 * 19800 + 9 * 100) * US);
	story_free(&s);
}

/* Ten rounds of 20 ms, on the CPU for 1 ms: |ready_us| of it others had the CPU, |source_us| it was
 * in check(). */
static void awake_rounds(struct story *s, uint64_t ready_us, uint64_t source_us)
{
	story_begin(s);
	story_unpark(s, 0, 0, 100);
	story_poll(s, 0, 0, 1, 1, WEB);
	story_park(s, 0, 2, 102);
	for (unsigned i = 0; i < 10; i++) {
		story_unpark(s, 0, 1000 + 20000 * i, 1000 + 1000 * i);
		if (source_us)
			story_source_time(s, 0, 1000 + 20000 * i + source_us, 1, "check", 1,
					  source_us, source_us);
		if (ready_us)
			story_put_aside(s, 0, 1000 + 20000 * i + 19990, ready_us);
		story_park(s, 0, 1000 + 20000 * i + 19990, 1000 + 1000 * i + 1000);
	}
	story_analyse(s);
}

static void test_round_that_waited_for_a_cpu_was_awake_and_its_wait_is_the_machine_s(void)
{
	const struct d9__worker *w;
	struct story s;

	awake_rounds(&s, 18000, 0);
	w = worker(&s, 0);
	CU_ASSERT_EQUAL(w->active_ns, (2 + 10 * 19990) * US);
	CU_ASSERT_EQUAL(w->loop_time.outside_asleep_ns, 0);
	CU_ASSERT_EQUAL(w->loop_time.round_ready_ns, 10 * 18000 * US);
	CU_ASSERT_EQUAL(w->time.ready_ns, 10 * 18000 * US);
	story_free(&s);

	/* Nothing explains what is left, so that it may as well have slept. */
	awake_rounds(&s, 0, 0);
	w = worker(&s, 0);
	CU_ASSERT_EQUAL(w->active_ns, (2 + 10 * 1000) * US);
	CU_ASSERT_EQUAL(w->loop_time.outside_asleep_ns, 10 * 18990 * US);
	story_free(&s);
}

static void test_round_that_waited_in_check_was_awake(void)
{
	const struct d9__worker *w;
	struct story s;

	awake_rounds(&s, 0, 12000);
	w = worker(&s, 0);
	CU_ASSERT_EQUAL(w->active_ns, (2 + 10 * 19990) * US);
	CU_ASSERT_EQUAL(w->loop_time.outside_asleep_ns, 0);
	story_free(&s);
}

/* Ten rounds of 30 ms, on the CPU for 20, and put aside for 6 of the 28 between rounds. */
static void test_sleep_between_rounds_is_no_wait_for_a_cpu_and_both_accounts_say_so(void)
{
	const struct d9__worker *w;
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 10; i++) {
		story_unpark(&s, 0, 30000 * i, 20000 * i + 1);
		story_outside(&s, 0, 30000 * i + 1000, 30000 * i + 29000);
		story_put_aside(&s, 0, 30000 * i + 29000, 6000);
		story_park(&s, 0, 30000 * i + 29000, 20000 * i + 20001);
	}
	story_analyse(&s);
	w = worker(&s, 0);
	CU_ASSERT_EQUAL(w->loop_time.outside_asleep_ns, 10 * 3000 * US);
	CU_ASSERT_EQUAL(w->parked_ns, w->loop_time.outside_asleep_ns + 9 * 1000 * US);
	CU_ASSERT_EQUAL(w->time.ready_ns, 10 * 6000 * US);
	CU_ASSERT_DOUBLE_EQUAL(w->loop_time.outside_ready_ns + w->loop_time.round_ready_ns,
			       10 * 6000 * US, 100);
	CU_ASSERT(w->loop_time.outside_ns > 10 * 19000 * US);
	story_free(&s);
}

/* Of a wait that is told behind a short time awake the rest was in waits before. */
static void test_no_more_than_a_round_lacked_was_a_wait_for_a_cpu_in_it(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 1000);
	story_park(&s, 0, 2000, 3000);
	story_unpark(&s, 0, 12000, 3000);
	story_put_aside(&s, 0, 14000, 5000);
	story_park(&s, 0, 14000, 4000);
	story_analyse(&s);
	CU_ASSERT_EQUAL(worker(&s, 0)->loop_time.round_ready_ns, 1000 * US);
	CU_ASSERT_EQUAL(worker(&s, 0)->loop_time.wait_ready_ns, 4000 * US);
	CU_ASSERT_EQUAL(worker(&s, 0)->loop_time.asleep_ns, 6000 * US);
	story_free(&s);
}

static void test_last_round_counts_without_a_park_behind_it(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 100);
	story_park(&s, 0, 10, 110);
	story_unpark(&s, 0, 20, 110);
	story_poll(&s, 0, 20, 90, 1, WEB);
	story_queue(&s, 300, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->active_ns, 80 * US);
	CU_ASSERT_EQUAL(worker(&s, 0)->cpu_ns, 80 * US);
	story_free(&s);
}

static void test_last_round_was_on_the_cpu_but_for_what_its_calls_tell(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 100);
	story_park(&s, 0, 10, 110);
	story_unpark(&s, 0, 20, 110);
	story_poll(&s, 0, 20, 40020, 1, WEB);
	story_off_cpu(&s, 0, 40030, 1, 25000, 5000);
	story_queue(&s, 40100, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->cpu_ns, (10 + 10000) * US);
	story_free(&s);
}

static void test_poll_without_an_end_is_closed_by_the_next_start(void)
{
	struct story s;

	story_begin(&s);
	story_start(&s, 0, 0, 1, WEB);
	story_poll(&s, 0, 30, 40, 2, TICK);
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->open_ended, 1);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->durations.max, 30 * US);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->open_ended, 1);
	story_free(&s);
}

static void test_poll_without_an_end_is_closed_by_a_park(void)
{
	struct story s;

	story_begin(&s);
	story_start(&s, 0, 0, 1, WEB);
	story_park(&s, 0, 20, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, WEB)->durations.max, 20 * US);
	story_free(&s);
}

static void test_poll_that_is_open_at_the_end_has_no_duration(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, 0, 10, 1, WEB);
	story_start(&s, 0, 20, 1, WEB);
	story_queue(&s, 90, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, WEB)->durations.count, 1);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->calls, 2);
	story_free(&s);
}

static void test_end_without_a_start_is_ignored(void)
{
	struct story s;

	story_begin(&s);
	story_end(&s, 0, 5);
	story_poll(&s, 0, 10, 20, 1, WEB);
	story_end(&s, 0, 25);
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->polls, 1);
	CU_ASSERT_EQUAL(worker(&s, 0)->poll_ns, 10 * US);
	story_free(&s);
}

static void test_pieces_of_a_call_cut_by_a_nested_loop_are_one_call(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, 10, 30, 1, WEB);
	story_poll(&s, 0, 30, 40, 2, TICK);
	story_wake(&s, 45, 1, 1, D9__WAKE_RESUMPTION);
	story_poll(&s, 0, 45, 50, 1, WEB);
	story_park(&s, 0, 60, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, WEB)->calls, 1);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->durations.max, 25 * US);
	CU_ASSERT_EQUAL(worker(&s, 0)->polls - worker(&s, 0)->resumptions, 2);
	/* The self wake is no wait. */
	CU_ASSERT_EQUAL(s.analysis.latency.delays.count, 0);
	story_free(&s);
}

static void test_call_is_open_while_the_loops_run_that_it_runs(void)
{
	struct story s;
	const struct d9__callback *outer;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, 10, 30, 1, WEB);
	story_park(&s, 0, 30, 0);
	story_unpark(&s, 0, 1030, 0);
	/* One loop in the loop: it waits, too. */
	story_poll(&s, 0, 1030, 1040, 2, TICK);
	story_park(&s, 0, 1040, 0);
	story_unpark(&s, 0, 2040, 0);
	story_wake(&s, 2045, 2, 2, D9__WAKE_RESUMPTION);
	story_poll(&s, 0, 2045, 2050, 2, TICK);
	story_wake(&s, 2060, 1, 1, D9__WAKE_RESUMPTION);
	story_poll(&s, 0, 2060, 2070, 1, WEB);
	story_wake(&s, 50, 0, 3, D9__WAKE_FD);
	story_poll(&s, 0, 2071, 2075, 3, TICK);
	story_park(&s, 0, 2080, 0);
	story_analyse(&s);

	outer = story_callback(&s, WEB);
	CU_ASSERT_EQUAL(outer->durations.max, 30 * US);
	CU_ASSERT_EQUAL(outer->nested.calls, 1);
	CU_ASSERT_EQUAL(outer->nested.longest_ns, 2060 * US);
	CU_ASSERT_EQUAL(outer->nested.ns, 2030 * US);
	CU_ASSERT_EQUAL(outer->nested.parked_ns, 2000 * US);
	CU_ASSERT_EQUAL(outer->nested.depth, 2);
	CU_ASSERT_EQUAL(story_callback(&s, TICK)->nested.depth, 1);
	CU_ASSERT_EQUAL(story_callback(&s, TICK)->nested.ns, 1005 * US);
	CU_ASSERT_EQUAL(d9__worker_busy_ns(worker(&s, 0)), 2064 * US);
	/* What waited outside waited for all of it. */
	CU_ASSERT_EQUAL(outer->n_stalls, 1);
	CU_ASSERT_EQUAL(outer->stalls[0].stall->nested_ns, 2030 * US);
	CU_ASSERT_EQUAL(outer->stalls[0].stall->waited, 1);
	story_free(&s);
}

/* The loop library's callback calls the program's, which runs a loop. */
static void test_loop_inside_a_function_that_the_library_calls_is_the_functions(void)
{
	static const char library[] = "libevent-2.1.so.7+0x300 @ app+0x310";
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	/* A first call without a loop. */
	story_start(&s, 0, 1, 1, library);
	story_span(&s, 0, 2, 8, 6, WEB);
	story_end(&s, 0, 9);
	story_start(&s, 0, 10, 1, library);
	story_enter(&s, 0, 15, 7, WEB);
	story_end(&s, 0, 30);
	story_park(&s, 0, 30, 0);
	story_unpark(&s, 0, 1030, 0);
	story_poll(&s, 0, 1030, 1040, 2, TICK);
	story_wake(&s, 1045, 1, 1, D9__WAKE_RESUMPTION);
	story_start(&s, 0, 1045, 1, library);
	story_exit(&s, 0, 1060, 7, WEB);
	story_end(&s, 0, 1065);
	story_park(&s, 0, 1070, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, library)->durations.sum, (2 + 10) * US);
	CU_ASSERT_EQUAL(story_callback(&s, library)->nested.calls, 0);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->durations.max, 30 * US);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->nested.ns, 1015 * US);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->nested.longest_ns, 1055 * US);
	story_free(&s);
}

static void test_self_wake_with_an_earlier_stamp_is_a_call_of_its_own(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, 10, 30, 1, WEB);
	story_wake(&s, 20, 1, 1, D9__WAKE_ACTIVE);
	story_poll(&s, 0, 40, 50, 1, WEB);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, WEB)->calls, 2);
	CU_ASSERT_EQUAL(s.analysis.latency.delays.max, 10 * US);
	story_free(&s);
}

static void test_worker_id_under_another_thread_leaves_a_gap(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_park_of(&s, 0, 50, 777);
	story_analyse(&s);

	CU_ASSERT_EQUAL(worker(&s, 0)->handovers, 1);
	CU_ASSERT_EQUAL(worker(&s, 0)->active_ns, 0);
	story_free(&s);
}

static void test_what_ran_between_two_moments_is_summed_by_callback(void)
{
	struct story s;
	struct d9__between between;

	story_begin(&s);
	story_poll(&s, 0, 0, 10, 1, WEB);
	story_poll(&s, 0, 10, 30, 2, TICK);
	story_poll(&s, 0, 30, 45, 1, WEB);
	story_poll(&s, 0, 45, 60, 1, WEB);
	story_analyse(&s);

	between = d9__worker_between(worker(&s, 0), UINT64_C(5000005000), UINT64_C(5000050000));
	CU_ASSERT_EQUAL(between.calls, 4);
	CU_ASSERT_EQUAL(between.busy_ns, 45 * US);
	CU_ASSERT_PTR_EQUAL(between.longest, story_callback(&s, TICK));
	CU_ASSERT_PTR_EQUAL(between.most, story_callback(&s, WEB));
	CU_ASSERT_EQUAL(between.most_ns, 25 * US);
	story_free(&s);
}

static void test_tasks_alive_before_the_trace_count_from_its_start(void)
{
	struct story s;

	story_begin(&s);
	story_terminate(&s, 10, 1);
	story_spawn(&s, 20, 2, WEB, "io");
	story_spawn(&s, 30, 3, WEB, "io");
	story_terminate(&s, 40, 2);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.analysis.tasks.at_start, 1);
	CU_ASSERT_EQUAL(s.analysis.tasks.peak_change + 1, 2);
	CU_ASSERT_EQUAL(s.analysis.tasks.change + 1, 1);
	story_free(&s);
}

/* Tasks |from| to |to| are made, run on worker 0 and end, every 10 us. */
static void story_of_short_lives(struct story *s, unsigned from, unsigned to)
{
	for (unsigned i = from; i <= to; i++) {
		story_spawn(s, 10 * i, i, WEB, "once");
		story_poll(s, 0, 10 * i + 1, 10 * i + 3, i, WEB);
		story_terminate(s, 10 * i + 2, i);
	}
}

static void test_ended_task_that_runs_on_is_forgotten_once_its_worker_goes_on(void)
{
	struct story s;

	story_begin(&s);
	story_start(&s, 1, 1, 50001, TICK);
	story_terminate(&s, 2, 50001);
	/* It runs again, long after its end. */
	story_poll(&s, 2, 3, 4, 50002, TICK);
	story_terminate(&s, 5, 50002);
	story_of_short_lives(&s, 1, 4000);
	story_start(&s, 2, 40005, 50002, TICK);
	story_of_short_lives(&s, 4001, 10000);
	story_end(&s, 1, 100005);
	story_end(&s, 2, 100005);
	story_poll(&s, 1, 100006, 100007, 50003, TICK);
	story_poll(&s, 2, 100006, 100007, 50004, TICK);
	story_of_short_lives(&s, 10001, 20000);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, TICK)->durations.count, 5);
	CU_ASSERT_EQUAL(story_callback(&s, TICK)->durations.max, 100004 * US);
	CU_ASSERT_PTR_NULL(d9__table_find(&s.analysis.tasks.table, 50001));
	CU_ASSERT_PTR_NULL(d9__table_find(&s.analysis.tasks.table, 50002));
	CU_ASSERT_PTR_NOT_NULL(d9__table_find(&s.analysis.tasks.table, 50003));
	story_free(&s);
}

static void test_ended_tasks_are_forgotten_in_the_end(void)
{
	struct story s;

	story_begin(&s);
	story_of_short_lives(&s, 1, 20000);
	story_analyse(&s);

	/* And the one that ran last. */
	CU_ASSERT(s.analysis.tasks.table.n <= D9__TASKS_GRAVES + 1);
	CU_ASSERT_EQUAL(story_callback(&s, WEB)->durations.count, 20000);
	CU_ASSERT_EQUAL(s.analysis.tasks.change, 0);
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "awake and parked time come from parks and unparks",
	  test_awake_and_parked_time_come_from_parks_and_unparks },
	{ "share on the CPU is of all the time and holds what waits cost",
	  test_share_on_the_cpu_is_of_all_the_time_and_holds_what_waits_cost },
	{ "busy is the time in callbacks and not all that a loop is awake",
	  test_busy_is_the_time_in_callbacks_and_not_all_that_a_loop_is_awake },
	{ "wait by a poll of the program's own is a park", test_wait_by_a_poll_of_the_programs_own_is_a_park },
	{ "round that waited for a CPU was awake, and its wait is the machine's",
	  test_round_that_waited_for_a_cpu_was_awake_and_its_wait_is_the_machine_s },
	{ "round that waited in check() was awake", test_round_that_waited_in_check_was_awake },
	{ "sleep between rounds is no wait for a CPU, and both accounts say so",
	  test_sleep_between_rounds_is_no_wait_for_a_cpu_and_both_accounts_say_so },
	{ "no more than a round lacked was a wait for a CPU in it",
	  test_no_more_than_a_round_lacked_was_a_wait_for_a_cpu_in_it },
	{ "last round counts without a park behind it", test_last_round_counts_without_a_park_behind_it },
	{ "last round was on the CPU, but for what its calls tell",
	  test_last_round_was_on_the_cpu_but_for_what_its_calls_tell },
	{ "loop inside a function that the library calls is the function's",
	  test_loop_inside_a_function_that_the_library_calls_is_the_functions },
	{ "call is open while the loops run that it runs", test_call_is_open_while_the_loops_run_that_it_runs },
	{ "poll without an end is closed by the next start",
	  test_poll_without_an_end_is_closed_by_the_next_start },
	{ "poll without an end is closed by a park",
	  test_poll_without_an_end_is_closed_by_a_park },
	{ "poll that is open at the end has no duration",
	  test_poll_that_is_open_at_the_end_has_no_duration },
	{ "end without a start is ignored", test_end_without_a_start_is_ignored },
	{ "pieces of a call cut by a nested loop are one call",
	  test_pieces_of_a_call_cut_by_a_nested_loop_are_one_call },
	{ "self wake with an earlier stamp is a call of its own",
	  test_self_wake_with_an_earlier_stamp_is_a_call_of_its_own },
	{ "worker id under another thread leaves a gap",
	  test_worker_id_under_another_thread_leaves_a_gap },
	{ "what ran between two moments is summed by callback",
	  test_what_ran_between_two_moments_is_summed_by_callback },
	{ "tasks alive before the trace count from its start",
	  test_tasks_alive_before_the_trace_count_from_its_start },
	{ "ended task that runs on is forgotten once its worker goes on",
	  test_ended_task_that_runs_on_is_forgotten_once_its_worker_goes_on },
	{ "ended tasks are forgotten in the end", test_ended_tasks_are_forgotten_in_the_end },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("timeline", tests);
}
