/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits: since when tasks wait, and the call stacks that armed them.  They become TaskDumpEvents.
 *
 * A wait begins when the callback that armed the task returns, as nothing can run before; of a task that stays armed,
 * when its own callback returns.  It ends when the task's next poll begins.  Then a dump is written with a probability of
 * 1 - exp(-T / mean), T being how long it lasted: the thread counts down by the lengths of all waits, and draws where
 * the next dump falls from an exponential distribution.
 *
 * Only while the gate has D9__GATE_ARM; then no poll is a plain one.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/tasks.h"

struct d9__frame_running;
struct d9__slot;
struct d9__thread;

#define D9__WAITS_ARMED 30u

/* Of one thread.  All zero at first. */
struct d9__waits {
	uint64_t random;
	uint64_t left_ns; /* of waits, until the next dump; 0: not drawn yet */
	uint32_t n;
	/* The tasks that running callbacks armed; of more, the wait counts from the moment of the latest record. */
	struct d9__armed {
		struct d9__task *task;
		uint64_t id;
	} armed[D9__WAITS_ARMED];
};

/* From now on recorders dump as d9__sampling says.  Idempotent. */
void d9__waits_start(void);

/* The poll of |key| begins at |ns|: what it waited for is over. */
void d9__waits_end(struct d9__thread *thread, struct d9__slot *slot, uint32_t library, uint64_t key, uint64_t ns);

/* |frame|'s callback returned at |ns|: what it armed waits from now on, and so does its own task if it stays armed. */
void d9__waits_begin(struct d9__thread *thread, const struct d9__frame_running *frame, uint64_t ns);

/* Flush thread, whose slot is |own|: dump what waits since long and was not dumped yet.  For the end of a segment. */
void d9__waits_tell(struct d9__slot *own, uint64_t now_ns);
