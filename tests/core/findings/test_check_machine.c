/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about the machine, and about how the load lies over workers. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW "app+0x100 @ app+0x110"
#define TICK "app+0x200 @ app+0x210"
#define WEB  "app+0x400 @ app+0x410"

#define TIMER 2

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* |n| waits of 12 ms for a CPU. */
static void wait_for_cpu(struct story *s, unsigned n)
{
	story_begin(s);
	for (unsigned i = 0; i < n; i++) {
		story_park(s, 0, 40000 * i, 0);
		story_unpark_waited(s, 0, 40000 * i + 30000, 12000);
	}
	story_park(s, 0, 40000 * n, 0);
	story_analyse(s);
}

static void test_long_waits_for_a_cpu_are_a_finding_about_the_machine(void)
{
	struct story s;

	wait_for_cpu(&s, 3);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "short-of-cpu");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT_TRUE(story_finding(&s, 0)->machine);
	story_free(&s);

	/* Once is no shortage. */
	wait_for_cpu(&s, 1);
	CU_ASSERT_EQUAL(s.findings.n, 0);
	story_free(&s);
}

/*
 * Five calls of 48 ms, of which the kernel took 40: of a process that used |cores| of its 2 CPUs, and
 * whose threads waited for |ready_us| in all, if that is told.
 */
static void preempt(struct story *s, unsigned cores, uint64_t ready_us)
{
	story_begin(s);
	story_say(s, "process.available_parallelism", "2");
	story_cpu_usage(s, 0, 0);
	if (ready_us)
		story_run_queue(s, 0, 1);
	for (unsigned i = 0; i < 5; i++) {
		story_poll(s, 0, 50000 * i, 50000 * i + 48000, 1, SLOW);
		story_off_cpu(s, 0, 50000 * i + 48000, 1, 0, 40000);
	}
	if (ready_us)
		story_run_queue(s, 250000, ready_us + 1);
	story_cpu_usage(s, 250000, 250000 * cores);
	story_analyse(s);
}

static void test_preempted_calls_are_not_long_and_the_machine_is_to_blame(void)
{
	struct story s;

	preempt(&s, 1, 0);
	CU_ASSERT_EQUAL(s.findings.n, 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "short-of-cpu");
	CU_ASSERT_TRUE(story_finding(&s, 0)->machine);
	/* No thread waited for a CPU when it woke: nothing is said of that. */
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->message,
			       "The machine was short of CPU: loops were ready without one for 200 ms, as other "
			       "programs had it; "
			       "running callbacks were preempted for 200 ms.");
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "app+0x100 most (200 ms)"));
	CU_ASSERT(has(story_finding(&s, 0)->evidence[1].text, "it was others"));
	story_free(&s);

	/* Its own threads use both. */
	preempt(&s, 2, 0);
	CU_ASSERT_EQUAL(s.findings.n, 1);
	CU_ASSERT_FALSE(story_finding(&s, 0)->machine);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "its own threads compete for 2 CPUs");
	story_free(&s);

	/* They use one of two, others of them wait as well, or the loop's alone does. */
	preempt(&s, 1, 900000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "its own threads compete for 2 CPUs");
	story_free(&s);
	preempt(&s, 1, 210000);
	CU_ASSERT_TRUE(story_finding(&s, 0)->machine);
	story_free(&s);
}

/* A hundred calls of 300 us in one round, of which the thread was on the CPU for |cpu_us| in all. */
static void heap(struct story *s, uint64_t cpu_us, uint64_t forced)
{
	story_begin(s);
	story_usage(s, 0, 0);
	story_park(s, 0, 1, 1);
	story_unpark(s, 0, 40000, 1);
	for (unsigned i = 0; i < 100; i++)
		story_wake(s, 40000, 0, 1000 + i, 1);
	for (unsigned i = 0; i < 100; i++)
		story_poll(s, 0, 40000 + 300 * i, 40300 + 300 * i, 1000 + i, WEB);
	story_park(s, 0, 70001, 1 + cpu_us);
	story_usage(s, 80000, forced);
	story_analyse(s);
}

static void test_backlog_is_judged_without_what_the_machine_took_from_all_its_calls(void)
{
	struct story s;

	heap(&s, 30000, 50);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "backlog");
	story_free(&s);

	heap(&s, 6000, 50);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "");
	story_free(&s);

	/* Nobody took the CPU: its calls slept. */
	heap(&s, 6000, 0);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "backlog");
	story_free(&s);

	heap(&s, 15000, 50);
	CU_ASSERT(has(story_finding_of(&s, "backlog")->evidence[3].text, "which all its calls share"));
	/* The finding's time is the callback's own time. */
	CU_ASSERT(has(story_finding_of(&s, "backlog")->brief, "hold the loop 14."));
	CU_ASSERT(has(story_finding_of(&s, "backlog")->message, "preempted"));
	story_free(&s);
}

/*
 * Three seconds of a loop that wakes each 40 ms and is ready for 30 of these, bound to CPU 0; and a
 * thread |beside| it in each of them.
 */
static void be_bound(struct story *s, const struct story_bound *beside)
{
	story_begin(s);
	story_say(s, "process.available_parallelism", "4");
	for (unsigned i = 0; i < 75; i++) {
		story_park(s, 0, 40000 * i, 0);
		story_unpark_waited(s, 0, 40000 * i + 39000, 30000);
		if (i % 25 != 24)
			continue;
		story_bound(s, 40000 * i + 39500,
			    &(struct story_bound) { 100, "main", "0", 25000, 750000 });
		story_bound(s, 40000 * i + 39500, beside);
	}
	story_park(s, 0, 40000 * 75, 0);
	story_analyse(s);
}

static void test_loop_that_is_ready_behind_the_program_s_own_thread_is_the_program_s_matter(void)
{
	/* Alone with it on that CPU, and beside another program that is always ready there, too. */
	static const struct story_bound beside[] = { { 7, "indexer", "0", 970000, 20000 },
						     { 7, "indexer", "0", 480000, 520000 } };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		be_bound(&s, &beside[i]);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "short-of-cpu");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
		CU_ASSERT_FALSE(story_finding(&s, 0)->machine);
		CU_ASSERT(has(story_finding(&s, 0)->brief, "waits for CPU 0 for 75 % of the time"));
		CU_ASSERT(has(story_finding(&s, 0)->brief, "indexer (tid 7)"));
		CU_ASSERT(has(story_finding(&s, 0)->brief,
			      i ? "49 % of that behind" : "100 % of that behind"));
		CU_ASSERT(has(story_finding(&s, 0)->advice, "different CPUs"));
		story_free(&s);
	}
}

static void test_thread_that_is_bound_and_had_not_the_loop_s_cpu_is_not_named(void)
{
	/* It uses next to nothing and waits as long; it has another CPU; it may go to another. */
	static const struct story_bound beside[] = { { 7, "indexer", "0", 20000, 600000 },
						     { 7, "indexer", "1", 970000, 20000 },
						     { 7, "indexer", "0-1", 970000, 20000 } };

	for (unsigned i = 0; i < 3; i++) {
		struct story s;

		be_bound(&s, &beside[i]);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "short-of-cpu");
		CU_ASSERT_TRUE(story_finding(&s, 0)->machine);
		CU_ASSERT(has(story_finding(&s, 0)->brief, "as other programs had it"));
		CU_ASSERT_FALSE(has(story_finding(&s, 0)->brief, "indexer"));
		story_free(&s);
	}
}

static void test_limit_of_the_cgroup_is_told_as_what_made_calls_long(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 100);
	story_state(&s, 0, 70000, 100);
	story_state(&s, 1000000, 470000, 105);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "short-of-cpu");
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "CPU limit stopped it 5 times, for 400 ms"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "cgroup"));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, 
			       "short of CPU by its cgroup's limit: stopped for 400 ms, 5 times");
	story_free(&s);
}

static void test_call_that_never_gave_up_the_cpu_did_not_sleep(void)
{
	static const uint64_t switches[] = { 0, 1 };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		story_begin(&s);
		story_poll(&s, 0, 0, 60000, 1, SLOW);
		story_off_cpu_switched(&s, 0, 60000, 1, 50000, 5000, switches[i]);
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check,
				       switches[i] ? "blocked-callback" : "short-of-cpu");
		story_free(&s);
	}
}

/*
 * Ten calls, |blocked| of which sleep for 20 ms, in |function|; threads of the loop were ready for |wait_us| when they
 * woke.
 */
static enum d9__severity severity_of_sleeps(unsigned blocked, const char *function, uint64_t wait_us)
{
	enum d9__severity severity;
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t us = 100000 * i, took_us = i < blocked ? 20100 : 100;

		story_park(&s, 0, us, 0);
		story_unpark_waited(&s, 0, us + 50000, wait_us);
		story_start(&s, 0, us + 50001, 1, SLOW);
		if (i < blocked)
			story_waited(&s, 0, us + 50001 + took_us, 1, function, 20000);
		story_end(&s, 0, us + 50001 + took_us);
		if (i < blocked)
			story_off_cpu(&s, 0, us + 50001 + took_us, 1, 20000, 0);
	}
	story_park(&s, 0, 1000000, 0);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "blocked-callback");
	severity = story_finding_of(&s, "blocked-callback")->severity;
	story_free(&s);
	return severity;
}

static void test_few_calls_that_wait_as_long_for_others_as_threads_do_for_a_cpu_are_no_warning(void)
{
	CU_ASSERT_EQUAL(severity_of_sleeps(2, "recv", 30000), D9__INFO);
	CU_ASSERT_EQUAL(severity_of_sleeps(2, "recv", 500), D9__WARNING);
	CU_ASSERT_EQUAL(severity_of_sleeps(9, "recv", 30000), D9__WARNING);
	/* Nobody else has to run for these to end. */
	CU_ASSERT_EQUAL(severity_of_sleeps(2, "nanosleep", 30000), D9__WARNING);
	CU_ASSERT_EQUAL(severity_of_sleeps(2, "fdatasync", 30000), D9__WARNING);
}

static void test_timer_that_is_late_behind_what_is_only_a_note_is_one_too(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t us = 500000 * i, took_us = i == 5 ? 120100 : 100;

		story_park(&s, 0, us, 0);
		story_unpark_waited(&s, 0, us + 200000, i == 5 ? 0 : 130000);
		story_wake(&s, us + 200002, 0, 2, TIMER);
		story_poll(&s, 0, us + 200001, us + 200001 + took_us, 1, SLOW);
		if (i == 5)
			story_off_cpu(&s, 0, us + 200001 + took_us, 1, 120000, 0);
		story_poll(&s, 0, us + 200002 + took_us, us + 200010 + took_us, 2, TICK);
	}
	story_park(&s, 0, 5000000, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_finding_of(&s, "blocked-callback")->severity, D9__INFO);
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "timer-late")->check, "timer-late");
	CU_ASSERT_EQUAL(s.findings.by_severity[D9__CRITICAL] + s.findings.by_severity[D9__WARNING], 1);
	CU_ASSERT_TRUE(story_finding(&s, 0)->machine);
	story_free(&s);
}

static void test_time_is_not_told_of_calls_that_only_the_machine_made_long(void)
{
	static const uint64_t taken_us[] = { 0, 900 };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		story_begin(&s);
		story_park(&s, 0, 1, 1);
		story_unpark(&s, 0, 40000, 1);
		for (unsigned k = 0; k < 100; k++)
			story_wake(&s, 40000, 0, 1000 + k, 1);
		for (unsigned k = 0; k < 100; k++) {
			story_poll(&s, 0, 40000 + 1200 * k, 41200 + 1200 * k, 1000 + k, WEB);
			story_off_cpu(&s, 0, 41200 + 1200 * k, 1000 + k, 0, taken_us[i]);
		}
		story_park(&s, 0, 160001, 120001 - 100 * taken_us[i]);
		story_analyse(&s);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "backlog")->check, "backlog");
		CU_ASSERT_EQUAL(story_finding_of(&s, "backlog")->time == NULL, i == 1);
		story_free(&s);
	}
}

static void test_awake_periods_without_cpu_are_found(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 20; i++) {
		story_unpark(&s, 0, 5000 * i, 1 + 100 * i);
		story_poll(&s, 0, 5000 * i + 1, 5000 * i + 3000, 1, SLOW);
		story_park(&s, 0, 5000 * i + 3001, 101 + 100 * i);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "cpu-contention")->check, "cpu-contention");
	story_free(&s);
}

/* A thread that asks by a loop of its own, and sleeps before it asks again. */
/* It is awake without a CPU for 2 ms in |every_ms|. */
static int is_contended(unsigned every_ms)
{
	struct story s;
	int told;

	story_begin(&s);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t us = UINT64_C(1000) * every_ms * i;

		story_unpark(&s, 0, us, 1 + 100 * i);
		story_poll(&s, 0, us + 1, us + 2099, 1, SLOW);
		story_park(&s, 0, us + 2100, 101 + 100 * i);
	}
	story_analyse(&s);
	told = story_finding_of(&s, "cpu-contention")->check[0] != 0;
	story_free(&s);
	return told;
}

static void test_little_time_without_a_cpu_is_not_told(void)
{
	CU_ASSERT_TRUE(is_contended(100));
	CU_ASSERT_FALSE(is_contended(500));
}

static void test_thread_that_sleeps_outside_of_its_loop_is_not_off_the_cpu(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 20; i++) {
		story_park(&s, 1, 5000 * i, 100 + 100 * i);
		story_unpark(&s, 1, 5000 * i + 500, 100 + 100 * i);
		story_poll(&s, 1, 5000 * i + 510, 5000 * i + 520, 1, WEB);
	}
	story_routine(&s, 0, 0, 1000);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "cpu-contention")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "worker-imbalance")->check, "");
	story_free(&s);
}

/* |busy_us| of work in each of |periods| of 1 ms. */
static void work_for(struct story *s, unsigned worker, uint64_t busy_us, const char *place, unsigned periods)
{
	for (unsigned i = 0; i < periods; i++) {
		story_unpark(s, worker, 1000 * i, 1 + busy_us * i);
		story_poll(s, worker, 1000 * i, 1000 * i + busy_us, worker + 1, place);
		story_park(s, worker, 1000 * i + busy_us, 1 + busy_us * (i + 1));
	}
}

static void work(struct story *s, unsigned worker, uint64_t busy_us, const char *place)
{
	work_for(s, worker, busy_us, place, 1100);
}

static void test_one_busy_worker_among_idle_fellows_is_found(void)
{
	struct story s;

	story_begin(&s);
	work(&s, 0, 800, WEB);
	work(&s, 1, 50, WEB);
	work(&s, 2, 60, WEB);
	story_analyse(&s);

	CU_ASSERT(has(story_finding_of(&s, "worker-imbalance")->message, "Worker 0"));
	story_free(&s);
}

/* |n| calls on |worker|, one each 6 ms, each of |us|. */
static void tick_for(struct story *s, unsigned worker, unsigned n, uint64_t us)
{
	story_spawn(s, 0, worker + 1, TICK, "timer");
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = 6000 * (uint64_t)i;

		story_unpark(s, worker, at, us * i);
		story_wake(s, at, 0, worker + 1, TIMER);
		story_poll(s, worker, at, at + us, worker + 1, TICK);
		story_park(s, worker, at + us, us * (i + 1));
	}
}

/* That it wakes the others for nothing is worth a note, and explains nothing. */
static void test_imbalance_does_not_hide_under_idle_wakes_of_the_same_callback(void)
{
	for (unsigned others = 1; others <= 3; others += 2) {
		const char *check = others == 1 ? "worker-imbalance" : "idle-workers";
		struct story s;

		story_begin(&s);
		tick_for(&s, 0, 300, 5000);
		for (unsigned i = 1; i <= others; i++)
			tick_for(&s, i, 300, 8);
		story_analyse(&s);

		CU_ASSERT_EQUAL(story_finding_of(&s, "idle-wakes")->severity, D9__INFO);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, check)->check, check);
		story_free(&s);
	}
}

static void test_imbalance_of_a_moment_is_none(void)
{
	struct story s;

	story_begin(&s);
	work_for(&s, 0, 800, WEB, 900);
	work_for(&s, 1, 50, WEB, 900);
	work_for(&s, 2, 60, WEB, 900);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 0);
	story_free(&s);
}

static void test_idle_worker_with_another_job_is_no_imbalance(void)
{
	struct story s;

	story_begin(&s);
	work(&s, 0, 700, WEB);
	work(&s, 1, 800, WEB);
	work(&s, 2, 10, TICK);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "worker-imbalance")->check, "");
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "long waits for a CPU are a finding about the machine",
	  test_long_waits_for_a_cpu_are_a_finding_about_the_machine },
	{ "preempted calls are not long and the machine is to blame",
	  test_preempted_calls_are_not_long_and_the_machine_is_to_blame },
	{ "backlog is judged without what the machine took from all its calls",
	  test_backlog_is_judged_without_what_the_machine_took_from_all_its_calls },
	{ "loop that is ready behind the program's own thread is the program's matter",
	  test_loop_that_is_ready_behind_the_program_s_own_thread_is_the_program_s_matter },
	{ "thread that is bound and had not the loop's CPU is not named",
	  test_thread_that_is_bound_and_had_not_the_loop_s_cpu_is_not_named },
	{ "limit of the cgroup is told as what made calls long",
	  test_limit_of_the_cgroup_is_told_as_what_made_calls_long },
	{ "call that never gave up the CPU did not sleep", test_call_that_never_gave_up_the_cpu_did_not_sleep },
	{ "few calls that wait as long for others as threads do for a CPU are no warning",
	  test_few_calls_that_wait_as_long_for_others_as_threads_do_for_a_cpu_are_no_warning },
	{ "timer that is late behind what is only a note is one, too",
	  test_timer_that_is_late_behind_what_is_only_a_note_is_one_too },
	{ "time is not told of calls that only the machine made long",
	  test_time_is_not_told_of_calls_that_only_the_machine_made_long },
	{ "awake periods without CPU are found", test_awake_periods_without_cpu_are_found },
	{ "little time without a CPU is not told", test_little_time_without_a_cpu_is_not_told },
	{ "thread that sleeps outside of its loop is not off the CPU",
	  test_thread_that_sleeps_outside_of_its_loop_is_not_off_the_cpu },
	{ "one busy worker among idle fellows is found",
	  test_one_busy_worker_among_idle_fellows_is_found },
	{ "imbalance does not hide under idle wakes of the same callback",
	  test_imbalance_does_not_hide_under_idle_wakes_of_the_same_callback },
	{ "imbalance of a moment is none", test_imbalance_of_a_moment_is_none },
	{ "idle worker with another job is no imbalance",
	  test_idle_worker_with_another_job_is_no_imbalance },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_machine", tests);
}
