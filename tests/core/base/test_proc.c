/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "support/d9_test.h"

static void test_own_process_is_read_by_0_and_by_its_number(void)
{
	struct d9__proc_stat own, same;
	unsigned long threads = 0;

	CU_ASSERT_FATAL(d9__proc_stat_read(&own, 0));
	CU_ASSERT_FATAL(d9__proc_stat_read(&same, getpid()));
	CU_ASSERT_EQUAL(own.state, 'R');
	CU_ASSERT_EQUAL(d9__proc_stat_field(&own, D9__STAT_PARENT), (uint64_t)getppid());
	CU_ASSERT_EQUAL(d9__proc_start(0), d9__proc_stat_field(&same, D9__STAT_START));
	CU_ASSERT(d9__proc_start(0) > 0);
	CU_ASSERT_EQUAL(d9__proc_status(0, "Threads:", &threads, 1), 1);
	CU_ASSERT_EQUAL(threads, 1);
}

static void test_name_with_blanks_and_parentheses_moves_no_field(void)
{
	struct d9__proc_stat stat;
	char before[16];

	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, "a) Z 1 (b) S 2");
	CU_ASSERT_FATAL(d9__proc_stat_read(&stat, 0));
	CU_ASSERT_EQUAL(stat.state, 'R');
	CU_ASSERT_EQUAL(d9__proc_stat_field(&stat, D9__STAT_PARENT), (uint64_t)getppid());
	prctl(PR_SET_NAME, before);
}

static void test_zombie_shows_its_state_and_how_it_ended(void)
{
	struct d9__proc_stat stat;
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(3);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	CU_ASSERT_FATAL(d9__proc_stat_read(&stat, pid));
	CU_ASSERT_EQUAL(stat.state, 'Z');
	CU_ASSERT_EQUAL(WEXITSTATUS((int)d9__proc_stat_field(&stat, D9__STAT_EXIT)), 3);
	waitpid(pid, NULL, 0);
	CU_ASSERT_FALSE(d9__proc_stat_read(&stat, pid));
	CU_ASSERT_EQUAL(d9__proc_start(pid), 0);
}

static void test_user_is_the_one_whose_rights_a_process_has(void)
{
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	CU_ASSERT(d9__proc_user(0, &uid, &gid));
	CU_ASSERT_EQUAL(uid, geteuid());
	CU_ASSERT_EQUAL(gid, getegid());
	CU_ASSERT_FALSE(d9__proc_user(0x7fffffff, &uid, &gid));
}

static void test_field_or_line_that_the_kernel_has_not_is_0(void)
{
	struct d9__proc_stat stat;
	unsigned long number;

	CU_ASSERT_FATAL(d9__proc_stat_read(&stat, 0));
	CU_ASSERT_EQUAL(d9__proc_stat_field(&stat, 500), 0);
	CU_ASSERT_EQUAL(d9__proc_status(0, "NoSuchLine:", &number, 1), 0);
}

static const CU_TestInfo tests[] = {
	{ "our own process is read by 0 and by its number", test_own_process_is_read_by_0_and_by_its_number },
	{ "a name with blanks and parentheses moves no field", test_name_with_blanks_and_parentheses_moves_no_field },
	{ "a zombie shows its state, and how it ended", test_zombie_shows_its_state_and_how_it_ended },
	{ "a process's user is the one whose rights it has", test_user_is_the_one_whose_rights_a_process_has },
	{ "a field or line that the kernel does not have is 0", test_field_or_line_that_the_kernel_has_not_is_0 },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("proc", tests);
}
