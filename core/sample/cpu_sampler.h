/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU sampler: which code threads are in, looked at each time they have used some CPU time.
 *
 * The flush thread gives each sampled thread a timer of its own CPU time.  Its signal interrupts the thread, and the
 * handler leaves the call stack in the side ring of the flush thread's slot.  A thread that sleeps costs nothing.
 *
 * The signal is SIGPROF if nobody uses it when the first thread is sampled, else the highest real-time signal that
 * nobody uses.  Where the program takes the signal over later, it is the program's: sampling ends, and the trace says so.
 */

#ifndef D9_SAMPLE_CPU_SAMPLER_H
#define D9_SAMPLE_CPU_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

struct d9__slot;

/*
 * A tick, after d9__sampled_look(): its threads get timers, and others lose theirs.  Samples go into the side ring of
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

#endif /* D9_SAMPLE_CPU_SAMPLER_H */
