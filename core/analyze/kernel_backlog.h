/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel backlog: the part of a loop's work that would not have waited, had the kernel never run
 * something else.
 *
 * While the kernel keeps a loop's thread from running, what others send piles up, and the loop's
 * next look for events finds in one heap what would have come one after the other.  With the time
 * that the kernel took up to that look the loop could have done as much of the work: that much is
 * excused.  Time that a call which is going on loses to the kernel excuses nothing of its own
 * round, because that was ready before.
 */

#pragma once

#include <stdint.h>

struct d9__kernel_backlog {
	uint64_t excuse_ns; /* of work that comes in this round */
	uint64_t taken_ns;  /* by the kernel in this round, an excuse for the next */
};

/*
 * The loop began to look for events at |park_ns| and found some at |ns|, |wait_ns| of that ready
 * without a CPU.  If it slept, nothing had been left to be done.
 */
void d9__kernel_backlog_round(struct d9__kernel_backlog *natural, uint64_t park_ns, uint64_t ns, uint64_t wait_ns);

/* A call of |ns| has ended: how much of it is excused. */
uint64_t d9__kernel_backlog_call(struct d9__kernel_backlog *natural, uint64_t ns);

/* Of that call, which took |ns| and was excused for |excused_ns|, the kernel took |taken_ns|: as above. */
uint64_t d9__kernel_backlog_taken(struct d9__kernel_backlog *natural, uint64_t ns, uint64_t excused_ns,
			   uint64_t taken_ns);
