/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Off the CPU: how long a thread was away after the kernel had taken it off, of which a sample
 * tells.  The time ends with the thread's next sign: a sample of it, or an event of its loop. Where
 * only slices of the time have such samples it ends with the slice: its part of all slices stands
 * for the whole.
 */

#pragma once

#include <stdint.h>

#include <dial9/reader.h>

#include "base/table.h"

struct d9__profile;
struct d9__profile_stack;

/* All zero is empty. */
struct d9__off_cpu {
	struct d9__table threads; /* struct absence by thread; owned */
};

/* Take |event|, of whatever kind, before the profile takes it: it may be a thread's sign. */
void d9__off_cpu_sign(struct d9__profile *profile, const struct d9_event *event);

/* The thread of |event|, a sample with |stack|, which is in the profile, left the CPU.  0 or
 * -ENOMEM. */
int d9__off_cpu_left(struct d9__profile *profile, const struct d9_event *event,
		     struct d9__profile_stack *stack);

/* The newest sample of |worker| was of a call whose length is told: it was no switch. */
void d9__off_cpu_told(struct d9__off_cpu *off_cpu, uint64_t worker);

void d9__off_cpu_release(struct d9__off_cpu *off_cpu);
