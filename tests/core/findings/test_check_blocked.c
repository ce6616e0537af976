/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about calls that were off the CPU: told with their length, or by switches. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SAVE "app+0x100 @ app+0x110"
#define TICK "app+0x200 @ app+0x210"
#define READ "libevent-2.1.so.7+0x300 @ app+0x310"

#define MS(n) ((n) * UINT64_C(1000))

static int has(const char *text, const char *part)
{
	return text && strstr(text, part) != NULL;
}

/* A call of SAVE for 60 ms at 40 ms, which is off the CPU for |off_us| of it; what goes before its end is the test's. */
static void begin(struct story *s)
{
	story_begin(s);
	story_unpark(s, 1, 0, 0);
	story_park(s, 1, 1, 0);
	story_unpark(s, 0, MS(40), 0);
	story_start(s, 0, MS(40) + 1, 1, SAVE);
}

static void end(struct story *s, uint64_t off_us)
{
	story_end(s, 0, MS(100));
	story_off_cpu(s, 0, MS(100), 1, off_us, 0);
	story_park(s, 0, MS(100) + 1, 0);
	story_analyse(s);
}

static void test_a_call_that_was_timed_goes_before_what_a_look_found(void)
{
	struct story s;

	begin(&s);
	story_waited(&s, 0, MS(41), 1, "fsync", MS(50));
	story_asleep(&s, 0, MS(52), 1, "futex: a lock", 0, "");
	end(&s, MS(50));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT(has(story_finding(&s, 0)->advice, "waits for the disk"));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "blocks 50.0 ms in fsync(), 1 of 1 calls");
	CU_ASSERT(has(story_finding(&s, 0)->blocked, "fsync(), 1 time, 50.0 ms in all"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "It waits for the disk"));
	story_free(&s);
}

static void test_a_look_goes_before_calls_that_explain_little_of_the_sleep(void)
{
	struct story s;

	begin(&s);
	story_waited(&s, 0, MS(41), 1, "read", MS(2));
	story_asleep(&s, 0, MS(54), 1, "ioctl(7)", 0, "");
	end(&s, MS(52));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "sleeps 52.0 ms in ioctl(7), 1 of 1 calls");
	CU_ASSERT_PTR_NULL(story_finding(&s, 0)->blocked);
	story_free(&s);
}

static void test_many_short_calls_add_up(void)
{
	struct story s;

	begin(&s);
	for (unsigned i = 0; i < 10; i++)
		story_waited(&s, 0, MS(41) + i * MS(5), 1, "fsync", MS(4));
	end(&s, MS(41));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "blocks 41.0 ms in fsync(), 1 of 1 calls");
	CU_ASSERT(has(story_finding(&s, 0)->blocked, "fsync(), 10 times, 40.0 ms in all"));
	story_free(&s);
}

static void test_who_computes_is_not_accused_of_a_call_that_blocked_for_a_moment(void)
{
	struct story s;

	begin(&s);
	story_waited(&s, 0, MS(41), 1, "read", MS(2));
	end(&s, MS(2));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	CU_ASSERT_PTR_NULL(story_finding(&s, 0)->blocked);
	story_free(&s);
}

static void test_who_held_the_lock_is_named_by_its_worker_or_its_thread(void)
{
	struct story s;

	begin(&s);
	story_waited_for(&s, 0, MS(41), 1, "pthread_mutex_lock", MS(50), 101);
	end(&s, MS(50));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "waits 50.0 ms for a lock, 1 of 1 calls");
	CU_ASSERT(has(story_finding(&s, 0)->message, "waited 50.0 ms for a lock, held by worker 1, while"));
	story_free(&s);

	begin(&s);
	story_waited_for(&s, 0, MS(41), 1, "pthread_mutex_lock", MS(50), 4711);
	end(&s, MS(50));
	CU_ASSERT(has(story_finding(&s, 0)->message, "held by thread 4711"));
	story_free(&s);
}

static void test_holder_of_a_lock_that_had_no_cpu_is_not_accused(void)
{
	struct story s;

	/* It had the lock for most of the wait, and no CPU for nearly all of that. */
	begin(&s);
	story_held_up(&s, 0, MS(41), 1, MS(50), MS(40), MS(39));
	end(&s, MS(50));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	CU_ASSERT_EQUAL(story_callback(&s, SAVE)->time.blocked_ns, 1250000);
	CU_ASSERT_EQUAL(story_callback(&s, SAVE)->time.ready_ns, 48750000);
	story_free(&s);

	/* Of a holder that slept the wait is blamed. */
	begin(&s);
	story_held_up(&s, 0, MS(41), 1, MS(50), MS(40), MS(1));
	end(&s, MS(50));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_EQUAL(story_callback(&s, SAVE)->time.blocked_ns, 50000000);
	story_free(&s);

	/* In a sandbox no call is read. */
	begin(&s);
	story_held_up(&s, 0, MS(41), 1, MS(50), MS(40), MS(40));
	story_end(&s, 0, MS(100));
	story_park(&s, 0, MS(100) + 1, 0);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	story_free(&s);
}

/* By the clock 30 ms in a write, of which the thread slept for next to nothing: the kernel ran
 * something else. */
static void test_preempted_write_is_not_what_a_call_beside_a_lock_waited_for(void)
{
	struct story s;

	begin(&s);
	story_waited(&s, 0, MS(41), 1, "write", MS(30));
	story_waited_for(&s, 0, MS(72), 1, "pthread_mutex_lock", MS(20), 101);
	story_end(&s, 0, MS(100));
	story_off_cpu(&s, 0, MS(100), 1, MS(20) + 100, MS(30));
	story_park(&s, 0, MS(100) + 1, 0);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT(has(story_finding(&s, 0)->brief, "for a lock"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "Hold the lock for a few instructions"));
	CU_ASSERT_FALSE(has(story_finding(&s, 0)->blocked, "write"));
	story_free(&s);

	/* Where it slept in both, the longer one is named. */
	begin(&s);
	story_waited(&s, 0, MS(41), 1, "write", MS(30));
	story_waited_for(&s, 0, MS(72), 1, "pthread_mutex_lock", MS(20), 101);
	end(&s, MS(50));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "blocks 50.0 ms in write(), 1 of 1 calls");
	CU_ASSERT(has(story_finding(&s, 0)->advice, "O_NONBLOCK"));
	story_free(&s);
}

static void test_advice_is_that_of_the_call_which_was_waited_in(void)
{
	static const struct {
		const char *function, *advice;
	} calls[] = {
		{ "pthread_join", "Have the thread hand the result over" },
		{ "pthread_cond_wait", "Let the other thread hand the result over" },
		{ "pthread_mutex_lock", "Hold the lock for a few instructions" },
		{ "futex", "for a result (a future, a latch, a condition)" },
		{ "getaddrinfo", "Look names up in a thread" },
		{ "connect", "Make the socket non-blocking (O_NONBLOCK)" },
		{ "nanosleep", "Set a timer" },
		{ "munmap", "Keep memory and use it again" },
	};

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct story s;

		begin(&s);
		story_waited(&s, 0, MS(41), 1, calls[i].function, MS(50));
		end(&s, MS(50));
		CU_ASSERT(has(story_finding(&s, 0)->advice, calls[i].advice));
		story_free(&s);
	}
}

/* A descriptor that says EAGAIN is non-blocking. */
static void test_no_descriptor_that_is_non_blocking_is_to_be_made_so(void)
{
	struct story s;

	begin(&s);
	story_waited(&s, 0, MS(41), 1, "read", MS(50));
	story_end(&s, 0, MS(100));
	story_off_cpu(&s, 0, MS(100), 1, MS(50), 0);
	story_io(&s, MS(100) + 1, 1, &(struct story_io) { .reads = 10, .again = 9 });
	story_park(&s, 0, MS(100) + 2, 0);
	story_analyse(&s);
	CU_ASSERT_FALSE(has(story_finding(&s, 0)->advice, "O_NONBLOCK"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "Return where a read says EAGAIN"));
	story_free(&s);
}

/* ---- children that start ---- */

static const struct d9__finding *blocked(const struct story *s)
{
	return story_finding_of(s, "blocked-callback");
}

/* In 3 s one call, which is found in clone(). */
static void spawn_once(struct story *s, uint64_t asleep_us)
{
	story_begin(s);
	story_park(s, 0, 0, 0);
	story_unpark(s, 0, MS(40), 0);
	story_start(s, 0, MS(40) + 1, 1, SAVE);
	story_asleep(s, 0, MS(50), 1, "clone", 0, "");
	story_end(s, 0, MS(41) + asleep_us);
	story_off_cpu(s, 0, MS(41) + asleep_us, 1, asleep_us, 0);
	story_park(s, 0, MS(42) + asleep_us, 0);
	story_unpark(s, 0, MS(3000), 0);
	story_park(s, 0, MS(3001), 0);
	story_analyse(s);
}

static void test_sleep_until_a_child_has_started_has_a_remedy_of_its_own(void)
{
	struct story s;

	spawn_once(&s, MS(50));
	CU_ASSERT_STRING_EQUAL(blocked(&s)->brief,
			       "sleeps 50.0 ms in posix_spawn(), 1 of 1 calls");
	CU_ASSERT(has(blocked(&s)->advice, "Let a small helper process"));
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__INFO);
	story_free(&s);
	spawn_once(&s, MS(150));
	CU_ASSERT(has(blocked(&s)->advice, "Let a small helper process"));
	CU_ASSERT(blocked(&s)->severity < D9__INFO);
	story_free(&s);
}

/*
 * 30 calls in 3 s, each asleep for |asleep_us|; each tenth for 80 ms instead, where the machine
 * took |ready_us| of each of the loop's waits.
 */
static void spawn_often(struct story *s, const char *kind, uint64_t asleep_us, uint64_t ready_us)
{
	story_begin(s);
	story_park(s, 0, 0, 0);
	for (unsigned i = 0; i < 30; i++) {
		uint64_t us = MS(100) * (i + 1), long_us = asleep_us;

		if (ready_us && i % 10 == 0)
			long_us = MS(80);
		story_unpark_waited(s, 0, us, ready_us);
		story_start(s, 0, us, 1, SAVE);
		story_spawn(s, us + 1, 10 + i, TICK, kind);
		story_end(s, 0, us + long_us + 100);
		story_off_cpu(s, 0, us + long_us + 100, 1, long_us, 0);
		story_park(s, 0, us + long_us + 100, 0);
	}
	story_analyse(s);
}

static void test_callback_whose_child_the_loop_waits_for_sleeps_for_its_start(void)
{
	struct story s;

	spawn_often(&s, "child", MS(12), 0);
	CU_ASSERT(has(blocked(&s)->brief, "sleeps 12.0 ms for a child to start"));
	CU_ASSERT(has(blocked(&s)->advice, "Let a small helper process"));
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__WARNING);
	story_free(&s);

	/* A small share of a quiet loop's time is a note, and so are few long ones of a machine on
	 * which threads wait for a CPU. */
	spawn_often(&s, "child", MS(8), 0);
	CU_ASSERT(has(blocked(&s)->advice, "Let a small helper process"));
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__INFO);
	story_free(&s);
	spawn_often(&s, "child", MS(8), MS(10));
	CU_ASSERT(has(blocked(&s)->advice, "Let a small helper process"));
	CU_ASSERT_EQUAL(blocked(&s)->severity, D9__INFO);
	story_free(&s);
	spawn_often(&s, "child", MS(15), MS(10));
	CU_ASSERT(blocked(&s)->severity < D9__INFO);
	story_free(&s);

	/* If the program read, that would be told: it is GLib, from a pipe to the child. */
	for (unsigned told = 0; told < 2; told++) {
		story_begin(&s);
		story_say(&s, "source.blocking", "on");
		story_park(&s, 0, 0, 0);
		story_unpark(&s, 0, MS(40), 0);
		story_start(&s, 0, MS(40), 1, SAVE);
		story_spawn(&s, MS(40) + 1, 2, TICK, "child");
		story_asleep(&s, 0, MS(50), 1, "read(5)", 0, "");
		if (told)
			story_waited(&s, 0, MS(51), 1, "read", MS(40));
		story_end(&s, 0, MS(101));
		story_off_cpu(&s, 0, MS(101), 1, MS(60), 0);
		story_park(&s, 0, MS(101), 0);
		story_analyse(&s);
		CU_ASSERT(has(blocked(&s)->brief, told ? "in read()" : "for a child to start"));
		story_free(&s);
	}

	/* Other tasks say nothing of children. */
	spawn_often(&s, "timer", MS(12), 0);
	CU_ASSERT(has(blocked(&s)->brief, "sleeps 12.0 ms inside"));
	CU_ASSERT(has(blocked(&s)->advice, "Let the loop wait instead"));
	story_free(&s);
}

/* 20 switches in calls of one slice, in 2 s, and a sleep of 10 ms, which is told with its length beside its switch. */
static void slice_story(struct story *s, const char *duty)
{
	story_begin(s);
	if (duty)
		story_say(s, "sched.switch_duty", duty);
	story_park(s, 0, 0, 0);
	for (unsigned i = 0; i < 20; i++) {
		story_start(s, 0, 4000 * i + 1000, 1, SAVE);
		story_left_cpu(s, 0, 4000 * i + 2000, 1);
		story_end(s, 0, 4000 * i + 3000);
	}
	story_start(s, 0, 90000, 1, SAVE);
	story_left_cpu(s, 0, 90010, 0);
	story_waited(s, 0, 90010, 1, "fsync", 10000);
	story_left_cpu(s, 0, 90020, 1);
	story_end(s, 0, 101000);
	story_park(s, 0, 2000000, 0);
	story_analyse(s);
}

static void test_switches_of_a_slice_stand_for_those_of_the_whole_time(void)
{
	const struct d9__samples *samples;
	struct story s;

	slice_story(&s, "0.01");
	samples = &s.analysis.samples;
	CU_ASSERT_DOUBLE_EQUAL(d9__analysis_switch_share(&s.analysis), 0.05, 0.0001);
	CU_ASSERT_EQUAL(samples->off, 22);
	CU_ASSERT_EQUAL(d9__samples_estimate(samples->off, samples->switches, 0.05), 402);
	CU_ASSERT(has(story_finding_of(&s, "blocking")->brief, "about 400 times"));
	CU_ASSERT(has(story_finding_of(&s, "blocking")->message, "measured in 5.0 % of the time, scaled"));
	story_free(&s);

	/* Without that figure every switch counts as recorded: the share is 1. */
	slice_story(&s, NULL);
	CU_ASSERT_EQUAL(d9__analysis_switch_share(&s.analysis), 1);
	CU_ASSERT(has(story_finding_of(&s, "blocking")->brief, "runs, 20 times"));
	story_free(&s);
}

/* The library's call at 40 ms takes connections for 61 ms: SAVE runs for 30 ms and for 20, and
 * reads for most of it. */
static void burst(struct story *s, uint64_t blocked_us)
{
	story_begin(s);
	story_unpark(s, 1, 0, 0);
	story_park(s, 1, 1, 0);
	story_unpark(s, 0, MS(40), 0);
	story_start(s, 0, MS(40), 1, READ);
	story_enter(s, 0, MS(41), 7, SAVE);
	story_left_cpu(s, 0, MS(42), 0);
	story_waited(s, 0, MS(42), 1, "read", MS(28));
	story_exit(s, 0, MS(71), 7, SAVE);
	story_enter(s, 0, MS(72), 8, SAVE);
	story_left_cpu(s, 0, MS(73), 0);
	story_waited(s, 0, MS(73), 1, "read", MS(18));
	story_exit(s, 0, MS(92), 8, SAVE);
	story_end(s, 0, MS(101));
	story_off_cpu(s, 0, MS(101), 1, blocked_us, 0);
	story_park(s, 0, MS(101) + 1, 0);
	story_analyse(s);
}

static void test_sleep_in_a_library_is_that_of_the_function_and_never_longer(void)
{
	/* As was told, less, and more, which falls on both by their length; the whole call. */
	static const struct {
		uint64_t blocked_us, slept_us;
	} cases[] = { { 46000, 46000 }, { 23000, 23000 }, { 49000, 46800 }, { 61000, 50000 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct d9__stall *stall;
		struct story s;

		burst(&s, cases[i].blocked_us);
		stall = story_callback(&s, SAVE)->stalls[0].stall;
		CU_ASSERT_EQUAL(d9__stall_slept_ns(stall), 1000 * cases[i].slept_us);
		CU_ASSERT_EQUAL(stall->culprit_ns, 50000000);
		CU_ASSERT_EQUAL(stall->culprit_runs, 2);
		CU_ASSERT_EQUAL(story_callback(&s, READ)->n_stalls, 0);
		story_free(&s);
	}
}

static void test_sleep_in_calls_of_a_library_is_one_finding(void)
{
	struct story s;

	burst(&s, 46000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "blocks 46.0 ms in 2 calls, in read(), once");
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text,
		      "slept for 46.0 ms of 50.0 ms in 2 calls, called from"));
	for (size_t i = 1; i < s.findings.n; i++)
		CU_ASSERT_STRING_NOT_EQUAL(story_finding(&s, i)->name, "libevent-2.1.so.7+0x300");
	/* The function has the stacks of its sleeps, too: none is told as off the CPU beside it. */
	CU_ASSERT_EQUAL(story_callback(&s, SAVE)->off_told, 2);
	CU_ASSERT_EQUAL(story_callback(&s, READ)->off_told, 0);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocking")->check, "");
	story_free(&s);
}

/*
 * Each millisecond a call of 500 us, of which the thread runs for 50; |sleeps|: of all threads.
 * Others have the CPU for |taken_us| of each wait.
 */
static void short_sleeps(struct story *s, uint64_t sleeps, bool queue_known, uint64_t taken_us)
{
	story_begin(s);
	story_sleeps(s, 0, 0);
	if (queue_known)
		story_run_queue(s, 0, 1);
	story_unpark(s, 0, 1, 0);
	for (uint64_t i = 0; i < 1500; i++) {
		story_poll(s, 0, 1000 * i + 10, 1000 * i + 510, 1, SAVE);
		if (taken_us)
			story_put_aside_since(s, 0, 1000 * i + 510, 1000 * i + 520, taken_us);
		story_park(s, 0, 1000 * i + 520, 60 * (i + 1));
		story_unpark(s, 0, 1000 * i + 1000, 60 * (i + 1));
	}
	if (queue_known)
		story_run_queue(s, 1500000, 1);
	story_sleeps(s, 1500000, sleeps);
	story_analyse(s);
}

static void test_calls_that_are_too_short_to_tell_that_they_sleep_do_together(void)
{
	struct story s;

	short_sleeps(&s, 4000, true, 0);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT(has(story_finding(&s, 0)->brief, "sleeps 44 % of the loop's time, 44"));
	CU_ASSERT(has(story_finding(&s, 0)->brief, " us each, 1,500 calls"));
	story_free(&s);

	/* Less than a second of its own, of more than one. */
	short_sleeps(&s, 4000, true, 470);
	CU_ASSERT(has(story_finding_of(&s, "blocked-callback")->brief, "of the loop's time, 44"));
	story_free(&s);

	/* Others may have had the CPU, or the host. */
	short_sleeps(&s, 4000, false, 0);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	story_free(&s);
	short_sleeps(&s, 700, true, 0);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
	story_free(&s);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "calls that are too short to tell that they sleep do together",
		  test_calls_that_are_too_short_to_tell_that_they_sleep_do_together },
		{ "holder of a lock that had no CPU is not accused",
		  test_holder_of_a_lock_that_had_no_cpu_is_not_accused },
		{ "preempted write is not what a call beside a lock waited for",
		  test_preempted_write_is_not_what_a_call_beside_a_lock_waited_for },
		{ "advice is that of the call which was waited in",
		  test_advice_is_that_of_the_call_which_was_waited_in },
		{ "no descriptor that is non-blocking is to be made so",
		  test_no_descriptor_that_is_non_blocking_is_to_be_made_so },
		{ "a call that was timed goes before what a look found",
		  test_a_call_that_was_timed_goes_before_what_a_look_found },
		{ "a look goes before calls that explain little of the sleep",
		  test_a_look_goes_before_calls_that_explain_little_of_the_sleep },
		{ "many short calls add up", test_many_short_calls_add_up },
		{ "who computes is not accused of a call that blocked for a moment",
		  test_who_computes_is_not_accused_of_a_call_that_blocked_for_a_moment },
		{ "who held the lock is named, by its worker or its thread",
		  test_who_held_the_lock_is_named_by_its_worker_or_its_thread },
		{ "sleep until a child has started has a remedy of its own",
		  test_sleep_until_a_child_has_started_has_a_remedy_of_its_own },
		{ "callback whose child the loop waits for sleeps for its start",
		  test_callback_whose_child_the_loop_waits_for_sleeps_for_its_start },
		{ "switches of a slice stand for those of the whole time",
		  test_switches_of_a_slice_stand_for_those_of_the_whole_time },
		{ "sleep in calls of a library is that of the function, and never longer than it",
		  test_sleep_in_a_library_is_that_of_the_function_and_never_longer },
		{ "sleep in calls of a library is one finding",
		  test_sleep_in_calls_of_a_library_is_one_finding },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("findings_blocked", tests);
}
