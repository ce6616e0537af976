/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/callbacks.h"
#include "analyze/kernel_backlog.h"
#include "support/d9_test.h"

static void test_nothing_is_excused_while_the_kernel_takes_nothing(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, D9__MS(10), D9__MS(20), 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(5)), 0);
	d9__kernel_backlog_round(&natural, D9__MS(25), D9__MS(25), 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(5)), 0);
}

static void test_work_that_came_while_the_thread_waited_for_a_cpu_is_excused(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, D9__MS(10), D9__MS(20), D9__MS(3));
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(2)), D9__MS(2));
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(2)), D9__MS(1));
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(2)), 0);
}

static void test_what_a_call_lost_excuses_the_next_round_and_not_its_own(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, D9__MS(10), D9__MS(20), 0);
	d9__kernel_backlog_call(&natural, D9__MS(8));
	CU_ASSERT_EQUAL(d9__kernel_backlog_taken(&natural, D9__MS(8), 0, D9__MS(6)), 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(4)), 0);
	d9__kernel_backlog_round(&natural, D9__MS(32), D9__MS(32), 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(4)), D9__MS(4));
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(4)), D9__MS(2));
}

static void test_what_the_kernel_took_of_an_excused_call_excuses_others(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, D9__MS(10), D9__MS(20), D9__MS(3));
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(5)), D9__MS(3));
	CU_ASSERT_EQUAL(d9__kernel_backlog_taken(&natural, D9__MS(5), D9__MS(3), D9__MS(4)), D9__MS(1));
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(5)), D9__MS(2));
}

static void test_loop_that_slept_has_no_excuse_left(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, D9__MS(10), D9__MS(20), 0);
	d9__kernel_backlog_call(&natural, D9__MS(8));
	d9__kernel_backlog_taken(&natural, D9__MS(8), 0, D9__MS(6));
	d9__kernel_backlog_round(&natural, D9__MS(28), D9__MS(30), 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, D9__MS(4)), 0);
}

static CU_TestInfo tests[] = {
	{ "nothing is excused while the kernel takes nothing",
	  test_nothing_is_excused_while_the_kernel_takes_nothing },
	{ "work that came while the thread waited for a CPU is excused",
	  test_work_that_came_while_the_thread_waited_for_a_cpu_is_excused },
	{ "what a call lost excuses the next round and not its own",
	  test_what_a_call_lost_excuses_the_next_round_and_not_its_own },
	{ "what the kernel took of an excused call excuses others",
	  test_what_the_kernel_took_of_an_excused_call_excuses_others },
	{ "loop that slept has no excuse left", test_loop_that_slept_has_no_excuse_left },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("natural", tests);
}
