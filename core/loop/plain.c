/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks that make system calls leave little of this in the processor's first caches: it is kept
 * short, and what it needs lies together in few lines.
 */
#include "config.h"

#include "loop/adapter.h"
#include "loop/plain.h"

#include "loop/polls.h"
#include "loop/ready.h"
#include "record/recorder.h"
#include "ring/gate.h"

/* ---- begin ---- */

/* False: nothing happened. */
D9__EMIT_PLAIN bool begin(struct d9_poll *poll, uint32_t gate)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	uint64_t ns;

	return d9__plain_is_usual(thread, slot, poll, gate) &&
	       d9__plain_stamp(thread, slot, poll, &ns) &&
	       d9__plain_begin_at(thread, slot, poll, ns, false);
}

/* A forked child begins with its gate closed, so that a living one pays nothing. */
static inline bool is_child_pending(void)
{
	/* relaxed: as in d9__recorder_child_check() */
	return atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed) != 0;
}

/* Nothing but three loads while recording is off. */
void d9_poll_begin(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();

	if (__builtin_expect(gate & D9__GATE_LOOP, 1)) {
		if (__builtin_expect(poll->task.flags & D9_TASK_RUNS_ONCE || !begin(poll, gate), 0))
			d9__polls_begin(poll, gate);
		return;
	}
	poll->task_id = 0;
	if (__builtin_expect(is_child_pending(), 0))
		d9__poll_begin_other(poll);
}

bool d9__poll_begin_known(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();

	return __builtin_expect(gate & D9__GATE_LOOP, 1) && __builtin_expect(begin(poll, gate), 1);
}

/* ---- end ---- */

/* False: nothing happened. */
D9__EMIT_PLAIN bool end(struct d9_poll *poll, uint32_t gate, uint64_t *out_ns)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	uint64_t published, ns;

	if (__builtin_expect(!d9__thread_exists(thread) || !d9__slot_is_real(slot) ||
				     !d9__slot_try_now(slot, &ns) ||
				     !d9__poll_is_plain(thread, poll, gate, ns),
			     0))
		return false;
	published = d9__emit_plain_enter(slot, ns);
	if (__builtin_expect(!published, 0))
		return false;
	d9__emit_plain_poll_end(slot, published, ns, thread->head);
	d9__poll_pop_plain(thread, poll, ns);
	*out_ns = ns;
	return true;
}

void d9_poll_end(struct d9_poll *poll)
{
	uint64_t ns;

	if (__builtin_expect(!poll->task_id, 0))
		return;
	if (__builtin_expect(!end(poll, d9__gate_word(), &ns), 0))
		d9__polls_end(poll);
}

/* ---- end, and the task stays ready ---- */

/* |task| was polled as |poll| says, by this thread.  The end at |ns| is its wake. */
static inline void stay_ready(const struct d9__thread *thread, const struct d9__slot *slot,
			      const struct d9__cached_task *cached, uint64_t ns)
{
	struct d9__task *task = cached->task;

	if (!d9__task_is(task, cached->emit.id) ||
	    atomic_load_explicit(&task->wakes, memory_order_relaxed))
		return;
	atomic_store_explicit(&task->polled_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&task->woken,
			      slot->stamp << 16 | D9__WOKEN_WORKER(thread->found) << 8 |
				      D9_WAKE_DEFERRED | D9__WOKEN_BY_NONE,
			      memory_order_relaxed);
}

/* False: nothing happened. */
static inline bool end_ready(struct d9_poll *poll, uint32_t gate)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	uint64_t id = poll->task_id, ns;
	const struct d9__cached_task *cached;

	if (!(gate & D9__GATE_WAKE) || d9__old_events() || !end(poll, gate, &ns))
		return false;
	cached = d9__task_cache_get(&thread->cache, poll->task.key);
	if (cached && cached->emit.id == id && cached->loop == poll->loop)
		stay_ready(thread, slot, cached, ns);
	return true;
}

void d9__poll_end_ready(struct d9_poll *poll)
{
	if (__builtin_expect(!poll->task_id || end_ready(poll, d9__gate_word()), 1))
		return;
	d9_poll_end(poll);
	d9__ready_again(poll->loop, poll->task.key);
}
