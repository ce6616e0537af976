/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signal waits: a callback that waits for a signal is timed, and no wait of the program ends by the
 * signal that samples come by.
 *
 * All of it is async-signal-safe, as the calls are.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/time.h"
#include "block/call.h"
#include "block/signal_waits.h"
#include "hook/libc_calls.h"
#include "record/sampling.h"
#include "ring/clock.h"
#include "sample/cpu_signal.h"

static bool is_filtered(const sigset_t *set)
{
	return atomic_load_explicit(&d9__sampling.guard_signals, memory_order_relaxed) &&
	       d9__cpu_signal_is_in(set);
}

static int (*real_sigwaitinfo)(const sigset_t *set, siginfo_t *info);
static int (*real_sigtimedwait)(const sigset_t *set, siginfo_t *info,
				const struct timespec *timeout);
static int (*real_sigwait)(const sigset_t *set, int *signal);

/* Wait as the program does, until something is not ours. */
static int wait_for_others(const sigset_t *set, siginfo_t *info)
{
	siginfo_t own;
	int result;

	if (!info)
		info = &own;
	do
		result = D9__BLOCK_REAL(real_sigwaitinfo)(set, info);
	while (result > 0 && d9__cpu_signal_is_sample(info));
	return result;
}

static int sigwaitinfo_of_program(const sigset_t *set, siginfo_t *info)
{
	return is_filtered(set) ? wait_for_others(set, info)
				: D9__BLOCK_REAL(real_sigwaitinfo)(set, info);
}

/* As the C library's own: a handler that ran does not end it. */
static int sigwait_of_program(const sigset_t *set, int *signal)
{
	int saved = errno, result;
	siginfo_t info;

	if (!is_filtered(set))
		return D9__BLOCK_REAL(real_sigwait)(set, signal);
	do
		result = wait_for_others(set, &info);
	while (result < 0 && errno == EINTR);
	if (result > 0)
		*signal = result;
	else
		result = -errno;
	errno = saved;
	return result > 0 ? 0 : -result;
}

static struct timespec left_until(uint64_t until_ns)
{
	uint64_t now_ns = d9__clock_mono_ns(), ns = until_ns > now_ns ? until_ns - now_ns : 0;

	return d9__timespec_of(ns);
}

static int sigtimedwait_of_program(const sigset_t *set, siginfo_t *info,
				   const struct timespec *timeout)
{
	uint64_t until_ns;
	struct timespec left;
	siginfo_t own;
	int result;

	if (!is_filtered(set))
		return D9__BLOCK_REAL(real_sigtimedwait)(set, info, timeout);
	if (!timeout)
		return wait_for_others(set, info);
	if (!info)
		info = &own;
	left = *timeout;
	until_ns = d9__clock_mono_ns() + d9__timespec_ns(&left);
	while ((result = D9__BLOCK_REAL(real_sigtimedwait)(set, info, &left)) > 0 &&
	       d9__cpu_signal_is_sample(info))
		left = left_until(until_ns);
	return result;
}

#define WAITS(X)                                                                                   \
	X(sigwait, (const sigset_t *set, int *signal), set, signal)                                \
	X(sigwaitinfo, (const sigset_t *set, siginfo_t *info), set, info)                          \
	X(sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *timeout),    \
	  set, info, timeout)

#define WAIT(function, params, ...)                                                                \
	static int hook_##function params                                                          \
	{                                                                                          \
		uint64_t begin_ns = d9__block_begin();                                             \
		int result;                                                                        \
                                                                                                   \
		if (__builtin_expect(!begin_ns, 1))                                                \
			return function##_of_program(__VA_ARGS__);                                 \
		result = function##_of_program(__VA_ARGS__);                                       \
		D9__BLOCK_END(begin_ns, #function, D9__BLOCK_REAL(real_##function), -1);           \
		return result;                                                                     \
	}

WAITS(WAIT)

#define HOOK(function, ...) D9__LIBC_HOOK(function),

static const struct d9__got_hook hooks[] = { WAITS(HOOK) };

static struct d9__got_table table = D9__LIBC_TABLE(hooks);

void d9__signal_waits_watch(void)
{
	d9__libc_watch(&table);
}
