/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "sample/cpu_signal.h"

_Atomic(int) d9__cpu_signal;
bool (*d9__cpu_signal_guard)(void);

/* Its holder has all signals blocked, because a handler of the program that sets actions would wait for its own thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under |lock|; the handler and children read them while the signal is ours. */
static d9__cpu_signal_fn *handler;
static void (*stop_timers)(void);
static struct sigaction previous; /* what the program had set: the default action, with its flags */
static _Atomic(pid_t) owner;	  /* the process whose timers there are */

static _Atomic(uint64_t) named; /* signals for which the program has set something */

/* ---- choosing one: flush thread ---- */

static uint64_t bit_of(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

static bool is_named(int signal)
{
	return atomic_load_explicit(&named, memory_order_relaxed) & bit_of(signal);
}

static bool is_handled(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO || action->sa_handler != SIG_DFL;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == handler;
}

/* From here on the program's calls that are seen wait; one that came between the two looks is not undone. */
static bool take_locked(int signal)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK }, before;

	if (sigaction(signal, NULL, &previous) || is_handled(&previous))
		return false;
	atomic_store(&d9__cpu_signal, signal);
	sigfillset(&action.sa_mask);
	if (!sigaction(signal, &action, &before) && !is_handled(&before))
		return true;
	if (is_handled(&before))
		sigaction(signal, &before, NULL);
	atomic_store(&d9__cpu_signal, 0);
	return false;
}

/* Choose a signal; those that the program never named come first. */
static int choose_locked(bool again)
{
	if (is_named(SIGPROF) == again && take_locked(SIGPROF))
		return SIGPROF;
	for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--)
		if (is_named(signal) == again && take_locked(signal))
			return signal;
	return 0;
}

int d9__cpu_signal_take(d9__cpu_signal_fn *fn, void (*stop)(void))
{
	bool guarded = d9__cpu_signal_guard && d9__cpu_signal_guard();
	int signal;

	d9__cpu_signal_lock();
	handler = fn;
	stop_timers = stop;
	atomic_store_explicit(&owner, getpid(), memory_order_relaxed);
	if (guarded)
		signal = choose_locked(false);
	else
		signal = take_locked(SIGURG) ? SIGURG : 0;
	if (guarded && !signal)
		signal = choose_locked(true);
	d9__cpu_signal_unlock();
	return signal ? signal : -EBUSY;
}

bool d9__cpu_signal_is_ours(int signal, bool *given)
{
	struct sigaction now;

	*given = atomic_load(&d9__cpu_signal) != signal;
	return !*given && !sigaction(signal, NULL, &now) && is_ours(&now);
}

bool d9__cpu_signal_fork_child(void)
{
	int signal = atomic_load(&d9__cpu_signal);
	struct sigaction now;

	/* Another thread may have had it, and is not here. */
	pthread_mutex_init(&lock, NULL);
	atomic_store_explicit(&owner, getpid(), memory_order_relaxed);
	if (signal && !sigaction(signal, NULL, &now) && is_ours(&now))
		return true;
	atomic_store(&d9__cpu_signal, 0);
	return false;
}

void d9__cpu_signal_lock(void)
{
	pthread_mutex_lock(&lock);
}

void d9__cpu_signal_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* ---- the program's own ---- */

/* Only a signal with its default action was taken: all but SIGURG end the program when the handler returns, as without us. */
void d9__cpu_signal_pass_on(int signal)
{
	if (signal == SIGURG)
		return;
	sigaction(signal, &previous, NULL);
	raise(signal);
}

void d9__cpu_signal_hide(struct sigaction *action)
{
	if (is_ours(action))
		*action = previous;
}

/* An ignored signal does not wait: what timers sent last is gone then, in all threads. */
static void give_up_locked(int signal)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	stop_timers();
	sigaction(signal, &ignore, NULL);
	sigaction(signal, &previous, NULL);
	atomic_store(&d9__cpu_signal, 0);
}

/* Its actions are its own, its memory may be its parent's. */
static void give_up_in_child(int signal)
{
	struct sigaction now;

	if (!sigaction(signal, NULL, &now) && is_ours(&now))
		sigaction(signal, &previous, NULL);
}

static void give_up(int signal)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	d9__cpu_signal_lock();
	if (atomic_load(&d9__cpu_signal) == signal)
		give_up_locked(signal);
	d9__cpu_signal_unlock();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void d9__cpu_signal_give_up(int signal)
{
	int saved = errno;

	if (getpid() != atomic_load_explicit(&owner, memory_order_relaxed))
		give_up_in_child(signal);
	else
		give_up(signal);
	errno = saved;
}

void d9__cpu_signal_note(int signal)
{
	if (signal > 0 && signal <= 64 && !is_named(signal))
		atomic_fetch_or_explicit(&named, bit_of(signal), memory_order_relaxed);
}
