/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/ready.h"

#include "loop/loops.h"
#include "loop/thread_state.h"
#include "loop/wakes.h"
#include "ring/gate.h"

/* The stamp of the poll that ended last, if nothing was recorded since; else 0. */
static uint64_t latest_end(const struct d9__thread *thread)
{
	struct d9__slot *slot = d9__self.slot;

	return thread && d9__slot_is_real(slot) && thread->shared_ns == slot->last_ns
		       ? thread->shared_ns
		       : 0;
}

void d9__ready_again(struct d9_loop *loop, uint64_t key)
{
	struct d9__thread *thread = d9__thread_peek();
	const struct d9__cached_task *cached;
	uint64_t ns = latest_end(thread);

	if (!d9__gate_open(D9__GATE_WAKE) || !ns || thread->resume_ns ||
	    thread->odd & D9__ODD_NO_WORKER)
		return;
	cached = d9__task_cache_get(&thread->cache, key);
	if (!cached || cached->loop != loop || !d9__task_is(cached->task, cached->emit.id) ||
	    atomic_load_explicit(&cached->task->spawned, memory_order_relaxed) != thread->epoch ||
	    atomic_load_explicit(&loop->owner, memory_order_relaxed) != thread ||
	    atomic_load_explicit(&cached->task->wakes, memory_order_relaxed))
		return;
	d9__wakes_stays_ready(thread, cached->task, ns);
}
