/* SPDX-License-Identifier: Apache-2.0 */
/* Pressure: told by shares of windows that the test makes up, so that no machine need be busy. */
#include "config.h"

#include "record/pressure.h"
#include "support/d9_test.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

struct thread {
	struct d9__pressure pressure;
	uint64_t now_ns, ran_ns, waited_ns;
};

static struct thread begun(enum d9__pressure_mode mode)
{
	struct thread thread = { .pressure = { .mode = mode }, .now_ns = 7 * SECOND };

	d9__pressure_judge(&thread.pressure, thread.now_ns, 0, 0);
	return thread;
}

static bool after(struct thread *thread, uint64_t ns, uint64_t ran_ns, uint64_t waited_ns)
{
	thread->now_ns += ns;
	thread->ran_ns += ran_ns;
	thread->waited_ns += waited_ns;
	return d9__pressure_judge(&thread->pressure, thread->now_ns, thread->ran_ns,
				  thread->waited_ns);
}

static bool for_seconds(struct thread *thread, int n, uint64_t ran_ns, uint64_t waited_ns)
{
	bool on = thread->pressure.on;

	while (n--)
		on = after(thread, SECOND, ran_ns, waited_ns);
	return on;
}

static void test_machine_with_idle_cpus_never_begins_it(void)
{
	struct thread thread = begun(D9__PRESSURE_AUTO);

	CU_ASSERT_FALSE(for_seconds(&thread, 100, 0, 0));
	/* Ten times a second it wakes up and waits as long as it works, which is next to nothing.
	 */
	CU_ASSERT_FALSE(for_seconds(&thread, 100, 500000, 500000));
	CU_ASSERT_FALSE(for_seconds(&thread, 100, 500 * MS, 9 * MS));
	/* More than a hundredth of the time, but less than a tenth of its own. */
	CU_ASSERT_FALSE(for_seconds(&thread, 100, 200 * MS, 20 * MS));
}

static void test_two_seconds_of_waiting_begin_it_and_three_without_end_it(void)
{
	struct thread thread = begun(D9__PRESSURE_AUTO);

	for (int times = 0; times < 3; times++) {
		CU_ASSERT_FALSE(for_seconds(&thread, 1, 11 * MS, 16 * MS));
		CU_ASSERT(for_seconds(&thread, 1, 11 * MS, 16 * MS));
		CU_ASSERT(for_seconds(&thread, 50, 9 * MS, 200 * MS));
		CU_ASSERT(for_seconds(&thread, 2, 9 * MS, 0));
		CU_ASSERT_FALSE(for_seconds(&thread, 1, 9 * MS, 0));
	}
}

static void test_one_bad_second_is_no_pressure_and_one_good_one_no_end_of_it(void)
{
	struct thread thread = begun(D9__PRESSURE_AUTO);

	for (int i = 0; i < 20; i++) {
		CU_ASSERT_FALSE(for_seconds(&thread, 1, 5 * MS, 900 * MS));
		CU_ASSERT_FALSE(for_seconds(&thread, 1, 5 * MS, 0));
	}
	CU_ASSERT(for_seconds(&thread, 2, 5 * MS, 900 * MS));
	for (int i = 0; i < 20; i++) {
		CU_ASSERT(for_seconds(&thread, 2, 5 * MS, 0));
		CU_ASSERT(for_seconds(&thread, 1, 5 * MS, 900 * MS));
	}
}

static void test_what_does_not_begin_it_may_keep_it(void)
{
	struct thread thread = begun(D9__PRESSURE_AUTO);

	CU_ASSERT_FALSE(for_seconds(&thread, 20, 5 * MS, 7 * MS));
	CU_ASSERT(for_seconds(&thread, 2, 5 * MS, 20 * MS));
	CU_ASSERT(for_seconds(&thread, 20, 5 * MS, 7 * MS));
	CU_ASSERT_FALSE(for_seconds(&thread, 3, 5 * MS, 4 * MS));
}

static void test_windows_are_as_long_as_the_thread_rests(void)
{
	struct thread thread = begun(D9__PRESSURE_AUTO);

	/* Too short to tell anything. */
	for (int i = 0; i < 4; i++)
		CU_ASSERT_FALSE(after(&thread, SECOND / 10, 0, SECOND / 10));
	CU_ASSERT_FALSE(after(&thread, SECOND / 10, 0, SECOND / 10));
	CU_ASSERT_FALSE(after(&thread, SECOND / 10, 0, SECOND / 10));
	CU_ASSERT(after(&thread, SECOND, 0, SECOND / 10));
	/* Ten milliseconds are much of a second, and nothing of a minute. */
	CU_ASSERT_FALSE(after(&thread, 60 * SECOND, 5 * MS, 20 * MS) &&
			after(&thread, 60 * SECOND, 5 * MS, 20 * MS) &&
			after(&thread, 60 * SECOND, 5 * MS, 20 * MS));
}

static void test_thread_that_takes_over_begins_at_nothing(void)
{
	struct thread thread = begun(D9__PRESSURE_AUTO);

	CU_ASSERT(for_seconds(&thread, 2, 5 * MS, 900 * MS));
	thread.ran_ns = thread.waited_ns = 0;
	CU_ASSERT(for_seconds(&thread, 1, MS, 0));
	CU_ASSERT(for_seconds(&thread, 2, 5 * MS, 0));
	CU_ASSERT_FALSE(for_seconds(&thread, 1, 5 * MS, 0));
}

static void test_option_says_yes_or_no_whatever_the_machine_does(void)
{
	struct thread no = begun(D9__PRESSURE_NO), yes = begun(D9__PRESSURE_YES),
		      unknown = begun(D9__PRESSURE_AUTO);

	CU_ASSERT_FALSE(for_seconds(&no, 10, 5 * MS, 900 * MS));
	CU_ASSERT(yes.pressure.on);
	CU_ASSERT(for_seconds(&yes, 10, 5 * MS, 0));
	CU_ASSERT_FALSE(d9__pressure_unknown(&no.pressure));
	CU_ASSERT(d9__pressure_unknown(&yes.pressure));
	CU_ASSERT(for_seconds(&unknown, 2, 5 * MS, 900 * MS));
	CU_ASSERT_FALSE(d9__pressure_unknown(&unknown.pressure));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "idle CPUs", test_machine_with_idle_cpus_never_begins_it },
		{ "begin and end", test_two_seconds_of_waiting_begin_it_and_three_without_end_it },
		{ "one second", test_one_bad_second_is_no_pressure_and_one_good_one_no_end_of_it },
		{ "hysteresis", test_what_does_not_begin_it_may_keep_it },
		{ "windows", test_windows_are_as_long_as_the_thread_rests },
		{ "another thread", test_thread_that_takes_over_begins_at_nothing },
		{ "option", test_option_says_yes_or_no_whatever_the_machine_does },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("pressure", tests);
}
