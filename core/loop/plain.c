/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks that make system calls leave little of this in the processor's first caches: it is kept
 * short, and what it needs lies together in few lines.
 */
#include "config.h"

#include "loop/adapter.h"
#include "loop/plain.h"

#include <string.h>

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

	return d9__plain_is_usual(thread, slot, poll, gate) && d9__plain_stamp(thread, slot, poll, &ns) &&
	       d9__plain_begin_at(thread, slot, poll, ns);
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

/* True if |poll| may end plainly, at *|ns|.  False: nothing happened. */
D9__EMIT_PLAIN bool ends_plainly(const struct d9__thread *thread, struct d9__slot *slot,
				 const struct d9_poll *poll, uint32_t gate, uint64_t *ns)
{
	return __builtin_expect(d9__thread_exists(thread) && d9__slot_is_real(slot) &&
					d9__slot_try_now(slot, ns) &&
					d9__poll_is_plain(thread, poll, gate, *ns),
				1);
}

/* False: nothing happened. */
static inline bool end(struct d9_poll *poll, uint32_t gate)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	uint64_t published, ns;

	if (!ends_plainly(thread, slot, poll, gate, &ns))
		return false;
	published = d9__emit_plain_enter(slot, ns);
	if (__builtin_expect(!published, 0))
		return false;
	d9__emit_plain_poll_end(slot, published, ns, thread->head);
	d9__poll_pop_plain(thread, poll, ns);
	return true;
}

void d9_poll_end(struct d9_poll *poll)
{
	if (__builtin_expect(!poll->task_id, 0))
		return;
	if (__builtin_expect(!end(poll, d9__gate_word()), 0))
		d9__polls_end(poll);
}

/* ---- end, and the task stays ready ---- */

/* The end and, of the same moment, the wake for the next poll. */
static inline void write_end_ready(struct d9__slot *slot, uint64_t published, uint64_t ns,
				   const struct d9__thread *thread, const struct d9__emit_task *task)
{
	uint8_t *begin = slot->batch + (uint32_t)published, *p;

	p = d9__emit_plain_head(slot, published, D9__EVENT_POLL_END, ns, thread->head, 0) - 1;
	p = d9__wire_put_event_head(p, D9__EVENT_WAKE, 0);
	*p++ = 0; /* no waker */
	memcpy(p, task->wire, 8);
	p += task->id_len;
	*p++ = (uint8_t)thread->worker;
	*p++ = D9_WAKE_DEFERRED;
	slot->worker_state = D9__WORKER_RUNNING;
	d9__emit_plain_leave(slot, published, 2, (uint64_t)(p - begin));
}

/* False: nothing happened. */
static inline bool end_ready(struct d9_poll *poll, uint32_t gate)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	const struct d9__cached_task *cached;
	uint64_t published, ns;

	if (!(gate & D9__GATE_WAKE) || !ends_plainly(thread, slot, poll, gate, &ns))
		return false;
	cached = d9__task_cache_get(&thread->cache, poll->task.key);
	if (!d9__plain_is_of(thread, cached, poll) || !d9__plain_is_same(thread, cached, cached->task, poll) ||
	    atomic_load_explicit(&cached->task->wake, memory_order_relaxed) != D9__WAKE_NONE ||
	    atomic_load_explicit(&cached->task->woken, memory_order_relaxed))
		return false;
	published = d9__emit_plain_enter(slot, ns);
	if (__builtin_expect(!published, 0))
		return false;
	write_end_ready(slot, published, ns, thread, &cached->emit);
	atomic_store_explicit(&cached->task->woken, 1, memory_order_relaxed);
	d9__poll_pop_plain(thread, poll, ns);
	return true;
}

void d9__poll_end_ready(struct d9_poll *poll)
{
	if (__builtin_expect(!poll->task_id || end_ready(poll, d9__gate_word()), 1))
		return;
	d9_poll_end(poll);
	d9__ready_again(poll->loop, poll->task.key);
}
