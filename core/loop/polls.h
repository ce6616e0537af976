/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls: what callbacks and waits become on the wire, where neither nests.
 *
 * Per worker the trace alternates: Unpark, then any number of PollStart/PollEnd pairs, then Park.
 * A callback that runs a loop is written in pieces: its piece ends where the inner loop's first
 * record stands, and the next piece begins where the inner loop was left.  That next piece is held
 * back (resume_ns) until something happens in it: a piece without length is not written.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/tasks.h"
#include "loop/thread_state.h"
#include "ring/slot.h"

/*
 * Write what is missing before a record of this worker at |ns|: the end of an open poll, an
 * Unpark.  False: nothing can be recorded.
 */
bool d9__polls_settle(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);

/* Begin and end |poll| in whatever way it takes.  |gate| is the gate's word, open or not. */
void d9__polls_begin(struct d9_poll *poll, uint32_t gate);
void d9__polls_end(struct d9_poll *poll);

/*
 * |task| was registered with |loop|.  Where many are, its spawn is written now: what heaps up are
 * often tasks that never run, and nothing else would tell which.
 */
void d9__polls_task_armed(struct d9_loop *loop, struct d9__task *task);

/* Write |task| into the trace if it is not there.  False: this thread does not run |loop|, or nothing is recorded. */
bool d9__polls_task_tell(struct d9_loop *loop, struct d9__task *task);

/*
 * The task of |key|, by the thread's cache.  NULL: unknown.  |thread| may be NULL.
 */
static inline struct d9__task *d9__polls_task(struct d9__thread *thread, uint32_t library,
					      uint64_t key)
{
	struct d9__cached_task *cached;
	struct d9__task *task;

	if (!thread)
		return d9__tasks_find(library, key);
	cached = d9__task_cache_get(&thread->cache, key);
	if (__builtin_expect(cached && d9__cached_task_is(cached, library), 1))
		return cached->task;
	task = d9__tasks_find(library, key);
	if (task)
		d9__task_cache_put(&thread->cache, library, key, task);
	return task;
}

/* The thread ends: close its poll, park the worker.  Registered with d9__slot_on_exit(). */
void d9__polls_thread_exit(void);

/* Callbacks that an exception or a longjmp() left unfinished. */
uint64_t d9__polls_abandoned(void);
