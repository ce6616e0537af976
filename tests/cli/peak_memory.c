/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peak_memory MIB CMD...: runs CMD, and ends as it does; but with 98 and a line if it had more than MIB of
 * memory at once.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long limit_kib = argc > 2 ? strtol(argv[1], NULL, 10) * 1024 : 0;
	struct rusage usage;
	int status;
	pid_t pid;

	if (limit_kib <= 0) {
		fputs("usage: peak_memory MIB CMD...\n", stderr);
		return 99;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 99;
	if (usage.ru_maxrss > limit_kib) {
		fprintf(stderr, "peak_memory: %ld MiB, more than %s\n", usage.ru_maxrss / 1024, argv[1]);
		return 98;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}
