/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes: at most one per poll, written where its bytes are cheap: behind the Unpark if possible. */

#pragma once

#include <stdint.h>

#include "loop/tasks.h"
#include "loop/thread_state.h"
#include "ring/slot.h"

/* No end of the wait will be known: what it has found has no wake. */
void d9__wakes_forget(struct d9__thread *thread);

/* Give the tasks that the wait has found the stamp of its end. */
void d9__wakes_found(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);

/*
 * The task of |key|; one that is not known yet gets its number now.  |thread| may be NULL.  NULL:
 * no memory, or its shard is busy.  Keeps errno.
 */
struct d9__task *d9__wakes_task(struct d9__thread *thread, struct d9__slot *slot,
				struct d9_loop *loop, uint64_t key, uint32_t epoch);

/*
 * The task |key|, whose poll ended last on this thread, stays ready, as idle sources do: its next
 * wake has the stamp of that end.
 */
void d9__wakes_ready_again(struct d9_loop *loop, uint64_t key);

/* The wake that is to be written with a poll. */
struct d9__wake {
	uint64_t ns; /* 0: nothing */
	uint64_t waker;
	uint32_t worker, reason;
	uint32_t chunk; /* the low half of the stamp of the one with the begin of |waker|'s poll */
	bool fits;	/* PollStart can tell it, if it is in that chunk */
	bool told;	/* an event of the old kind is in the trace */
	bool left;	/* by this thread, for the poll to tell */
};

/* Of PollStart: the latest wait has found its descriptor. */
#define D9__WAKE_OF_UNPARK UINT64_C(1)

/* True if there is anything to tell before |poll| of |task|. */
static inline bool d9__wakes_matter(const struct d9__task *task, const struct d9_poll *poll)
{
	return atomic_load_explicit(&task->wakes, memory_order_relaxed) || poll->ready_ns ||
	       poll->reason;
}

/*
 * Take the announcement, if there is one, for |poll| that starts at |ns|.  |task| NULL: the table
 * does not know it.
 */
void d9__wakes_take(struct d9__thread *thread, struct d9__task *task, const struct d9_poll *poll,
		    uint64_t ns, struct d9__wake *wake);

/* d9__wakes_in_poll(), of a wake that fits. */
uint64_t d9__wakes_tell(const struct d9__thread *thread, const struct d9__slot *slot, uint64_t ns,
			struct d9__wake *wake);

/*
 * Return what the PollStart at |ns|, which will be in the open chunk, tells of |wake|; then
 * |wake->ns| becomes 0. 0: nothing, and what is left of |wake| is to be written before it.
 */
static inline uint64_t d9__wakes_in_poll(const struct d9__thread *thread,
					 const struct d9__slot *slot, uint64_t ns,
					 struct d9__wake *wake)
{
	return wake->fits ? d9__wakes_tell(thread, slot, ns, wake) : 0;
}
