/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU sampler: which code threads are in, looked at each time they have used some CPU time.
 *
 * The flush thread gives each sampled thread a timer of its own CPU time.  Its signal interrupts the thread, and the
 * handler leaves the call stack in the side ring of the flush thread's slot.  A thread that sleeps costs nothing.
 *
 * Which signal that is, and what becomes of it when the program wants it, cpu_signal.h has.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__slot;

/*
 * A tick, after d9__sampled_look(): its threads get timers, and others lose them.  Samples go into the side ring of
 * |own|.  What is to be said of the source is in |state|.  Flush thread, as the next two.
 */
void d9__cpu_sampler_tick(struct d9__slot *own, uint32_t hz, char *state, size_t size);

/* Nothing is sampled until the next tick. */
void d9__cpu_sampler_rest(void);

/* In a forked child: all timers are the parent's. */
void d9__cpu_sampler_forget(void);

/*
 * From now on no signal of ours comes any more: the calling thread is about to forbid itself system calls, and
 * returning from a handler is one.  Any thread, before that.
 */
void d9__cpu_sampler_end(void);

/*
 * The calling thread is not sampled any more; at the next tick the flush thread looks whether it may be.  Async-signal-safe,
 * takes no lock, keeps errno.
 */
void d9__cpu_sampler_leave(void);

/* The calling thread is never sampled again, or with false it may be. */
void d9__cpu_sampler_bar(bool barred);

/*
 * The calling thread has blocked the signal, and called d9__cpu_sampler_leave() before, so that none waits.  The flush
 * thread may have begun to sample it between the two.
 */
void d9__cpu_sampler_blocked(void);
