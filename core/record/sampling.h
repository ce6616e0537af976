/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: what the recorder was asked to sample, for core/sample/, which does it. */

#ifndef D9_RECORD_SAMPLING_H
#define D9_RECORD_SAMPLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Set when a recorder starts; read by the flush thread at each tick, and by loop threads. */
struct d9__sampling {
	_Atomic(uint32_t) cpu_hz;    /* of CPU time; 0: off */
	_Atomic(bool) all_threads;   /* not only those that run loops */
	_Atomic(uint64_t) idle_ns;   /* mean of waits between two dumps of tasks */
	_Atomic(uint64_t) segment_ns; /* as long as a segment lasts */
	_Atomic(uint64_t) accept_queue_ns; /* least time between two looks at one accept queue */
};

extern struct d9__sampling d9__sampling;

/* Where the stack of the thread in a slot lies, by the slot's index; both 0: not known.  Written by the thread itself. */
struct d9__slot_stack {
	_Atomic(uintptr_t) low, high;
};

extern struct d9__slot_stack d9__slot_stacks[];

#endif /* D9_RECORD_SAMPLING_H */
