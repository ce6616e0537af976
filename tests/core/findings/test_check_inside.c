/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about calls, by what they do inside: where they sleep, and what they compute. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define ASK "app+0x100 @ app+0x110"

#define MS(n) ((n)*UINT64_C(1000))

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* A call of |us| in an awake period of its own. */
static void call(struct story *s, uint64_t at_us, uint64_t us, unsigned task, const char *place)
{
	story_unpark(s, 0, at_us, 0);
	story_poll(s, 0, at_us + 1, at_us + 1 + us, task, place);
	story_park(s, 0, at_us + us + 2, 0);
}

/* ---- where it sleeps ---- */

static void asleep_in(struct story *s, const char *library, const char *syscall, unsigned running,
		      const char *wchan)
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
	static const char *const names[] = { "read(5)",	  "pread(5)",	"recv(5)",	"write(2)",
					     "pwrite(5)", "send(5)",	"poll()",	"select()",
					     "accept(4)", "connect(6)", "open()",	"stat()",
					     "access()",  "readdir(5)", "sigsuspend()", "flock(3)",
					     "fsync(3)" };

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

static void compute(struct story *s, unsigned n, uint64_t us, uint64_t faults, uint64_t user_us,
		    uint64_t system_us)
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
	CU_ASSERT_PTR_NOT_NULL(
		strstr(story_finding_of(&s, "page-faults")->message, "takes 20.0 ms each time"));
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

static const CU_TestInfo tests[] = {
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
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_inside", tests);
}
