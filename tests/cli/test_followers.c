/* SPDX-License-Identifier: Apache-2.0 */
/* Followers are found in whatever state they are. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/d9_test.h"

#include "cli/run/followers.h"

#define LOOKS 1000

static const char again[] = "again";

/* Its successor does the same. */
static _Noreturn void exec_again(void)
{
	execl("/proc/self/exe", again, (char *)NULL);
	_exit(1);
}

static pid_t start(const char *name, const char *value)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(60);
	if (setenv(name, value, 1))
		_exit(1);
	exec_again();
}

static bool is_it(void *arg, pid_t pid)
{
	return pid == *(pid_t *)arg;
}

static void test_one_that_becomes_another_program_is_found(void)
{
	char value[16], variable[64];
	unsigned missed = 0;
	pid_t pid;

	snprintf(value, sizeof(value), "%d", (int)getpid());
	snprintf(variable, sizeof(variable), "D9_TEST_FOLLOWED=%s", value);
	pid = start("D9_TEST_FOLLOWED", value);
	CU_ASSERT_FATAL(pid > 0);
	while (!d9__followers_any(variable, is_it, &pid) && !waitpid(pid, NULL, WNOHANG))
		;
	for (int i = 0; i < LOOKS; i++)
		missed += !d9__followers_any(variable, is_it, &pid);
	CU_ASSERT_EQUAL(missed, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CU_ASSERT_FALSE(d9__followers_any(variable, is_it, &pid));
}

int main(int argc, char **argv)
{
	static const CU_TestInfo tests[] = {
		{ "becomes another program", test_one_that_becomes_another_program_is_found },
		CU_TEST_INFO_NULL,
	};

	if (argc && !strcmp(argv[0], again))
		exec_again();
	return d9_test_main("followers", tests);
}
