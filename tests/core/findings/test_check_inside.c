/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about what calls do inside, what is done outside of them, and what the process holds. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define ASK   "app+0x100 @ app+0x110"
#define TICK  "app+0x200 @ app+0x210"
#define OTHER "app+0x300 @ app+0x310"
#define READ  "libevent-2.1.so.7+0x300 @ libevent-2.1.so.7+0x310"

#define MS(n) ((n) * UINT64_C(1000))
#define KIB   1024

#define RESUMPTION 8

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static void call(struct story *s, uint64_t at_us, uint64_t us, unsigned task, const char *place)
{
	story_unpark(s, 0, at_us, 0);
	story_poll(s, 0, at_us + 1, at_us + 1 + us, task, place);
	story_park(s, 0, at_us + us + 2, 0);
}

/* ---- a loop inside ---- */

/* The wait of the loop ends, and for the last |taken_us| of it the thread was ready and had no CPU. */
static void wake_up(struct story *s, uint64_t us, uint64_t taken_us)
{
	if (taken_us)
		story_unpark_waited(s, 0, us, taken_us);
	else
		story_unpark(s, 0, us, 0);
}

/*
 * ASK runs a loop for 300 ms, in which TICK runs once, if |ticks|; meanwhile OTHER is ready, if |waits|.  If |busy|, others
 * have the CPU for most of the time.
 */
static void nested_on_a_machine(struct story *s, int ticks, int waits, bool busy)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, MS(40), 0);
	story_poll(s, 0, MS(40) + 1, MS(42), 1, ASK);
	story_park(s, 0, MS(42) + 1, 0);
	if (waits)
		story_wake(s, MS(60), 0, 3, D9__WAKE_FD);
	wake_up(s, MS(200), busy ? MS(155) : 0);
	if (ticks)
		story_poll(s, 0, MS(200) + 1, MS(201), 2, TICK);
	story_park(s, 0, MS(201) + 1, 0);
	wake_up(s, MS(340), busy ? MS(136) : 0);
	story_poll(s, 0, MS(340) + 1, MS(340) + 5, 2, TICK);
	story_wake(s, MS(342), 1, 1, RESUMPTION);
	story_poll(s, 0, MS(342), MS(343), 1, ASK);
	if (waits)
		story_poll(s, 0, MS(343) + 1, MS(343) + 10, 3, OTHER);
	story_park(s, 0, MS(344), 0);
	story_analyse(s);
}

static void nested(struct story *s, int ticks, int waits)
{
	nested_on_a_machine(s, ticks, waits, false);
}

/* A synchronous call of GIO's: a wait that is none of the loop's, and then the inner loop for the answer alone. */
static void test_synchronous_call_that_ends_in_a_loop_is_a_wait_and_no_inner_loop(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, MS(40), 0);
	story_start(&s, 0, MS(40) + 1, 1, ASK);
	story_waited(&s, 0, MS(91), 1, "poll", MS(50));
	story_end(&s, 0, MS(91) + 1);
	story_park(&s, 0, MS(91) + 1, 0);
	story_unpark(&s, 0, MS(91) + 10, 0);
	story_poll(&s, 0, MS(91) + 11, MS(91) + 20, 2, TICK);
	story_wake(&s, MS(91) + 21, 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(91) + 21, MS(91) + 30, 1, ASK);
	story_off_cpu(&s, 0, MS(91) + 30, 1, 0, 0);
	story_park(&s, 0, MS(92), 0);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief, "blocks 50.0 ms in poll(), 1 of 1 calls");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
	story_free(&s);
}

static void test_callback_that_runs_a_loop_is_named_with_its_open_and_its_own_time(void)
{
	for (int ticks = 0; ticks < 2; ticks++) {
		struct story s;

		nested(&s, ticks, 0);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nested-loop");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
		CU_ASSERT(has(story_finding(&s, 0)->message, "runs a loop inside: open for 303 ms, 3.00 ms its own"));
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "blocked-callback")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
		story_free(&s);
	}
}

static void test_time_that_the_machine_took_makes_a_loop_inside_no_worse(void)
{
	for (int busy = 0; busy < 2; busy++) {
		struct story s;

		nested_on_a_machine(&s, 1, 1, busy);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "nested-loop");
		CU_ASSERT_EQUAL(story_finding_of(&s, "nested-loop")->severity, busy ? D9__WARNING : D9__CRITICAL);
		/* Nor the wait behind it. */
		CU_ASSERT_EQUAL(s.analysis.latency.woken_over_5ms, 1);
		CU_ASSERT_EQUAL(s.analysis.latency.woken_over_50ms, !busy);
		story_free(&s);
	}
}

/*
 * ASK runs a loop ten times, which ends after |usual_us|, and once after |long_us|, when others have the CPU if |busy|: the
 * wait was measured elsewhere.
 */
static enum d9__severity of_one_long_loop(uint64_t usual_us, uint64_t long_us, bool waits, bool busy)
{
	enum d9__severity severity;
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t us = MS(100) * (i + 1), took_us = i == 5 ? long_us : usual_us;

		wake_up(&s, us, busy && i == 2 ? MS(40) : 0);
		if (waits)
			story_wake(&s, us, 0, 3, D9__WAKE_FD);
		story_poll(&s, 0, us + 1, us + 51, 1, ASK);
		story_park(&s, 0, us + 52, 0);
		story_unpark(&s, 0, us + took_us, 0);
		story_poll(&s, 0, us + took_us + 1, us + took_us + 3, 2, TICK);
		story_wake(&s, us + took_us + 4, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + took_us + 4, us + took_us + 10, 1, ASK);
		if (waits)
			story_poll(&s, 0, us + took_us + 11, us + took_us + 20, 3, OTHER);
		story_park(&s, 0, us + took_us + 21, 0);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "nested-loop");
	severity = story_finding_of(&s, "nested-loop")->severity;
	story_free(&s);
	return severity;
}

static void test_one_long_loop_inside_among_short_ones_is_no_warning_if_threads_had_no_cpu_for_as_long(void)
{
	CU_ASSERT_EQUAL(of_one_long_loop(200, MS(16), true, false), D9__WARNING);
	CU_ASSERT_EQUAL(of_one_long_loop(200, MS(16), true, true), D9__INFO);
	CU_ASSERT_EQUAL(of_one_long_loop(MS(6), MS(28), true, false), D9__WARNING);
	CU_ASSERT_EQUAL(of_one_long_loop(MS(6), MS(28), true, true), D9__INFO);
	/* No other waits: it may have served them. */
	CU_ASSERT_EQUAL(of_one_long_loop(MS(6), MS(28), false, false), D9__INFO);
	/* One that is long without it is told, though no other waits. */
	CU_ASSERT_EQUAL(of_one_long_loop(MS(45), MS(45), false, false), D9__WARNING);
	CU_ASSERT_EQUAL(of_one_long_loop(MS(45), MS(68), false, true), D9__WARNING);
	/* Its calls of the usual 30 ms make others wait, too. */
	CU_ASSERT_EQUAL(of_one_long_loop(MS(30), MS(53), true, true), D9__WARNING);
	/* The machine kept the thread waiting for less than the call took longer. */
	CU_ASSERT_EQUAL(of_one_long_loop(200, MS(95), true, true), D9__CRITICAL);
}

/* Its own time is that of the call which was open longest, though its other calls were longer in themselves. */
static void test_callback_that_runs_a_loop_once_keeps_the_own_time_of_that_call(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, MS(1), MS(3), 1, ASK);
	story_poll(&s, 0, MS(200), MS(201), 2, TICK);
	story_wake(&s, MS(301), 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(301), MS(302), 1, ASK);
	for (unsigned i = 0; i < 10; i++)
		call(&s, MS(400) + i * MS(10), MS(5), 1, ASK);
	story_analyse(&s);

	CU_ASSERT(has(story_finding_of(&s, "nested-loop")->message, "runs a loop inside: open for 301 ms, 3.00 ms its own"));
	story_free(&s);
}

static void test_what_stood_still_behind_an_inner_loop_is_its_effect(void)
{
	struct story s;

	nested(&s, 1, 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nested-loop");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "wake-delay")->check, "wake-delay");
	story_free(&s);
}

/* What an adapter tells of a loop that is asked without being let wait is what that calls: here once each 20 ms. */
static void test_loop_that_is_polled_inside_a_callback_is_told_and_its_time_is_no_computation(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, MS(40), 0);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t us = MS(40) + MS(20) * i;

		if (i)
			story_wake(&s, us + 1, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + 1, us + MS(20) - 10, 1, ASK);
		story_poll(&s, 0, us + MS(20) - 10, us + MS(20) - 5, 2, TICK);
	}
	story_wake(&s, MS(120), 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(120), MS(121), 1, ASK);
	story_park(&s, 0, MS(121), MS(80));
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 1);
	finding = story_finding(&s, 0);
	CU_ASSERT_STRING_EQUAL(finding->check, "nested-loop");
	CU_ASSERT_STRING_EQUAL(finding->brief, "polls a loop inside without waiting: open for 81.0 ms");
	CU_ASSERT(has(finding->advice, "EVLOOP_NONBLOCK, EVRUN_NOWAIT, g_main_context_iteration(FALSE)"));
	story_free(&s);
}

/* 30 ms each, five times a second: no call of this loop is unusual, and none waits. */
static void test_loop_that_is_polled_often_is_a_warning_for_the_cpu_that_it_keeps_busy(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	for (unsigned n = 0; n < 10; n++) {
		uint64_t us = MS(40) + MS(200) * n;

		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us + 1, us + MS(15), 1, ASK);
		story_poll(&s, 0, us + MS(15), us + MS(15) + 5, 2, TICK);
		story_wake(&s, us + MS(15) + 6, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + MS(15) + 6, us + MS(30), 1, ASK);
		story_park(&s, 0, us + MS(30) + 1, MS(30));
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nested-loop");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	story_free(&s);
}

static void test_inner_loop_that_got_no_cpu_when_it_woke_is_no_long_one(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t us = MS(40) + MS(50) * i;

		story_unpark(&s, 0, us, 0);
		story_poll(&s, 0, us + 1, us + 100, 1, ASK);
		story_park(&s, 0, us + 101, 0);
		story_unpark_waited(&s, 0, us + MS(15), MS(14));
		story_poll(&s, 0, us + MS(15) + 1, us + MS(15) + 5, 2, TICK);
		story_wake(&s, us + MS(15) + 6, 1, 1, RESUMPTION);
		story_poll(&s, 0, us + MS(15) + 6, us + MS(15) + 10, 1, ASK);
		story_park(&s, 0, us + MS(15) + 11, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "");
	story_free(&s);
}

static void test_short_inner_loop_is_not_told(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, MS(40), 0);
	story_poll(&s, 0, MS(40) + 1, MS(40) + 20, 1, ASK);
	story_park(&s, 0, MS(40) + 21, 0);
	story_unpark(&s, 0, MS(41), 0);
	story_wake(&s, MS(41) + 2, 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(41) + 2, MS(41) + 10, 1, ASK);
	story_park(&s, 0, MS(41) + 11, 0);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "nested-loop")->check, "");
	story_free(&s);
}

/* ---- where it sleeps ---- */

static void asleep_in(struct story *s, const char *library, const char *syscall, unsigned running, const char *wchan)
{
	story_begin(s);
	if (library)
		story_say(s, library, "poll=full");
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, MS(40), 0);
	story_start(s, 0, MS(40) + 1, 1, ASK);
	story_asleep(s, 0, MS(50), 1, syscall, running, wchan);
	story_end(s, 0, MS(100) + 1);
	story_off_cpu(s, 0, MS(100) + 1, 1, MS(58), MS(1));
	story_park(s, 0, MS(100) + 2, 0);
	story_analyse(s);
}

static void asleep(struct story *s, const char *syscall, unsigned running, const char *wchan)
{
	asleep_in(s, NULL, syscall, running, wchan);
}

static void test_blocked_callback_is_told_with_the_call_in_which_it_sleeps(void)
{
	static const struct {
		const char *syscall, *wchan, *text, *advice;
	} sleeps[] = {
		{ "fdatasync(7)", "", "waited 58.0 ms in fdatasync(7) while",
		  "waits for the disk" },
		{ "futex: a lock", "futex_wait", "waited 58.0 ms waiting for a lock while",
		  "Hold the lock for a few instructions" },
		{ "nanosleep()", "", "in nanosleep() while", "Set a timer" },
		{ "poll()", "", "in poll() while", "getaddrinfo()" },
		{ "read(5)", "pipe_read", "in read(5) while",
		  "Make the descriptor non-blocking (O_NONBLOCK)" },
		{ "write(2)", "pipe_write", "in write(2) while", "if nobody reads the log" },
		{ "fflush()", "", "in fflush() while", "not below stdio" },
		{ "fprintf()", "", "in fprintf() while", "not below stdio" },
		{ "fgets()", "", "in fgets() while", "stdio waits in it for what has not come" },
		{ "popen stream()", "", "in popen stream() while", "waits for a child" },
		{ "", "do_wait", "in do_wait while", "waits for a child" },
		{ "syscall 999", "", "in syscall 999 while", "Let the loop wait instead" },
		{ "fork()", "", "in fork() while", "Let the loop wait instead" },
	};

	for (unsigned i = 0; i < sizeof(sleeps) / sizeof(sleeps[0]); i++) {
		struct story s;

		asleep(&s, sleeps[i].syscall, 0, sleeps[i].wchan);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "blocked-callback");
		CU_ASSERT(has(story_finding(&s, 0)->message, sleeps[i].text));
		CU_ASSERT(has(story_finding(&s, 0)->advice, sleeps[i].advice));
		story_free(&s);
	}
}

/* By the names under which the recorder tells system calls. */
static void test_advice_for_who_waits_for_a_child_is_what_its_loop_library_has(void)
{
	static const struct {
		const char *library, *advice;
	} loops[] = {
		{ "loop.libevent.capabilities", "an event on SIGCHLD (evsignal_new())" },
		{ "loop.libev.capabilities", "ev_child_start()" },
		{ "loop.glib.capabilities", "g_child_watch_add()" },
		{ NULL, "(evsignal_new() on SIGCHLD, ev_child, g_child_watch_add())" },
	};
	static const char *const names[] = { "waitpid()", "waitid()" };

	for (unsigned i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
		for (unsigned j = 0; j < 2; j++) {
			struct story s;

			asleep_in(&s, loops[i].library, names[j], 0, "do_wait");
			CU_ASSERT(has(story_finding(&s, 0)->advice, loops[i].advice));
			story_free(&s);
		}
}

static void test_what_the_recorder_calls_system_calls_has_advice_of_its_own(void)
{
	static const char *const names[] = { "read(5)",	 "pread(5)", "recv(5)",	  "write(2)",  "pwrite(5)", "send(5)",
					     "poll()",	 "select()", "accept(4)", "connect(6)", "open()",   "stat()",
					     "access()", "readdir(5)", "sigsuspend()", "flock(3)", "fsync(3)" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct story s;

		asleep(&s, names[i], 0, "");
		CU_ASSERT_FALSE(has(story_finding(&s, 0)->advice, "Look for poll(), select()"));
		story_free(&s);
	}
}

static void test_sample_of_a_thread_that_runs_says_nothing_about_sleep(void)
{
	struct story s;

	asleep(&s, "", 1, "0");
	CU_ASSERT(has(story_finding(&s, 0)->message, "waited 58.0 ms for something while"));
	story_free(&s);
}

static void test_sample_of_an_earlier_call_is_not_of_this_one(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, MS(40), 0);
	story_start(&s, 0, MS(40) + 1, 1, ASK);
	story_end(&s, 0, MS(55));
	story_off_cpu(&s, 0, MS(55), 1, MS(14), 0);
	story_asleep(&s, 0, MS(55) + 1, 1, "read(5)", 0, "");
	story_start(&s, 0, MS(60) + 1, 1, ASK);
	story_end(&s, 0, MS(90));
	story_off_cpu(&s, 0, MS(90), 1, MS(29), 0);
	story_park(&s, 0, MS(91), 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, ASK)->n_asleep, 0);
	story_free(&s);
}

/* ---- what it computes ---- */

static void compute(struct story *s, unsigned n, uint64_t us, uint64_t faults, uint64_t user_us, uint64_t system_us)
{
	story_begin(s);
	for (unsigned i = 0; i < n; i++) {
		call(s, i * MS(50), us, 1, ASK);
		story_figures(s, 0, i * MS(50) + us + 2, 1, faults, user_us, system_us);
	}
	story_analyse(s);
}

static void test_callback_with_thousands_of_page_faults_a_call_is_told_to_keep_its_buffer(void)
{
	static const struct {
		uint64_t us, faults;
	} shapes[] = { { MS(12), 16000 }, { MS(3), 4000 }, { MS(60), 100000 } };

	for (unsigned i = 0; i < 3; i++) {
		struct story s;

		compute(&s, 20, shapes[i].us, shapes[i].faults, shapes[i].us / 4, shapes[i].us / 2);
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "page-faults");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT(has(story_finding(&s, 0)->message, "page faults a call"));
		CU_ASSERT(has(story_finding(&s, 0)->brief, "keep the buffer"));
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "long-callback")->check, "");
		story_free(&s);
	}
}

static void test_page_faults_are_judged_without_what_the_kernel_took(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t end_us = i * MS(100) + MS(60);

		story_poll(&s, 0, i * MS(100), end_us, 1, ASK);
		story_off_cpu(&s, 0, end_us, 1, 0, MS(40));
		story_figures(&s, 0, end_us, 1, 30000, MS(5), MS(15));
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "page-faults")->check, "page-faults");
	CU_ASSERT_PTR_NOT_NULL(strstr(story_finding_of(&s, "page-faults")->message, "takes 20.0 ms each time"));
	CU_ASSERT_EQUAL(story_finding_of(&s, "page-faults")->severity, D9__WARNING);
	story_free(&s);
}

static void test_few_page_faults_or_faults_of_few_calls_are_no_finding(void)
{
	struct story s;

	compute(&s, 20, MS(12), 500, MS(6), MS(6));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "page-faults")->check, "");
	story_free(&s);
	compute(&s, 2, MS(12), 16000, MS(6), MS(6));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "page-faults")->check, "");
	story_free(&s);
	/* They cost less than a twentieth of what it computes. */
	compute(&s, 20, MS(48), 1200, MS(46), MS(2));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "page-faults")->check, "");
	story_free(&s);
}

static void test_long_callback_whose_time_goes_into_system_calls_is_told_so(void)
{
	struct story s;

	compute(&s, 20, MS(20), 10, MS(4), MS(15));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT(has(story_finding(&s, 0)->advice, "most of that in the kernel"));
	story_free(&s);
	compute(&s, 20, MS(20), 10, MS(15), MS(4));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT(!has(story_finding(&s, 0)->advice, "most of that in the kernel"));
	story_free(&s);
}

/* ---- outside ---- */

static void source(struct story *s, const char *phase, uint64_t total_us, uint64_t max_us)
{
	story_begin(s);
	for (unsigned i = 0; i < 50; i++) {
		call(s, i * MS(100), 100, 1, ASK);
		story_source_time(s, 0, i * MS(100) + MS(50), 1, phase, 10, total_us / 50, max_us);
	}
	story_analyse(s);
}

static void test_time_in_a_sources_check_is_told_with_its_share(void)
{
	static const char *const phases[] = { "check", "prepare" };

	for (unsigned i = 0; i < 2; i++) {
		struct story s;

		source(&s, phases[i], MS(4400), MS(90));
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "source-time");
		CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
		CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__CRITICAL);
		CU_ASSERT(has(story_finding(&s, 0)->message, "4.40 s of the 4.90 s lie in"));
		CU_ASSERT(has(story_finding(&s, 0)->message, phases[i]));
		story_free(&s);
	}
}

static void test_source_that_looks_and_is_done_is_not_told(void)
{
	struct story s;

	/* Once the kernel ran something else in the middle. */
	story_begin(&s);
	for (unsigned i = 0; i < 50; i++) {
		call(&s, i * MS(100), 100, 1, ASK);
		story_source_time(&s, 0, i * MS(100) + MS(50), 1, "check", 10, i == 7 ? MS(40) : 20, i == 7 ? MS(40) : 4);
	}
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "source-time")->check, "");
	story_free(&s);

	source(&s, "check", MS(20), 200);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "source-time")->check, "");
	story_free(&s);
}

/* |us| of CPU time in each round of 10 ms, 100 us of them in a callback. */
static void overhead(struct story *s, uint64_t us)
{
	story_begin(s);
	story_say(s, "loop.libevent.capabilities", "poll=full,park=on,wake=full,task_end=partial");
	for (unsigned i = 0; i < 200; i++) {
		story_unpark(s, 0, i * MS(10), i * us);
		story_poll(s, 0, i * MS(10) + 10, i * MS(10) + 110, 1, ASK);
		story_park(s, 0, i * MS(10) + us, i * us + us);
	}
	story_analyse(s);
}

static void test_loop_that_is_asked_again_and_again_is_told_to_be_let_wait(void)
{
	struct story s;

	overhead(&s, MS(10) - 1);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "loop-overhead");
	CU_ASSERT(has(story_finding(&s, 0)->brief, "never waits"));
	CU_ASSERT(has(story_finding(&s, 0)->advice, "Let the loop wait"));
	story_free(&s);
}

static void test_time_of_the_loop_itself_is_told_as_that(void)
{
	struct story s;

	overhead(&s, MS(8));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "loop-overhead");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT(has(story_finding(&s, 0)->message, "outside of callbacks"));
	story_free(&s);
	overhead(&s, MS(2));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "loop-overhead")->check, "");
	story_free(&s);
}

/* Ten waits of 100 ms with |us| of CPU time in each. */
static void wait_with(struct story *s, uint64_t us)
{
	story_begin(s);
	for (unsigned i = 0; i < 10; i++) {
		story_unpark(s, 0, i * MS(101), i * us);
		story_poll(s, 0, i * MS(101) + 10, i * MS(101) + 110, 1, ASK);
		story_park(s, 0, i * MS(101) + MS(1), i * us + 100);
	}
	story_unpark(s, 0, 10 * MS(101), 10 * us);
	story_analyse(s);
}

static void test_handler_that_works_while_the_loop_sleeps_is_told(void)
{
	struct story s;

	wait_with(&s, MS(30));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "busy-wait");
	CU_ASSERT(has(story_finding(&s, 0)->message, "inside of 10 waits, up to 29.9 ms in one"));
	story_free(&s);
	/* To look at very many descriptors takes time, too. */
	wait_with(&s, MS(1));
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "busy-wait")->check, "");
	story_free(&s);
}

/* ---- what it holds ---- */

/* ASK is called 100 times a second and TICK 10 times; each second the process holds what |held| says. */
static void hold(struct story *s, unsigned seconds, void (*held)(unsigned second, uint64_t *kib, uint64_t *fds))
{
	uint64_t kib, fds;

	story_begin(s);
	for (unsigned i = 0; i <= seconds; i++) {
		held(i, &kib, &fds);
		story_held(s, i * MS(1000), kib, fds);
		for (unsigned j = 0; j < 100 && i < seconds; j++) {
			call(s, i * MS(1000) + j * MS(10) + 1, 400, 1, ASK);
			if (j % 10 == 5)
				call(s, i * MS(1000) + j * MS(10) + 1000, 50, 2, TICK);
		}
	}
	story_analyse(s);
}

static void more_memory(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 20 * KIB + second * 1600;
	*fds = 12;
}

static void more_descriptors(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 20 * KIB;
	*fds = 12 + 10 * second;
}

static void little_more_memory(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 200 * KIB + second * 30;
	*fds = 12 + second / 5;
}

/* It goes up and down again, and is higher at the end. */
static void memory_up_and_down(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 200 * KIB + (second % 7) * 400 + second * 30;
	*fds = 12 + second % 13;
}

/* A cache that is full after half a minute. */
static void memory_until_full(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 200 * KIB + (second < 35 ? second : 35) * 100;
	*fds = 12;
}

static void test_growth_along_a_line_is_told_in_a_minute_however_slow_it_is(void)
{
	struct story s;

	hold(&s, 70, little_more_memory);
	CU_ASSERT(has(story_finding_of(&s, "memory-growth")->message, "30.0 KiB a second"));
	CU_ASSERT(
		has(story_finding_of(&s, "memory-growth")->message, "with the calls of app+0x100"));
	CU_ASSERT(has(story_finding_of(&s, "descriptor-growth")->message, "0.2 a second"));
	story_free(&s);
	hold(&s, 50, little_more_memory);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "descriptor-growth")->check, "");
	story_free(&s);
}

static void test_memory_that_lies_on_no_line_or_stays_at_last_does_not_grow(void)
{
	struct story s;

	hold(&s, 70, memory_up_and_down);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
	story_free(&s);
	hold(&s, 70, memory_until_full);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
	story_free(&s);
}

static void test_memory_that_grows_is_told_with_the_callback_that_does_most(void)
{
	struct story s;

	hold(&s, 5, more_memory);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "memory-growth");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT(has(story_finding(&s, 0)->message, "from 20.0 MiB to 27.8 MiB in 5.00 s"));
	CU_ASSERT(has(story_finding(&s, 0)->message, "16.0 KiB each"));
	story_free(&s);
}

static void test_descriptors_that_grow_are_told_with_the_callback_called_as_often(void)
{
	struct story s;

	hold(&s, 6, more_descriptors);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "descriptor-growth");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x200");
	CU_ASSERT(has(story_finding(&s, 0)->message, "from 12 to 72 in 6.00 s"));
	CU_ASSERT(has(story_finding(&s, 0)->message, "1.0 each"));
	story_free(&s);
}

static void warm_up(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = (second < 2 ? 20 + 30 * second : 80) * KIB;
	*fds = second < 2 ? 12 + 50 * second : 112;
}

static void up_and_down(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = (20 + 10 * (second % 4)) * KIB;
	*fds = 12 + 30 * (second % 4);
}

static void in_one_step(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = (second < 6 ? 20 : 90) * KIB;
	*fds = second < 6 ? 12 : 200;
}

static void a_little(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 20 * KIB + second * 60;
	*fds = 12 + second;
}

static void test_memory_that_is_used_and_given_back_is_no_growth(void)
{
	void (*const shapes[])(unsigned, uint64_t *, uint64_t *) = { warm_up, up_and_down, in_one_step, a_little };

	for (unsigned i = 0; i < 4; i++) {
		struct story s;

		hold(&s, 12, shapes[i]);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "descriptor-growth")->check, "");
		story_free(&s);
	}
}

/* What is called follows the load, which rises and falls; memory follows the calls of OTHER, which are cheap. */
static void test_callback_whose_calls_go_with_growth_is_named_though_another_does_more(void)
{
	struct story s;
	uint64_t kib = 20 * KIB;

	story_begin(&s);
	for (unsigned i = 0; i < 12; i++) {
		unsigned n = 10 + i * 7 % 5 * 15;

		story_held(&s, i * MS(1000), kib, 12);
		for (unsigned j = 0; j < 90; j++) {
			call(&s, i * MS(1000) + j * MS(11) + 1, 2000, 1, ASK);
			if (j < n)
				call(&s, i * MS(1000) + j * MS(11) + 4000, 50, 3, OTHER);
		}
		kib += n * 40;
	}
	story_held(&s, MS(12000), kib, 12);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "memory-growth");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x300");
	CU_ASSERT(has(story_finding(&s, 0)->message, "40.0 KiB each"));
	story_free(&s);
}

static void test_leaked_tasks_of_the_library_are_named_by_who_has_them_made(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.libevent.capabilities", "poll=full,park=on,wake=full,task_end=full");
	for (unsigned i = 0; i < 400; i++) {
		story_unpark(&s, 0, i * MS(10), 0);
		story_start(&s, 0, i * MS(10) + 1, 1, ASK);
		story_spawn_fd(&s, i * MS(10) + 5, 100 + i, READ, 20 + i);
		story_end(&s, 0, i * MS(10) + 10);
		story_poll(&s, 0, i * MS(10) + 20, i * MS(10) + 30, 100 + i, READ);
		story_park(&s, 0, i * MS(10) + 40, 0);
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "task-leak")->name, "app+0x100");
	CU_ASSERT(has(story_finding_of(&s, "task-leak")->evidence[0].text, "in calls of app+0x100"));
	story_free(&s);
}

/* A listener takes |taken| connections; then nothing takes any more, and it is ready again and again. */
static void listen_and_spin(struct story *s, unsigned taken, const char *place)
{
	uint64_t us = 0;

	story_begin(s);
	story_spawn_fd(s, 0, 1, place, 7);
	for (unsigned i = 0; i < taken; i++, us += MS(1)) {
		story_unpark(s, 0, us, 0);
		story_start(s, 0, us + 1, 1, place);
		story_spawn_fd(s, us + 2, 100 + i, OTHER, 20 + i);
		story_end(s, 0, us + 20);
		story_park(s, 0, us + 21, 0);
	}
	for (unsigned i = 0; i < 60000; i++, us += 10) {
		story_unpark(s, 0, us, 0);
		story_wake(s, us + 1, 0, 1, D9__WAKE_FD);
		story_poll(s, 0, us + 1, us + 3, 1, place);
		story_park(s, 0, us + 9, 0);
	}
	story_analyse(s);
}

static void test_descriptor_that_took_connections_before_it_span_is_an_accept_storm(void)
{
	struct story s;

	listen_and_spin(&s, 10, ASK);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "accept-storm");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
	listen_and_spin(&s, 1, ASK);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
	story_free(&s);
}
static const CU_TestInfo tests[] = {
	{ "callback that runs a loop is named with its open and its own time",
	  test_callback_that_runs_a_loop_is_named_with_its_open_and_its_own_time },
	{ "callback that runs a loop once keeps the own time of that call",
	  test_callback_that_runs_a_loop_once_keeps_the_own_time_of_that_call },
	{ "synchronous call that ends in a loop is a wait and no inner loop",
	  test_synchronous_call_that_ends_in_a_loop_is_a_wait_and_no_inner_loop },
	{ "time that the machine took makes a loop inside no worse",
	  test_time_that_the_machine_took_makes_a_loop_inside_no_worse },
	{ "one long loop inside among short ones is no warning if threads had no CPU for as long",
	  test_one_long_loop_inside_among_short_ones_is_no_warning_if_threads_had_no_cpu_for_as_long },
	{ "what stood still behind an inner loop is its effect",
	  test_what_stood_still_behind_an_inner_loop_is_its_effect },
	{ "loop that is polled inside a callback is told and its time is no computation",
	  test_loop_that_is_polled_inside_a_callback_is_told_and_its_time_is_no_computation },
	{ "loop that is polled often is a warning for the CPU that it keeps busy",
	  test_loop_that_is_polled_often_is_a_warning_for_the_cpu_that_it_keeps_busy },
	{ "inner loop that got no cpu when it woke is no long one",
	  test_inner_loop_that_got_no_cpu_when_it_woke_is_no_long_one },
	{ "short inner loop is not told", test_short_inner_loop_is_not_told },
	{ "blocked callback is told with the call in which it sleeps",
	  test_blocked_callback_is_told_with_the_call_in_which_it_sleeps },
	{ "advice for who waits for a child is what its loop library has",
	  test_advice_for_who_waits_for_a_child_is_what_its_loop_library_has },
	{ "what the recorder calls system calls has advice of its own",
	  test_what_the_recorder_calls_system_calls_has_advice_of_its_own },
	{ "sample of a thread that runs says nothing about sleep",
	  test_sample_of_a_thread_that_runs_says_nothing_about_sleep },
	{ "sample of an earlier call is not of this one",
	  test_sample_of_an_earlier_call_is_not_of_this_one },
	{ "callback with thousands of page faults a call is told to keep its buffer",
	  test_callback_with_thousands_of_page_faults_a_call_is_told_to_keep_its_buffer },
	{ "page faults are judged without what the kernel took",
	  test_page_faults_are_judged_without_what_the_kernel_took },
	{ "few page faults or faults of few calls are no finding",
	  test_few_page_faults_or_faults_of_few_calls_are_no_finding },
	{ "long callback whose time goes into system calls is told so",
	  test_long_callback_whose_time_goes_into_system_calls_is_told_so },
	{ "time in a sources check is told with its share",
	  test_time_in_a_sources_check_is_told_with_its_share },
	{ "source that looks and is done is not told",
	  test_source_that_looks_and_is_done_is_not_told },
	{ "loop that is asked again and again is told to be let wait",
	  test_loop_that_is_asked_again_and_again_is_told_to_be_let_wait },
	{ "time of the loop itself is told as that", test_time_of_the_loop_itself_is_told_as_that },
	{ "handler that works while the loop sleeps is told",
	  test_handler_that_works_while_the_loop_sleeps_is_told },
	{ "growth along a line is told in a minute however slow it is",
	  test_growth_along_a_line_is_told_in_a_minute_however_slow_it_is },
	{ "memory that lies on no line, or stays at last, does not grow",
	  test_memory_that_lies_on_no_line_or_stays_at_last_does_not_grow },
	{ "memory that grows is told with the callback that does most",
	  test_memory_that_grows_is_told_with_the_callback_that_does_most },
	{ "descriptors that grow are told with the callback called as often",
	  test_descriptors_that_grow_are_told_with_the_callback_called_as_often },
	{ "memory that is used and given back is no growth",
	  test_memory_that_is_used_and_given_back_is_no_growth },
	{ "callback whose calls go with growth is named though another does more",
	  test_callback_whose_calls_go_with_growth_is_named_though_another_does_more },
	{ "leaked tasks of the library are named by who has them made",
	  test_leaked_tasks_of_the_library_are_named_by_who_has_them_made },
	{ "descriptor that took connections before it span is an accept storm",
	  test_descriptor_that_took_connections_before_it_span_is_an_accept_storm },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_inside", tests);
}
