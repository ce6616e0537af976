/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/kernel_backlog.h"
#include "base/time.h"
#include "support/d9_test.h"

static void test_nothing_is_excused_while_the_kernel_takes_nothing(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, 10 * D9__MS_NS, 20 * D9__MS_NS, 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 5 * D9__MS_NS), 0);
	d9__kernel_backlog_round(&natural, 25 * D9__MS_NS, 25 * D9__MS_NS, 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 5 * D9__MS_NS), 0);
}

static void test_work_that_came_while_the_thread_waited_for_a_cpu_is_excused(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, 10 * D9__MS_NS, 20 * D9__MS_NS, 3 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 2 * D9__MS_NS), 2 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 2 * D9__MS_NS), D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 2 * D9__MS_NS), 0);
}

static void test_what_a_call_lost_excuses_the_next_round_and_not_its_own(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, 10 * D9__MS_NS, 20 * D9__MS_NS, 0);
	d9__kernel_backlog_call(&natural, 8 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_taken(&natural, 8 * D9__MS_NS, 0, 6 * D9__MS_NS), 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 4 * D9__MS_NS), 0);
	d9__kernel_backlog_round(&natural, 32 * D9__MS_NS, 32 * D9__MS_NS, 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 4 * D9__MS_NS), 4 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 4 * D9__MS_NS), 2 * D9__MS_NS);
}

static void test_what_the_kernel_took_of_an_excused_call_excuses_others(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, 10 * D9__MS_NS, 20 * D9__MS_NS, 3 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 5 * D9__MS_NS), 3 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_taken(&natural, 5 * D9__MS_NS, 3 * D9__MS_NS, 4 * D9__MS_NS), D9__MS_NS);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 5 * D9__MS_NS), 2 * D9__MS_NS);
}

static void test_loop_that_slept_has_no_excuse_left(void)
{
	struct d9__kernel_backlog natural = { 0 };

	d9__kernel_backlog_round(&natural, 10 * D9__MS_NS, 20 * D9__MS_NS, 0);
	d9__kernel_backlog_call(&natural, 8 * D9__MS_NS);
	d9__kernel_backlog_taken(&natural, 8 * D9__MS_NS, 0, 6 * D9__MS_NS);
	d9__kernel_backlog_round(&natural, 28 * D9__MS_NS, 30 * D9__MS_NS, 0);
	CU_ASSERT_EQUAL(d9__kernel_backlog_call(&natural, 4 * D9__MS_NS), 0);
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
