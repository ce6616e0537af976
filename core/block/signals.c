/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: the program does not meet the signal that samples come by.
 *
 * Calls of the program that set an action for it, ask for one, block it or wait for it
 * (signal_waits.c) are redirected: it finds what it had set itself, and gets its own signals alone.
 * All of it is async-signal-safe, as the calls are.  Not seen are those that the C library makes
 * itself, as in siglongjmp(), and those by syscall().
 */
#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "block/call.h"
#include "block/signal_waits.h"
#include "hook/libc_calls.h"
#include "record/sampling.h"
#include "sample/cpu_sampler.h"
#include "sample/cpu_signal.h"

typedef void (*handler_t)(int);

/* ---- actions ---- */

/*
 * The signal may be chosen while the real function is under way: then it is called once more.  |set| says whether this call
 * sets an action; what a second call answers is not asked.
 */
#define SETTING(type, function, signal, set, params, ...)                                          \
	static type(*real_##function) params;                                                      \
                                                                                                   \
	static type hook_##function params                                                         \
	{                                                                                          \
		type result;                                                                       \
                                                                                                   \
		if (set)                                                                           \
			d9__cpu_signal_note(signal);                                               \
		if (set && d9__cpu_signal_is(signal))                                              \
			d9__cpu_signal_give_up(signal);                                            \
		result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                             \
		if (set && d9__cpu_signal_is(signal)) {                                            \
			d9__cpu_signal_give_up(signal);                                            \
			D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                              \
		}                                                                                  \
		return result;                                                                     \
	}

/* profil() and sprofil() set an action for SIGPROF inside the C library. */
#define SETTERS(X) \
	X(handler_t, signal, signal, true, (int signal, handler_t handler), signal, handler) \
	X(handler_t, bsd_signal, signal, true, (int signal, handler_t handler), signal, handler) \
	X(handler_t, sysv_signal, signal, true, (int signal, handler_t handler), signal, handler) \
	X(handler_t, __sysv_signal, signal, true, (int signal, handler_t handler), signal, handler) \
	X(handler_t, sigset, signal, true, (int signal, handler_t handler), signal, handler) \
	X(int, sigignore, signal, true, (int signal), signal) \
	X(int, siginterrupt, signal, true, (int signal, int on), signal, on) \
	X(int, profil, SIGPROF, buf != NULL, \
	  (unsigned short *buf, size_t size, size_t offset, unsigned scale), buf, size, offset, scale) \
	X(int, sprofil, SIGPROF, n > 0, (void *parts, int n, struct timeval *period, unsigned flags), parts, n, period, flags)

SETTERS(SETTING)

static int (*real_sigaction)(int signal, const struct sigaction *action, struct sigaction *old);

static int hook_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	int result;

	if (action)
		d9__cpu_signal_note(signal);
	if (action && d9__cpu_signal_is(signal))
		d9__cpu_signal_give_up(signal);
	result = D9__BLOCK_REAL(real_sigaction)(signal, action, old);
	if (!result && old)
		d9__cpu_signal_hide(old);
	if (action && d9__cpu_signal_is(signal)) {
		d9__cpu_signal_give_up(signal);
		D9__BLOCK_REAL(real_sigaction)(signal, action, NULL);
	}
	return result;
}

static void profile(void)
{
	d9__cpu_signal_note(SIGPROF);
	if (d9__cpu_signal_is(SIGPROF))
		d9__cpu_signal_give_up(SIGPROF);
}

static void (*real_monstartup)(unsigned long low, unsigned long high);
static void (*real___monstartup)(unsigned long low, unsigned long high);
static void (*real_moncontrol)(int on);

static void hook_monstartup(unsigned long low, unsigned long high)
{
	profile();
	D9__BLOCK_REAL(real_monstartup)(low, high);
}

static void hook___monstartup(unsigned long low, unsigned long high)
{
	profile();
	D9__BLOCK_REAL(real___monstartup)(low, high);
}

static void hook_moncontrol(int on)
{
	if (on)
		profile();
	D9__BLOCK_REAL(real_moncontrol)(on);
}

/* ---- masks ---- */

/* The sampler leaves this thread before the program blocks its signal: the handler still gets one that is pending, and none comes later. */
#define BLOCKING(type, function, blocks, params, ...)                                              \
	static type(*real_##function) params;                                                      \
                                                                                                   \
	static type hook_##function params                                                         \
	{                                                                                          \
		bool ours = blocks;                                                                \
		type result;                                                                       \
                                                                                                   \
		if (ours)                                                                          \
			d9__cpu_sampler_leave();                                                   \
		result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                             \
		if (ours)                                                                          \
			d9__cpu_sampler_blocked();                                                 \
		return result;                                                                     \
	}

#define BLOCKERS(X)                                                                                \
	X(int, pthread_sigmask, how != SIG_UNBLOCK && d9__cpu_signal_is_in(set),                   \
	  (int how, const sigset_t *set, sigset_t *old), how, set, old)                            \
	X(int, sigprocmask, how != SIG_UNBLOCK && d9__cpu_signal_is_in(set),                       \
	  (int how, const sigset_t *set, sigset_t *old), how, set, old)                            \
	X(int, sighold, d9__cpu_signal_is(signal), (int signal), signal)                           \
	X(int, sigblock, mask &&d9__cpu_signal_is(SIGPROF) && mask >> (SIGPROF - 1) & 1,           \
	  (int mask), mask)                                                                        \
	X(int, sigsetmask, mask &&d9__cpu_signal_is(SIGPROF) && mask >> (SIGPROF - 1) & 1,         \
	  (int mask), mask)

BLOCKERS(BLOCKING)

/* ---- redirection ---- */

#define SETTER_HOOK(type, function, ...) D9__LIBC_HOOK(function),
#define BLOCKER_HOOK(type, function, ...) D9__LIBC_HOOK(function),

static const struct d9__got_hook hooks[] = {
	SETTERS(SETTER_HOOK) BLOCKERS(BLOCKER_HOOK) D9__LIBC_HOOK(sigaction),
	D9__LIBC_HOOK(monstartup),
	D9__LIBC_HOOK(__monstartup),
	D9__LIBC_HOOK(moncontrol),
};

static struct d9__got_table table = D9__LIBC_TABLE(hooks);

static bool redirect(void)
{
	if (!atomic_load_explicit(&d9__sampling.guard_signals, memory_order_relaxed))
		return false;
	/* A checker may bring a sigaction() into the program. */
	if (d9__libc_is_out_of_reach(&table) || d9__libc_is_out_of_reach(dlsym(RTLD_DEFAULT, "sigaction")))
		return false;
	d9__signal_waits_watch();
	return !d9__got_install(&table);
}

/* Before the first sampler starts, who calls it. */
__attribute__((constructor)) static void offer(void)
{
	d9__cpu_signal_guard = redirect;
}
