/* SPDX-License-Identifier: Apache-2.0 */
/* Children of every kind, and who watches them. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "odd.h"

extern char **environ;

/* ---- ways to have a child ---- */

static void fork_a_child(void)
{
	int pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		tell_child("forked", pid);
	else
		leave(7);
}

static void fork_in_callbacks(void)
{
	run_loop(10, fork_a_child);
}

static void fork_with_a_loop(void)
{
	int pid;

	run_loop(5, NULL);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		run_loop(20, NULL);
		leave(8);
	}
	run_loop(20, NULL);
	tell_child("child with a loop", pid);
}

static void vfork_a_child(void)
{
	int pid;

	fflush(stdout);
	pid = vfork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
		_exit(127);
	}
	tell_child("vforked", pid);
}

static void vfork_in_callbacks(void)
{
	run_loop(10, vfork_a_child);
}

static void vfork_that_fails(void)
{
	int pid;

	run_loop(5, NULL);
	fflush(stdout);
	pid = vfork();
	if (!pid) {
		execl("/nowhere", "nowhere", (char *)NULL);
		_exit(errno == ENOENT ? 10 : 11);
	}
	tell_child("vforked, not executed", pid);
	run_loop(5, NULL);
}

static int in_clone(void *unused)
{
	(void)unused;
	_exit(12);
}

static void clone_children(void)
{
	static char stack[64 << 10] __attribute__((aligned(16)));

	run_loop(5, NULL);
	fflush(stdout);
	tell_child("cloned", clone(in_clone, stack + sizeof(stack), SIGCHLD, NULL));
	tell_child("cloned like vfork",
		   clone(in_clone, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	run_loop(5, NULL);
}

static void clone_by_number(void)
{
	long pid;

	run_loop(5, NULL);
	fflush(stdout);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		_exit(13);
	tell_child("cloned by number", (int)pid);
	run_loop(5, NULL);
}

static void spawn_children(void)
{
	char *const command[] = { (char[]) { "sh" }, (char[]) { "-c" }, (char[]) { "exit 14" },
				  NULL };

	run_loop(5, NULL);
	for (int i = 0; i < 10; i++) {
		pid_t pid;

		if (posix_spawn(&pid, "/bin/sh", NULL, NULL, command, environ))
			abort();
		tell_child("spawned", pid);
	}
	printf("system: %d\n", WEXITSTATUS(system("exit 15")));
}

static void execute_again(void)
{
	run_loop(20, NULL);
	printf("becomes another\n");
	fflush(stdout);
	execl(own_path, own_path, "plain", (char *)NULL);
	abort();
}

static void execute_what_is_not_there(void)
{
	run_loop(5, NULL);
	tell_result("exec", execl("/nowhere", "nowhere", (char *)NULL));
	run_loop(20, NULL);
}

/* Who started it waits until nobody holds the other end of a pipe. */
static void daemon_by_two_forks(void)
{
	int ends[2];
	char byte;

	if (pipe(ends))
		abort();
	fflush(stdout);
	if (!fork()) {
		setsid();
		if (fork())
			_exit(0);
		run_loop(20, NULL);
		printf("the daemon ends\n");
		leave(0);
	}
	close(ends[1]);
	tell("nothing is left of it", read(ends[0], &byte, 1) == 0);
	wait(NULL);
}

static void no_child_but_its_own(void)
{
	run_loop(20, NULL);
	tell("no children", waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	run_loop(20, NULL);
	tell("no children", waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* ---- ends ---- */

static void killed(void)
{
	run_loop(20, NULL);
	raise(SIGKILL);
}

static void aborted(void)
{
	run_loop(20, NULL);
	abort();
}

static void faulted(void)
{
	volatile int *nowhere = NULL;

	run_loop(20, NULL);
	*nowhere = 1;
}

static void leave_at_once(void)
{
	leave(16);
}

static void exit_in_callback(void)
{
	run_loop(1, leave_at_once);
}

static void at_quick_exit_end(void)
{
	printf("quick_exit handler\n");
	fflush(stdout);
}

static void quick_exits(void)
{
	at_quick_exit(at_quick_exit_end);
	run_loop(20, NULL);
	fflush(stdout);
	quick_exit(17);
}

static void at_exit_loop(void)
{
	run_loop(3, NULL);
	printf("a loop at exit\n");
}

static void loop_in_exit_handler(void)
{
	atexit(at_exit_loop);
	run_loop(5, NULL);
	fflush(stdout);
	exit(18);
}

/* ---- watched, stopped ---- */

static void stopped_and_continued(void)
{
	int pid, status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		run_loop(200, NULL);
		leave(19);
	}
	for (int i = 0; i < 5; i++) {
		usleep(20000);
		kill(pid, SIGSTOP);
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status) ||
		    WSTOPSIG(status) != SIGSTOP)
			tell("stopped", false);
		kill(pid, SIGCONT);
		if (waitpid(pid, &status, WCONTINUED) != pid || !WIFCONTINUED(status))
			tell("continued", false);
	}
	tell_child("stopped and continued", pid);
}

/* What a debugger does with a child: from call to call, and on with each signal. */
static void traced_child(void)
{
	bool calls = false;
	int pid, status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(own_path, own_path, "plain", (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);

		calls = calls || !sig;
		ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)sig);
	}
	tell("calls were seen", calls);
	printf("traced: exit status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void attached_while_it_runs(void)
{
	int pid, status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
		run_loop(200, NULL);
		leave(20);
	}
	for (int i = 0; i < 5; i++) {
		usleep(20000);
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) ||
		    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid ||
		    !WIFSTOPPED(status))
			tell("attached", false);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	tell_child("attached and left", pid);
}

static void not_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	run_loop(20, NULL);
	tell("not dumpable", !prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
}

/* ---- what a program does to itself ---- */

static void all_descriptors_closed(void)
{
	run_loop(10, NULL);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	run_loop(20, NULL);
}

static void range_closed(void)
{
	run_loop(10, NULL);
	tell_result("close_range", syscall(SYS_close_range, 3u, ~0u, 0));
	run_loop(20, NULL);
}

static void environment_cleared(void)
{
	clearenv();
	run_loop(20, NULL);
	printf("variables: %s\n", environ && *environ ? *environ : "none");
	printf("system: %d\n", WEXITSTATUS(system("exit 21")));
}

/* As setproctitle() does. */
static void arguments_overwritten(void)
{
	run_loop(5, NULL);
	memset((char *)(uintptr_t)own_path, 'x', strlen(own_path));
	prctl(PR_SET_NAME, "another", 0, 0, 0);
	run_loop(20, NULL);
}

static void directory_removed(void)
{
	char name[] = "/tmp/odd-XXXXXX";

	if (!mkdtemp(name) || chdir(name) || rmdir(name))
		abort();
	run_loop(20, NULL);
}

static void plain(void)
{
	run_loop(20, NULL);
}

static void no_loop(void)
{
	burn(30);
}

const struct shape process_shapes[] = {
	{ "plain", plain },
	{ "no_loop", no_loop },
	{ "fork_in_callbacks", fork_in_callbacks },
	{ "fork_with_a_loop", fork_with_a_loop },
	{ "vfork_in_callbacks", vfork_in_callbacks },
	{ "vfork_that_fails", vfork_that_fails },
	{ "clone_children", clone_children },
	{ "clone_by_number", clone_by_number },
	{ "spawn_children", spawn_children },
	{ "execute_again", execute_again },
	{ "execute_what_is_not_there", execute_what_is_not_there },
	{ "daemon_by_two_forks", daemon_by_two_forks },
	{ "no_child_but_its_own", no_child_but_its_own },
	{ "killed", killed },
	{ "aborted", aborted },
	{ "faulted", faulted },
	{ "exit_in_callback", exit_in_callback },
	{ "quick_exits", quick_exits },
	{ "loop_in_exit_handler", loop_in_exit_handler },
	{ "stopped_and_continued", stopped_and_continued },
	{ "traced_child", traced_child },
	{ "attached_while_it_runs", attached_while_it_runs },
	{ "not_dumpable", not_dumpable },
	{ "all_descriptors_closed", all_descriptors_closed },
	{ "range_closed", range_closed },
	{ "environment_cleared", environment_cleared },
	{ "arguments_overwritten", arguments_overwritten },
	{ "directory_removed", directory_removed },
	{ NULL, NULL },
};
