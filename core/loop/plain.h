/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain poll: outermost, of a known task, between wakes and polls of the same kind.  It is what
 * nearly all polls are, so d9_poll_begin() and d9_poll_end() ask for it first, in straight lines
 * without a call; whatever else a poll may be is in polls.c.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "loop/thread_state.h"
#include "record/triggers.h"
#include "ring/slot.h"

/* ---- what polls.c makes of the others ---- */

/* |gate| is the gate's word, open or not. */
void d9__poll_begin_slow(struct d9_poll *poll, uint32_t gate);
void d9__poll_end_slow(struct d9_poll *poll);

/*
 * The task |key|, whose poll ended last on this thread, stays ready: its next wake has the stamp of that
 * end.  In ready.c.
 */
void d9__wake_again(struct d9_loop *loop, uint64_t key);

/* ---- what they need from here ---- */

/* Begin |poll| at |ns| in the plain way after all, if only the chunk is news.  False: nothing happened. */
bool d9__poll_begin_again(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
			  uint64_t ns);

/* |poll| of |task|, whose callsite it names, was begun: remember what makes the next one plain. */
void d9__poll_know(struct d9__thread *thread, const struct d9__slot *slot,
		   const struct d9_poll *poll, uint32_t library, struct d9__task *task);

/* Does the previous poll's end serve as the start of the next?  Not after any other stamp. */
static inline bool d9__poll_is_shared(const struct d9__thread *thread, const struct d9__slot *slot,
				      bool batched)
{
	return batched && thread->shared_ns == slot->last_ns;
}

/* One callback runs, its PollStart is the latest record but for wakes, and it is |poll|'s. */
static inline bool d9__poll_is_plain(const struct d9__thread *thread, const struct d9_poll *poll,
				     uint32_t gate, uint64_t ns)
{
	const struct d9__frame_running *frame = &thread->frames[0];

	return thread->mode == d9__mode(D9__ODD_OPEN | D9__ODD_FRAMES, D9__STAGE_ROUND, 1) &&
	       frame->address == (uintptr_t)poll && !frame->once && thread->gate == gate &&
	       ns - frame->start_ns <= atomic_load_explicit(&d9__long_poll_ns, memory_order_relaxed);
}

static inline void d9__poll_pop_plain(struct d9__thread *thread, struct d9_poll *poll, uint64_t ns)
{
	thread->mode = d9__mode(0, D9__STAGE_ROUND, 0);
	thread->shared_ns = poll->flags & D9_POLL_BREAKS_BATCH ? 0 : ns;
	poll->task_id = 0;
}
