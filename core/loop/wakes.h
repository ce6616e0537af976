/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes: at most one per poll, written where its bytes are cheap: behind the Unpark if possible. */

#pragma once

#include <stdint.h>

#include "loop/tasks.h"
#include "loop/thread_state.h"
#include "ring/slot.h"

/* Write the wakes that the wait, which ended at |ns|, reported. */
void d9__wakes_flush_held(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);

/*
 * The task of |key|; one that is not known yet gets its number now.  |thread| may be NULL.  NULL:
 * no memory, or its shard is busy.  Keeps errno.
 */
struct d9__task *d9__wakes_task(struct d9__thread *thread, struct d9__slot *slot,
				struct d9_loop *loop, uint64_t key, uint32_t epoch);

/* The wake that is to be written with a poll. */
struct d9__wake {
	uint64_t ns; /* 0: nothing */
	uint64_t waker;
	uint32_t worker, reason;
};

/* True if there is anything to tell before |poll| of |task|. */
static inline bool d9__wakes_matter(const struct d9__task *task, const struct d9_poll *poll)
{
	return atomic_load_explicit(&task->wake, memory_order_relaxed) != D9__WAKE_NONE ||
	       atomic_load_explicit(&task->woken, memory_order_relaxed) || poll->ready_ns ||
	       poll->reason;
}

/*
 * Take the announcement, if there is one, for |poll| that starts at |ns|.  |task| NULL: the table does
 * not know it.
 */
void d9__wakes_take(struct d9__thread *thread, struct d9__task *task, const struct d9_poll *poll,
		    uint64_t ns, struct d9__wake *wake);
