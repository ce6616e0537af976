/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/record_child.h"

static const int passed_on[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
/* The last: recovery at the end writes files, and has an error for one that may not grow. */
static const int ignored[] = { SIGINT, SIGQUIT, SIGXFSZ };

#define N_PASSED_ON (sizeof(passed_on) / sizeof(passed_on[0]))
#define N_IGNORED (sizeof(ignored) / sizeof(ignored[0]))

static volatile pid_t child;

/* The signal settings that this process inherited and CMD gets unchanged. */
static struct {
	sigset_t mask;
	struct sigaction sigchld, passed_on[N_PASSED_ON], ignored[N_IGNORED];
} inherited;

/*
 * Pass a signal on to CMD. A signal from the terminal went to the whole process group, so CMD has
 * it already.
 */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (info->si_code != SI_KERNEL && info->si_pid != child)
		kill(child, sig);
	errno = saved;
}

static void all_ours(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < N_PASSED_ON; i++)
		sigaddset(set, passed_on[i]);
	for (size_t i = 0; i < N_IGNORED; i++)
		sigaddset(set, ignored[i]);
}

static void take_signals(void)
{
	struct sigaction action = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (size_t i = 0; i < N_IGNORED; i++)
		sigaction(ignored[i], &ignore, &inherited.ignored[i]);
	/* Under nohup(1) the child ignores SIGHUP, and so do we. */
	for (size_t i = 0; i < N_PASSED_ON; i++)
		if (!sigaction(passed_on[i], NULL, &inherited.passed_on[i]) &&
		    inherited.passed_on[i].sa_handler != SIG_IGN)
			sigaction(passed_on[i], &action, NULL);
}

/* In the child: errno of a failed exec goes up the pipe; a successful one closes it. */
static _Noreturn void become(char **argv, char **envp, int pipe_fd)
{
	int err;

	sigaction(SIGCHLD, &inherited.sigchld, NULL);
	sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
	execvpe(argv[0], argv, envp);
	err = errno;
	if (write(pipe_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

static int read_exec_error(int pipe_fd)
{
	int err = 0;
	ssize_t n;

	do
		n = read(pipe_fd, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? -err : 0;
}

/* Wait with signals open, but reap with them closed: a freed pid must not be signalled. */
static int wait_for_child(const sigset_t *ours, int *wait_status)
{
	siginfo_t info;

	sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	sigprocmask(SIG_BLOCK, ours, NULL);
	while (waitpid(child, wait_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int d9__record_child_run(char **argv, char **envp, int *wait_status)
{
	struct sigaction default_action = { .sa_handler = SIG_DFL };
	int fds[2], err, exec_err;
	sigset_t ours;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* An ignored SIGCHLD would take the status away. */
	sigaction(SIGCHLD, &default_action, &inherited.sigchld);
	all_ours(&ours);
	sigprocmask(SIG_BLOCK, &ours, &inherited.mask);
	child = fork();
	if (child == 0)
		become(argv, envp, fds[1]);
	err = child < 0 ? -errno : 0;
	close(fds[1]);
	if (!err) {
		take_signals();
		exec_err = read_exec_error(fds[0]);
		err = wait_for_child(&ours, wait_status);
		err = exec_err ? exec_err : err;
	}
	close(fds[0]);
	return err;
}

void d9__record_child_give_signals_back(void)
{
	for (size_t i = 0; i < N_IGNORED; i++)
		sigaction(ignored[i], &inherited.ignored[i], NULL);
	for (size_t i = 0; i < N_PASSED_ON; i++)
		sigaction(passed_on[i], &inherited.passed_on[i], NULL);
	sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
}

bool d9__record_child_is_to_end(void)
{
	sigset_t pending;

	return !sigpending(&pending) && (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
					 sigismember(&pending, SIGQUIT));
}

_Noreturn void d9__record_child_exit_like(int wait_status, int own_status)
{
	sigset_t set;
	int sig;

	if (!WIFSIGNALED(wait_status))
		exit(WEXITSTATUS(wait_status) ? WEXITSTATUS(wait_status) : own_status);
	sig = WTERMSIG(wait_status);
	/* The child's core dump is the one that matters. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	exit(128 + sig);
}
