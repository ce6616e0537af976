/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: what the recorder was asked to sample, for core/sample/, which does it. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct d9_options;

/* Set when a recorder starts; read by the flush thread at each tick, and by loop threads. */
struct d9__sampling {
	_Atomic(uint32_t) cpu_hz;    /* of CPU time; 0: off */
	_Atomic(bool) all_threads;   /* not only those that run loops */
	_Atomic(bool) thread_made; /* since the sampler looked for threads, the program made one */
	_Atomic(uint64_t) idle_ns;   /* mean of waits between two dumps of tasks */
	_Atomic(uint64_t) segment_ns; /* as long as a segment lasts */
	_Atomic(uint64_t) accept_queue_ns; /* least time between two looks at one accept queue */
	_Atomic(bool) blocking;	     /* time the calls that can block, in callbacks */
	_Atomic(bool) io;	     /* count the results of reads, writes and accepts */
	_Atomic(bool) guard_signals; /* the program does not meet the signal of samples */
	_Atomic(bool) unguarded_tsc; /* threads that may not read the time are recorded all the same */
	_Atomic(bool) unguarded_locking; /* mlockall() is as the kernel has it */
	_Atomic(uint32_t) cpu_backend; /* enum d9_cpu_backend */
	_Atomic(bool) off_cpu;	     /* stacks where threads leave the CPU, too */
	_Atomic(uint64_t) due_ns;    /* when the flush thread is to look at the latest; 0: whenever it does */
	_Atomic(uint64_t) memory_rate; /* mean bytes between sampled allocations; 0: off */
	_Atomic(uint64_t) memory_seed; /* 0: none was asked for */
	_Atomic(bool) memory_live_set; /* frees are recorded, too */
};

extern struct d9__sampling d9__sampling;

/* As resolved |options| ask. */
void d9__sampling_set(const struct d9_options *options);

/* Of these those of memory alone, before a recorder starts. */
void d9__sampling_set_memory(const struct d9_options *options);

/* Where the stack of the thread in a slot lies, by the slot's index; both 0: not known.  Written by the thread itself. */
struct d9__slot_stack {
	_Atomic(uintptr_t) low, high;
};

extern struct d9__slot_stack d9__slot_stacks[];
