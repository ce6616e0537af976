#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that reset, handle, ask for, block or wait for the signal that samples come by: they run as alone, find what they
# set themselves, and get their own signals alone; what samples them goes on.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >actions.c <<'END'
#include "cpu_work.h"
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t own_signals;
static const char *how;

static void on_prof(int signal)
{
	(void)signal;
	own_signals++;
}

static int is(const char *name)
{
	return !strcmp(how, name);
}

/* What is set for |signal|, as the program sees it. */
static const char *action_of(int signal)
{
	struct sigaction now;

	if (sigaction(signal, NULL, &now))
		return "refused";
	return now.sa_handler == SIG_DFL ? "default" : now.sa_handler == SIG_IGN ? "ignored" :
	       now.sa_handler == on_prof ? "its own" : "foreign";
}

static void own_timer(void)
{
	setitimer(ITIMER_PROF, &(struct itimerval){ { 0, 20000 }, { 0, 20000 } }, NULL);
}

static void reset_all(void)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };

	for (int signal = 1; signal <= 64; signal++)
		sigaction(signal, &usual, NULL);
}

/* Who started this test may ignore the two signals that glibc keeps for itself; its first thread handles them. */
static void forget_libcs_own(void)
{
	unsigned long usual[4] = { 0 };

	for (int signal = 32; signal < 34; signal++)
		syscall(SYS_rt_sigaction, signal, usual, NULL, 8ul);
}

/* As daemons that start programs do. */
static void start(int by_vfork)
{
	pid_t child = by_vfork ? vfork() : fork();
	int status;

	if (!child) {
		struct sigaction usual = { .sa_handler = SIG_DFL }, before;
		int foreign = 0;

		for (int signal = 1; signal <= 64; signal++)
			if (!sigaction(signal, &usual, &before) && before.sa_handler != SIG_DFL)
				foreign++;
		if (foreign)
			_exit(3);
		forget_libcs_own();
		execl("/bin/grep", "grep", "Sig[IC]", "/proc/self/status", (char *)NULL);
		_exit(4);
	}
	waitpid(child, &status, 0);
	printf("child: %d\n", status);
	fflush(stdout);
}

static void change(void)
{
	struct sigaction own = { .sa_handler = on_prof, .sa_flags = SA_RESTART }, before, usual = { .sa_handler = SIG_DFL };

	if (is("signal"))
		printf("before: %s\n", signal(SIGPROF, SIG_DFL) == SIG_DFL ? "default" : "foreign");
	if (is("sysv"))
		sysv_signal(SIGPROF, SIG_DFL);
	if (is("sigset"))
		sigset(SIGPROF, SIG_DFL);
	if (is("ignore"))
		sigignore(SIGPROF);
	if (is("all"))
		reset_all();
	if (is("again"))
		for (int i = 0; i < 1000; i++)
			sigaction(SIGPROF, &usual, NULL);
	/* Saved, and put back. */
	if (is("saves")) {
		sigaction(SIGPROF, &own, &before);
		printf("before: %s, %s\n", before.sa_handler == SIG_DFL ? "default" : "foreign", action_of(SIGPROF));
		sigaction(SIGPROF, &before, NULL);
	}
	if (is("handles") || is("thread")) {
		sigaction(SIGPROF, &own, NULL);
		own_timer();
	}
	if (is("fork") || is("vfork"))
		start(is("vfork"));
}

static void *in_thread(void *unused)
{
	(void)unused;
	change();
	return NULL;
}

static int left = 40;

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	pthread_t thread;

	(void)fd, (void)what;
	if (left == 40)
		await_sampling();
	if (left == 30 && is("thread")) {
		pthread_create(&thread, NULL, in_thread, NULL);
		pthread_join(thread, NULL);
	} else if (left == 30) {
		change();
	}
	compute(0.01);
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);

	how = argc > 1 ? argv[1] : "";
	event_add(timer, &(struct timeval){ 0, 2000 });
	event_base_dispatch(base);
	while ((is("handles") || is("thread")) && own_signals < 5)
		compute(0.01);
	printf("%s\n", action_of(SIGPROF));
	fflush(stdout);
	if (is("dies")) {
		own_timer();
		for (;;)
			compute(1);
	}
	return 0;
}
END
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -Wno-deprecated-declarations -o actions actions.c -levent || exit 99

# same PROGRAM ARGUMENT...: as alone; and what the trace says of samples.
same() {
	say "$*"
	program=./$1
	shift
	{ "$program" "$@" || echo "status $?"; } >alone 2>&1
	rm -rf tr
	# One word per option is meant.
	# shellcheck disable=SC2086
	{ "$dial9" record --quiet ${options-} -o tr -- "$program" "$@" || echo "status $?"; } >recorded 2>&1
	cat recorded
	if cmp -s alone recorded; then
		echo "as alone"
	else
		diff alone recorded
	fi
	[ -z "${told-}" ] || "$dial9" info tr | sed -n 's/^ *\(source.cpu .*\)/\1/p'
}

told=yes
for how in signal sysv sigset ignore all again saves handles thread fork vfork dies; do
	same actions $how
done

say "samples come before and after"
"$dial9" record --quiet --cpu 500 -o both -- ./actions handles >/dev/null
[ "$("$dial9" events -e CpuSampleEvent both | wc -l)" -ge 60 ] && echo "yes"

say "with the guard off, by a signal that is ignored by default"
DIAL9_GUARD_SIGNALS=0 "$dial9" record --quiet -o off -- ./actions signal
"$dial9" info off | sed -n 's/^ *\(source.cpu .*\)/\1/p'

cat >waits.c <<'END'
#include "cpu_work.h"
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/signalfd.h>

static const char *how;
static int usr, prof, others, interrupted;

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void count(int signal)
{
	if (signal == SIGUSR1)
		usr++;
	else if (signal == SIGPROF)
		prof++;
	else
		others++;
}

static int next(const sigset_t *set, int fd)
{
	struct signalfd_siginfo read_info;
	siginfo_t info;
	int signal;

	if (is("sigwaitinfo"))
		return sigwaitinfo(set, &info);
	if (is("sigtimedwait"))
		return sigtimedwait(set, NULL, &(struct timespec){ 5, 0 });
	if (fd >= 0)
		return read(fd, &read_info, sizeof(read_info)) == sizeof(read_info) ? (int)read_info.ssi_signo : -1;
	return sigwait(set, &signal) ? -1 : signal;
}

static void *take_all(void *unused)
{
	sigset_t all;
	int fd, signal;

	(void)unused;
	sigfillset(&all);
	fd = is("signalfd") ? signalfd(-1, &all, SFD_CLOEXEC) : -1;
	while ((signal = next(&all, fd)) != SIGTERM) {
		count(signal);
		compute(0.003);
	}
	return NULL;
}

/* A thread that was sampled, and blocks all: no wait of it ends early, and nothing waits for it. */
static void block_and_look(void)
{
	sigset_t all, none, pending, before;
	struct timespec zero = { 0, 0 }, short_while = { 0, 1000000 };

	sigfillset(&all);
	sigemptyset(&none);
	for (int i = 0; i < 20; i++) {
		pthread_sigmask(SIG_BLOCK, &all, &before);
		compute(0.03);
		sigpending(&pending);
		if (sigismember(&pending, SIGPROF))
			prof++;
		if (sigtimedwait(&all, NULL, &zero) >= 0 || errno != EAGAIN)
			others++;
		if (ppoll(NULL, 0, &short_while, &none) < 0 || pselect(0, NULL, NULL, NULL, &short_while, &none) < 0)
			interrupted++;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		compute(0.03);
	}
}

static int left = 60;

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (left == 60 && is("masks"))
		await_sampling();
	if (left == 50 && is("masks"))
		block_and_look();
	compute(0.003);
	if (!is("masks"))
		kill(getpid(), left % 10 == 0 && is("sends") ? SIGPROF : SIGUSR1);
	usleep(2000);
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base;
	struct event *timer;
	pthread_t thread;
	sigset_t all;

	how = argc > 1 ? argv[1] : "";
	sigfillset(&all);
	if (!is("masks")) {
		pthread_sigmask(SIG_BLOCK, &all, NULL);
		pthread_create(&thread, NULL, take_all, NULL);
	}
	base = event_base_new();
	timer = event_new(base, -1, EV_PERSIST, on_timer, base);
	event_add(timer, &(struct timeval){ 0, 2000 });
	event_base_dispatch(base);
	if (!is("masks")) {
		kill(getpid(), SIGTERM);
		pthread_join(thread, NULL);
	}
	printf("%s; SIGPROF: %s; %d others, %d interrupted\n", usr || is("masks") ? "its own" : "none",
	       is("sends") && prof ? "its own" : prof ? "foreign" : "none", others, interrupted);
	return 0;
}
END
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -o waits waits.c -levent || exit 99

told=
options="--cpu 999 --cpu-threads all"
for how in sigwait sigwaitinfo sigtimedwait signalfd sends masks; do
	same waits $how
done
options="--cpu 999 --profile-only"
for how in sigwait signalfd; do
	same waits $how
done

# leaves: waits that end by a cancellation, a jump out of a handler, a handler or the time, and what errno is behind each.
cat >leaves.c <<'END'
#include "cpu_work.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sigset_t all_but_alarm;
static sigjmp_buf out;
static int jump;

static void on_alarm(int signal)
{
	(void)signal;
	if (jump)
		siglongjmp(out, 1);
}

static int wait_by(int how)
{
	struct timespec minute = { 60, 0 };
	siginfo_t info;
	int signal;

	switch (how) {
	case 0:
		return sigwait(&all_but_alarm, &signal);
	case 1:
		return sigwaitinfo(&all_but_alarm, &info);
	case 2:
		return sigtimedwait(&all_but_alarm, &info, &minute);
	default:
		return sigsuspend(&all_but_alarm);
	}
}

static void left(void *how)
{
	printf("cancelled in %d\n", *(int *)how);
}

static void *wait_to_be_cancelled(void *how)
{
	pthread_sigmask(SIG_BLOCK, &all_but_alarm, NULL);
	compute(0.05);
	pthread_cleanup_push(left, how);
	wait_by(*(int *)how);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_waits(void)
{
	for (int how = 0; how < 4; how++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, wait_to_be_cancelled, &how);
		usleep(150000);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		printf("%s\n", result == PTHREAD_CANCELED ? "ended so" : "ended otherwise");
	}
}

static void jump_out(int how)
{
	sigset_t now;

	jump = 1;
	if (!sigsetjmp(out, 1)) {
		ualarm(50000, 0);
		wait_by(how);
		printf("not left\n");
	}
	jump = 0;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	printf("jumped out of %d, SIGPROF is %s\n", how, sigismember(&now, SIGPROF) ? "blocked" : "open");
}

static void tell_errno(const char *what, int result)
{
	printf("%s: %d, %s\n", what, result, strerror(errno));
}

int main(void)
{
	struct timespec none = { 0, 0 }, wrong = { 0, -1 };

	sigfillset(&all_but_alarm);
	sigdelset(&all_but_alarm, SIGALRM);
	sigdelset(&all_but_alarm, SIGINT);
	signal(SIGALRM, on_alarm);
	cancel_waits();
	compute(0.3);
	pthread_sigmask(SIG_BLOCK, &all_but_alarm, NULL);
	for (int how = 1; how < 4; how++)
		jump_out(how);
	for (int how = 1; how < 4; how++) {
		ualarm(50000, 0);
		tell_errno("interrupted", wait_by(how));
	}
	errno = EXDEV;
	kill(getpid(), SIGUSR1);
	tell_errno("waited for", wait_by(0));
	errno = EXDEV;
	kill(getpid(), SIGUSR2);
	tell_errno("informed of", wait_by(1));
	tell_errno("none", sigtimedwait(&all_but_alarm, NULL, &none));
	tell_errno("no time", sigtimedwait(&all_but_alarm, NULL, &wrong));
	return 0;
}
END
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -Wno-deprecated-declarations -o leaves leaves.c || exit 99
told=yes
options="--cpu 999 --cpu-threads all --profile-only"
same leaves

say "a program that the C library profiles"
cat >profiled.c <<'END'
#include "cpu_work.h"
int main(void)
{
	compute(0.3);
	puts("profiled");
	return 0;
}
END
if cc -pg -g -O2 -I"$top_srcdir/tests/cli" -o profiled profiled.c 2>/dev/null; then
	"$dial9" record --quiet --profile-only -o profile -- ./profiled
	gprof -b -p profiled gmon.out 2>/dev/null | grep -q compute && echo "its own samples"
else
	echo "profiled"
	echo "its own samples"
fi
finish 's/thread [0-9]*/thread N/; s/^\(Sig[A-Z][a-z]*\):.*/\1/'
