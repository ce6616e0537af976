/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/pager.h"

/* The exit statuses of shells for a command that cannot be run or is not found. */
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND  127

/* Return the pager that the environment names; NULL: none. */
static const char *command_of_user(void)
{
	const char *command = getenv("DIAL9_PAGER");

	return command ? command : getenv("PAGER");
}

static void run_pager(const char *command, const int *ends)
{
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	/* F: exit if it fits on the screen; R: keep colours; X: do not clear the screen. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	signal(SIGPIPE, SIG_DFL);
	if (command)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	else
		execlp("less", "less", (char *)NULL);
	_exit(STATUS_NOT_FOUND);
}

bool d9__pager_begin(struct d9__pager *pager)
{
	const char *command = command_of_user();
	int ends[2];

	if (isatty(STDOUT_FILENO) != 1 || (command && (!*command || !strcmp(command, "cat"))))
		return false;
	fflush(stdout);
	pager->terminal = dup(STDOUT_FILENO);
	if (pager->terminal < 0)
		return false;
	if (pipe(ends)) {
		close(pager->terminal);
		return false;
	}
	pager->pid = fork();
	if (pager->pid == 0)
		run_pager(command, ends);
	close(ends[0]);
	if (pager->pid > 0) {
		dup2(ends[1], STDOUT_FILENO);
		/* Ctrl-C is meant for the pager, which gets it as well. */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
	} else {
		close(pager->terminal);
	}
	close(ends[1]);
	return pager->pid > 0;
}

bool d9__pager_end(struct d9__pager *pager)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	clearerr(stdout); /* the user may have left before the end */
	dup2(pager->terminal, STDOUT_FILENO);
	close(pager->terminal);
	do
		pid = waitpid(pager->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	return !(pid == pager->pid && WIFEXITED(status) &&
		 (WEXITSTATUS(status) == STATUS_CANNOT_RUN || WEXITSTATUS(status) == STATUS_NOT_FOUND));
}
