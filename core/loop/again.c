/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/adapter.h"
#include "loop/again.h"

#include <string.h>

#include "loop/callsites.h"
#include "loop/plain.h"
#include "loop/wakes.h"
#include "ring/gate.h"

/* ---- with a wake ---- */

/* In one go: the wake, if there is one to write, and the start. */
static inline void write_woken(struct d9__slot *slot, uint64_t published, uint64_t ns,
			       const struct d9__thread *thread, const struct d9_poll *poll,
			       const struct d9__emit_task *task, struct d9__wake *wake)
{
	uint8_t *begin = slot->batch + (uint32_t)published, *p = begin;
	uint64_t told = d9__wakes_in_poll(thread, slot, ns, wake);
	bool tells = wake->ns && d9__gate_open(D9__GATE_WAKE);

	if (tells) {
		p = d9__emit_head_at(slot, p, D9__EVENT_WAKE, wake->ns);
		p = d9__varint_put(p, wake->waker);
		memcpy(p, task->wire, 8);
		p += d9__emit_id_len(task);
		*p++ = d9__emit_depth(wake->worker);
		*p++ = (uint8_t)wake->reason;
	}
	p = d9__emit_head_at(slot, p, D9__EVENT_POLL_START, ns);
	*p++ = (uint8_t)thread->worker;
	*p++ = d9__emit_depth(poll->depth);
	memcpy(p, task->wire, sizeof(task->wire));
	p = d9__varint_put(p + task->start_len - D9__EMIT_PLAIN_HEAD_LEN - 1, told);
	slot->worker_state = D9__WORKER_POLLING;
	slot->task = task->id;
	d9__emit_plain_leave(slot, published, tells ? 2 : 1, (uint64_t)(p - begin));
}

/* |cached| is of |poll|, and says the same of its task as the table.  False: nothing happened. */
static bool begin_woken_at(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
			   uint64_t ns, const struct d9__cached_task *cached)
{
	struct d9__wake wake;
	uint64_t published = d9__emit_open(slot);

	if (!published)
		return false;
	/* Not earlier: a signal handler may have changed chunks. */
	if (cached->stamp != slot->stamp) {
		d9__emit_plain_cancel(slot);
		return false;
	}
	d9__wakes_take(thread, cached->task, poll, ns, &wake);
	atomic_store_explicit(&cached->task->polled_ns, ns, memory_order_relaxed);
	write_woken(slot, published, ns, thread, poll, &cached->emit, &wake);
	d9__plain_push(thread, poll, ns, cached);
	return true;
}

bool d9__poll_begin_woken(struct d9_poll *poll)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	const struct d9__cached_task *cached;
	uint32_t gate = d9__gate_word();
	uint64_t ns;

	if (!(gate & D9__GATE_LOOP) || !d9__plain_is_usual(thread, slot, poll, gate) ||
	    !d9__plain_stamp(thread, slot, poll, &ns))
		return false;
	if (d9__plain_begin_at(thread, slot, poll, ns, true))
		return true;
	cached = d9__task_cache_get(&thread->cache, poll->task.key);
	return d9__plain_is_of(thread, cached, poll) &&
	       d9__plain_is_same(thread, cached, cached->task, poll) &&
	       begin_woken_at(thread, slot, poll, ns, cached);
}

/* ---- what makes the next one plain ---- */

/* Spell the name as the open chunk knows it, if it does, and the worker's latest event is in it. */
static void spell(const struct d9__thread *thread, const struct d9__slot *slot,
		  struct d9__cached_task *cached)
{
	uint32_t word = slot->names[cached->name];
	uint8_t *end;

	if (word >> 16 != slot->generation || slot->worker != thread->worker)
		return;
	end = d9__wire_put_u32(cached->emit.wire + d9__emit_id_len(&cached->emit), word & 0xffff);
	*end = 0; /* no wake */
	cached->stamp = slot->stamp;
}

void d9__again_know(struct d9__thread *thread, const struct d9__slot *slot,
		    const struct d9_poll *poll, uint32_t library, struct d9__task *task)
{
	struct d9__cached_task *cached =
		d9__task_cache_put(&thread->cache, library, poll->task.key, task);

	cached->loop = poll->loop;
	cached->callsite = poll->task.callsite;
	cached->name = d9__callsite_name(poll->task.callsite);
	spell(thread, slot, cached);
}

bool d9__again_begin(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
		     uint64_t ns)
{
	struct d9__cached_task *cached = d9__task_cache_get(&thread->cache, poll->task.key);

	if (!d9__plain_is_of(thread, cached, poll) ||
	    !d9__plain_is_same(thread, cached, cached->task, poll) ||
	    poll->task.flags & D9_TASK_RUNS_ONCE)
		return false;
	/* The open chunk may be another than at the task's latest poll, and know the name already.
	 */
	if (cached->stamp != slot->stamp)
		spell(thread, slot, cached);
	return d9__plain_begin_at(thread, slot, poll, ns, false) ||
	       begin_woken_at(thread, slot, poll, ns, cached);
}
