/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/gate.h"
#include "support/d9_test.h"

static void test_gate_before_start_is_closed(void)
{
	d9__gate_set(D9__GATE_ALL);
	CU_ASSERT_FALSE(d9__gate_open(D9__GATE_ALL));
}

static void test_gate_opens_for_the_groups_that_were_set(void)
{
	CU_ASSERT_EQUAL(d9__gate_init(), 0);
	d9__gate_set(D9__GATE_LOOP | D9__GATE_WAKE);
	CU_ASSERT(d9__gate_open(D9__GATE_LOOP));
	CU_ASSERT_FALSE(d9__gate_open(D9__GATE_TASK));
	CU_ASSERT(d9__gate_open(D9__GATE_TASK | D9__GATE_WAKE));
}

/* By the bare system call: no atfork handler runs. */
static void test_gate_of_a_forked_child_is_closed_from_the_start(void)
{
	int status = -1;
	pid_t child;

	d9__gate_init();
	d9__gate_set(D9__GATE_ALL);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(d9__gate_open(D9__GATE_ALL) ? 1 : 0);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT(d9__gate_open(D9__GATE_ALL));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "before start is closed", test_gate_before_start_is_closed },
		{ "opens for the groups that were set",
		  test_gate_opens_for_the_groups_that_were_set },
		{ "of a forked child is closed from the start",
		  test_gate_of_a_forked_child_is_closed_from_the_start },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("gate", tests);
}
