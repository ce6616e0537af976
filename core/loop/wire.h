/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire: the records of a worker that polls, waits and wakes have in common, and the state that they
 * leave the trace in.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/tasks.h"
#include "loop/thread_state.h"
#include "ring/slot.h"

/* End the open poll, if there is one. */
void d9__wire_close(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);

/* Write the second piece that is due, if one is: before a record about the running task. */
void d9__wire_resume(struct d9__thread *thread, struct d9__slot *slot);

void d9__wire_park(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);
void d9__wire_unpark(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);

/* Write TaskTerminate for each; for a task that runs on this thread, when its callback returns. */
void d9__wire_ended(struct d9__slot *slot, uint64_t ns, const struct d9__tasks_ended *ended);

/* ---- the solo task, see once.c ---- */

static inline void d9__wire_solo_forget(struct d9__thread *thread)
{
	atomic_store_explicit(&thread->solo.id, 0, memory_order_relaxed);
}

/*
 * True if it is in the trace of this process.  A forked child's trace has no task that its parent
 * began.
 */
static inline bool d9__wire_solo_is_spawned(const struct d9__thread *thread)
{
	return atomic_load_explicit(&thread->solo.spawned, memory_order_relaxed) == thread->epoch;
}

/* End the solo task of |thread| if it is |task|; |slot| NULL: unrecorded.  False: it is not. */
bool d9__wire_solo_ended(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
			 uint64_t task);
