/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between: the time from where a thread leaves its loop to where it enters one again.  Programs
 * that go round their loop by themselves work there, and no callback tells of it.
 */

#pragma once

#include <stdint.h>

#include "base/time.h"
#include "loop/thread_state.h"
#include "ring/gate.h"
#include "ring/slot.h"

/* From here on each is told; of shorter ones a sum, at most this often. */
#define D9__BETWEEN_TELL_NS  D9__MS_NS
#define D9__BETWEEN_EVERY_NS D9__SECOND_NS

/*
 * This thread has left its outermost loop.  |poll_ns| is the end of its latest poll, 0 where the
 * program's code may have run since; if nothing was stamped since, that is when it left, which
 * saves a look at the clock.  A gate that was opened anew has to be seen first: nothing is known of
 * the time before.
 */
static inline void d9__between_begin(struct d9__thread *thread, uint64_t poll_ns)
{
	struct d9__slot *slot = d9__self.slot;
	uint64_t ns = 0;

	if (thread->gate && thread->gate == d9__gate_word() && d9__slot_is_real(slot))
		ns = poll_ns && poll_ns == slot->last_ns ? poll_ns : d9__slot_now(slot);
	thread->between.left_ns = ns;
}

static inline void d9__between_add(struct d9__between_rounds *between, uint64_t took_ns)
{
	between->calls++;
	between->total_ns += took_ns;
	if (took_ns > between->max_ns)
		between->max_ns = took_ns;
}

/* The half of d9__between_end() for what is to be written, or begins a sum. */
void d9__between_tell(struct d9__thread *thread, struct d9__slot *slot, uint64_t from_ns,
		      uint64_t ns);

/* This thread is in a loop again since |ns|, a stamp of now.  Before its stage is changed. */
static inline void d9__between_end(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	struct d9__between_rounds *between = &thread->between;
	uint64_t from_ns = between->left_ns, took_ns = ns - from_ns;

	between->left_ns = 0;
	/* In another stage it ran or waited where no entry was seen; stopped, it is in no trace. */
	if (!from_ns || thread->stage != D9__STAGE_OUTSIDE ||
	    thread->odd & (D9__ODD_NO_WORKER | D9__ODD_STOPPED))
		return;
	if (took_ns >= D9__BETWEEN_TELL_NS || ns - between->since_ns >= D9__BETWEEN_EVERY_NS) {
		d9__between_tell(thread, slot, from_ns, ns);
		return;
	}
	d9__between_add(between, took_ns);
}

/* Write at |ns| what is not written yet: this thread ends. */
void d9__between_tell_rest(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);
