/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/hook.h"
#include "stage/clean_environment.h"

static int set_files(posix_spawn_file_actions_t *files)
{
	int err = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (!err)
		err = posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
#if __GLIBC_PREREQ(2, 34)
	/*
	 * Close every other descriptor, because the caller of `dial9 record` left them open for CMD
	 * alone.
	 */
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
#endif
	return err;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int err;

	sigfillset(&all);
	sigemptyset(&none);
	err = posix_spawnattr_setsigdefault(attributes, &all);
	if (!err)
		err = posix_spawnattr_setsigmask(attributes, &none);
	if (!err)
		err = posix_spawnattr_setpgroup(attributes, 0);
	return err ? err : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
								POSIX_SPAWN_SETSIGMASK);
}

int d9__hook_start(struct d9__hook *hook, char **argv, uint64_t limit_ns)
{
	char *environment[D9__CLEAN_VARIABLES + 2];
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		d9__clean_environment(environment, NULL);
		err = set_files(&files);
		if (!err)
			err = set_attributes(&attributes);
		hook->until_ns = d9__mono_ns() + limit_ns;
		hook->killed = false;
		if (!err)
			err = posix_spawnp(&hook->pid, argv[0], &files, &attributes, argv, environment);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	if (err)
		hook->pid = 0;
	return -err;
}

void d9__hook_kill(struct d9__hook *hook)
{
	if (hook->pid)
		kill(-hook->pid, SIGKILL);
}

enum d9__hook_state d9__hook_look(struct d9__hook *hook, int *wait_status)
{
	pid_t pid;

	/*
	 * The process is not reaped yet, so the kernel cannot have given its number to another one.
	 */
	if (!hook->killed && d9__mono_ns() >= hook->until_ns) {
		siginfo_t info = { .si_pid = 0 };

		hook->killed = !waitid(P_PID, (id_t)hook->pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
		if (hook->killed)
			d9__hook_kill(hook);
	}
	pid = waitpid(hook->pid, wait_status, WNOHANG);
	if (!pid || (pid < 0 && errno == EINTR))
		return D9__HOOK_RUNS;
	hook->pid = 0;
	return hook->killed ? D9__HOOK_TOO_LONG : D9__HOOK_ENDED;
}
