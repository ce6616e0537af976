/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that the program wants for itself: handlers, timers, masks, waits. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "odd.h"

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	(void)sig;
	caught++;
}

static void set_handler(int sig, void (*fn)(int), int flags)
{
	struct sigaction action = { .sa_handler = fn, .sa_flags = flags };

	sigaction(sig, &action, NULL);
}

/* ---- stacks of handlers ---- */

static void burn_in_handler(int sig)
{
	(void)sig;
	burn(2);
	caught++;
}

static void raise_usr1(void)
{
	raise(SIGUSR1);
}

static void alternate_stack(void)
{
	stack_t stack = { .ss_size = 64 << 10 }, old;

	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, &old);
	tell("no alternate stack before", old.ss_flags & SS_DISABLE);
	set_handler(SIGUSR1, burn_in_handler, SA_ONSTACK);
	run_loop(20, raise_usr1);
	sigaltstack(NULL, &old);
	tell("the stack is the program's", old.ss_sp == stack.ss_sp);
	printf("caught %d\n", (int)caught);
}

static void no_alternate_stack(void)
{
	stack_t stack;

	run_loop(20, NULL);
	sigaltstack(NULL, &stack);
	tell("no alternate stack", stack.ss_flags & SS_DISABLE);
}

/* ---- timers ---- */

static void run_until_caught(void)
{
	for (int i = 0; i < 1000 && caught <= 3; i++)
		run_loop(10, NULL);
}

static void interval_timer(int which, int sig)
{
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, old;

	set_handler(sig, on_signal, SA_RESTART);
	setitimer(which, &often, NULL);
	run_until_caught();
	setitimer(which, &(struct itimerval) { { 0, 0 }, { 0, 0 } }, &old);
	tell("the timer fired", caught > 3);
	tell("the interval is as it was set", old.it_interval.tv_usec == 2000);
}

static void own_real_timer(void)
{
	interval_timer(ITIMER_REAL, SIGALRM);
}

static void own_virtual_timer(void)
{
	interval_timer(ITIMER_VIRTUAL, SIGVTALRM);
}

static void own_profiling_timer(void)
{
	interval_timer(ITIMER_PROF, SIGPROF);
}

static void profiling_timer_late(void)
{
	run_loop(20, NULL);
	interval_timer(ITIMER_PROF, SIGPROF);
}

static void posix_timers(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec often = { { 0, 2000000 }, { 0, 2000000 } };
	timer_t timer;

	set_handler(SIGRTMIN, on_signal, SA_RESTART);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &often, NULL);
	run_until_caught();
	timer_delete(timer);
	tell("the timer fired", caught > 3);
}

/* ---- dispositions ---- */

static void profiling_signal_set_to(void (*action)(int))
{
	struct sigaction old;

	run_loop(60, NULL);
	sigaction(SIGPROF, NULL, &old);
	tell("SIGPROF was at its default", old.sa_handler == SIG_DFL);
	signal(SIGPROF, action);
	run_loop(60, NULL);
	sigaction(SIGPROF, NULL, &old);
	tell("SIGPROF is as it was set", old.sa_handler == action);
	printf("caught %d\n", (int)caught);
}

static void profiling_signal_default(void)
{
	profiling_signal_set_to(SIG_DFL);
}

static void profiling_signal_ignored(void)
{
	profiling_signal_set_to(SIG_IGN);
}

static void profiling_signal_handled(void)
{
	profiling_signal_set_to(on_signal);
}

/* As shells and daemons do for their children. */
static void all_signals_reset(void)
{
	run_loop(60, NULL);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		signal(sig, SIG_DFL);
	run_loop(60, NULL);
}

static void each_signal_as_it_was(void)
{
	run_loop(60, NULL);
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		struct sigaction old;

		if (!sigaction(sig, NULL, &old) && old.sa_handler != SIG_DFL)
			printf("signal %d is %s\n", sig,
			       old.sa_handler == SIG_IGN ? "ignored" : "handled");
	}
}

/* ---- masks and waits ---- */

static void all_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void *wait_for_signals(void *unexpected)
{
	sigset_t all;
	int sig;

	sigfillset(&all);
	while (!sigwait(&all, &sig) && sig != SIGTERM) {
		if (sig == SIGUSR1)
			burn(2);
		else
			++*(int *)unexpected;
	}
	return NULL;
}

static void send_usr1(void)
{
	kill(getpid(), SIGUSR1);
}

static void thread_in_sigwait(void)
{
	int unexpected = 0;
	pthread_t thread;

	all_blocked();
	pthread_create(&thread, NULL, wait_for_signals, &unexpected);
	run_loop(100, send_usr1);
	kill(getpid(), SIGTERM);
	pthread_join(thread, NULL);
	printf("unexpected signals: %d\n", unexpected);
}

static void *wait_for_info(void *unexpected)
{
	const struct timespec while_ = { 30, 0 };
	siginfo_t info = { .si_signo = 0 };
	sigset_t all;

	sigfillset(&all);
	while (sigtimedwait(&all, &info, &while_) > 0 && info.si_signo != SIGTERM) {
		if (info.si_signo == SIGUSR1)
			burn(2);
		else
			++*(int *)unexpected;
	}
	return NULL;
}

static void thread_in_sigtimedwait(void)
{
	int unexpected = 0;
	pthread_t thread;

	all_blocked();
	pthread_create(&thread, NULL, wait_for_info, &unexpected);
	run_loop(100, send_usr1);
	kill(getpid(), SIGTERM);
	pthread_join(thread, NULL);
	printf("unexpected signals: %d\n", unexpected);
}

static int signals_fd;
static int of_usr1, of_others;

static void read_signals(void)
{
	struct signalfd_siginfo info;

	kill(getpid(), SIGUSR1);
	while (read(signals_fd, &info, sizeof(info)) == sizeof(info)) {
		of_usr1 += info.ssi_signo == SIGUSR1;
		of_others += info.ssi_signo != SIGUSR1;
	}
}

static void signals_by_descriptor(void)
{
	sigset_t all;

	sigfillset(&all);
	all_blocked();
	signals_fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	run_loop(100, read_signals);
	printf("by descriptor: %d, others: %d\n", of_usr1, of_others);
}

static void mask_as_it_was(void)
{
	sigset_t mask;

	run_loop(60, NULL);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(&mask, sig) > 0)
			printf("signal %d is blocked\n", sig);
	sigpending(&mask);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(&mask, sig) > 0)
			printf("signal %d is pending\n", sig);
}

/* ---- calls that a signal would interrupt ---- */

static void sleeps_are_whole(void)
{
	int interrupted = 0;

	run_loop(5, NULL);
	for (int i = 0; i < 50; i++) {
		const struct timespec ms = { 0, 1000000 };

		burn(1);
		interrupted += nanosleep(&ms, NULL) != 0;
	}
	printf("interrupted: %d\n", interrupted);
}

const struct shape signal_shapes[] = {
	{ "alternate_stack", alternate_stack },
	{ "no_alternate_stack", no_alternate_stack },
	{ "own_real_timer", own_real_timer },
	{ "own_virtual_timer", own_virtual_timer },
	{ "own_profiling_timer", own_profiling_timer },
	{ "profiling_timer_late", profiling_timer_late },
	{ "posix_timers", posix_timers },
	{ "profiling_signal_default", profiling_signal_default },
	{ "profiling_signal_ignored", profiling_signal_ignored },
	{ "profiling_signal_handled", profiling_signal_handled },
	{ "all_signals_reset", all_signals_reset },
	{ "each_signal_as_it_was", each_signal_as_it_was },
	{ "thread_in_sigwait", thread_in_sigwait },
	{ "thread_in_sigtimedwait", thread_in_sigtimedwait },
	{ "signals_by_descriptor", signals_by_descriptor },
	{ "mask_as_it_was", mask_as_it_was },
	{ "sleeps_are_whole", sleeps_are_whole },
	{ NULL, NULL },
};
