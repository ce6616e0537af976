/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU signal: by which signal samples come, and what the program itself has set for that one.
 *
 * Where the program's calls of sigaction(2) and its like are seen, it is SIGPROF, else a real-time signal that is
 * not in use.  When the program sets an action for it, all that is ours is gone before, and another signal is chosen; a program
 * that only asks finds what it had set.  Where they are not seen it is SIGURG: a late one is ignored by default.
 */

#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Above the index of a sampled thread, in the value of a signal. */
#define D9__CPU_SIGNAL_MAGIC 0xd9d90000u

/* The signal that samples come by; 0: none.  Written under the lock below. */
extern _Atomic(int) d9__cpu_signal;

/*
 * Redirects the program's calls; whether they are seen now.  Set before the first sampler starts, if at all; called by
 * the flush thread.
 */
extern bool (*d9__cpu_signal_guard)(void);

typedef void d9__cpu_signal_fn(int signal, siginfo_t *info, void *context);

/*
 * Choose a signal and have it call |handler|.  |stop| ends all timers that send it.  The signal, or -EBUSY.
 * Flush thread, as the next three.
 */
int d9__cpu_signal_take(d9__cpu_signal_fn *handler, void (*stop)(void));

/* Whether |signal|, which was taken, is ours still.  *given: the program wanted it, and another one may be taken. */
bool d9__cpu_signal_is_ours(int signal, bool *given);

/* In a forked child: true if the signal that the parent took still is ours here. */
bool d9__cpu_signal_fork_child(void);

/* While it is locked, no call of the program takes the signal away.  With all signals blocked. */
void d9__cpu_signal_lock(void);
void d9__cpu_signal_unlock(void);

/* The signal is not of our timers: do what the program has set. */
void d9__cpu_signal_pass_on(int signal);

/* ---- for the program's calls ---- */

/* Whether |signal|, which is to get an action, is ours: then d9__cpu_signal_give_up() comes before. */
static inline bool d9__cpu_signal_is(int signal)
{
	return __builtin_expect(signal == atomic_load_explicit(&d9__cpu_signal, memory_order_relaxed), 0) && signal;
}

/* Whether it is one of |set|. */
static inline bool d9__cpu_signal_is_in(const sigset_t *set)
{
	int signal = atomic_load_explicit(&d9__cpu_signal, memory_order_relaxed);

	return signal && set && sigismember(set, signal) == 1;
}

/*
 * The program is about to set an action for |signal|: nothing of ours comes by it from now on, and its action is what the
 * program had set.  In a child that has no recorder, as that of vfork(), only the latter.  Async-signal-safe, keeps errno.
 */
void d9__cpu_signal_give_up(int signal);

/* The program has set something for |signal|: others come first when one is chosen. */
void d9__cpu_signal_note(int signal);

/* |action| is what the kernel told; if it is ours, it becomes what the program had set. */
void d9__cpu_signal_hide(struct sigaction *action);

/* Whether the signal that |info| tells of is a sample. */
static inline bool d9__cpu_signal_is_sample(const siginfo_t *info)
{
	return info->si_code == SI_TIMER && ((uint32_t)info->si_value.sival_int & 0xffff0000u) == D9__CPU_SIGNAL_MAGIC;
}
