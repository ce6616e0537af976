/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once: polls of tasks that end with them (D9_TASK_RUNS_ONCE), for our adapters: the short way of
 * d9_poll_begin() and d9_poll_end().
 *
 * No table has such a task, because only its own thread has to do with it, and its wake was an
 * early one.  While it runs it is the thread's |solo|, where dumps find it.  All that the trace
 * gets at one end of the poll is written in one go.  Polls that are unusual in any way go the
 * ordinary way.
 */
#include "config.h"

#include <string.h>

#include "loop/announce.h"
#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/plain.h"
#include "loop/polls.h"
#include "loop/wakes.h"
#include "loop/wire.h"
#include "loop/workers.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

_Static_assert(D9__WORKER_WIDE == 0x80, "a worker is one byte");

#define GATES (D9__GATE_LOOP | D9__GATE_TASK | D9__GATE_WAKE)

/* True if the short way may be tried, to begin as to end. */
static inline bool is_quick(const struct d9__thread *thread, const struct d9__slot *slot,
			    uint32_t gate)
{
	return d9__thread_exists(thread) && d9__slot_is_real(slot) && thread->gate == gate &&
	       (gate & GATES) == GATES;
}

/* ---- the task ---- */

/* release: a dump that sees any of it sees that the number is another one */
static inline void make_solo(struct d9__thread *thread, const struct d9_poll *poll, uint64_t id,
			     uint64_t ns)
{
	struct d9__task *solo = &thread->solo;

	atomic_store_explicit(&solo->polled_ns, ns, memory_order_release);
	atomic_store_explicit(&solo->callsite, poll->task.callsite, memory_order_release);
	atomic_store_explicit(&solo->kind, poll->task.kind, memory_order_release);
	atomic_store_explicit(&solo->flags, poll->task.flags, memory_order_release);
	atomic_store_explicit(&solo->spawned, thread->epoch, memory_order_release);
	atomic_store_explicit(&solo->fd, poll->task.fd, memory_order_release);
	atomic_store_explicit(&solo->id, id, memory_order_release);
}

/* ---- begin ---- */

/* Spawn, wake and start. */
static inline void write_begin(const struct d9__thread *thread, struct d9__slot *slot,
			       uint64_t published, const struct d9_poll *poll,
			       const struct d9__spawn_spelling *spelling, uint64_t id,
			       struct d9__wake *wake, uint64_t ns)
{
	uint8_t *begin = slot->batch + (uint32_t)published, *p = begin;
	uint64_t spawn_ns = wake->ns ? wake->ns : ns,
		 told = d9__wakes_in_poll(thread, slot, ns, wake);

	p = d9__emit_head_at(slot, p, D9__EVENT_TASK_SPAWN, spawn_ns);
	p = d9__spawn_spelling_put(spelling, p, id, poll->task.fd);
	if (wake->ns) {
		p = d9__emit_head_at(slot, p, D9__EVENT_WAKE, wake->ns);
		p = d9__emit_wake_fields(p, wake->waker, id, wake->worker, wake->reason);
	}
	p = d9__emit_head_at(slot, p, D9__EVENT_POLL_START, ns);
	*p++ = (uint8_t)thread->worker;
	*p++ = d9__emit_depth(poll->depth);
	p = d9__varint_put(p, id);
	p = d9__wire_put_bytes(p, spelling->wire, sizeof(uint32_t));
	p = d9__varint_put(p, told);
	d9__emit_worker(slot, thread->worker, D9__WORKER_POLLING, id);
	d9__emit_plain_leave(slot, published, wake->ns ? 3 : 2, (uint64_t)(p - begin));
}

static bool begin_quickly(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll)
{
	const struct d9__spawn_spelling *spelling =
		d9__spawn_spelling_at(thread->spellings, poll->task.callsite);
	uint32_t library = atomic_load_explicit(&poll->loop->library, memory_order_relaxed);
	uint32_t made_of = d9__spawn_made_of(poll->task.kind, poll->task.flags);
	uint64_t published, id, ns;
	struct d9__wake wake;

	if (poll->task.name || !d9__task_is(&thread->solo, 0) || d9__tasks_find(library, poll->task.key) ||
	    !(published = d9__emit_open(slot)))
		return false;
	/* Not earlier: a signal handler may have changed chunks. */
	if (!d9__spawn_spelling_fits(spelling, slot, poll->task.callsite, made_of)) {
		d9__emit_plain_cancel(slot);
		return false;
	}
	ns = d9__poll_is_shared(thread, slot, poll->flags & D9_POLL_BATCHED) ? slot->last_ns : d9__slot_now(slot);
	d9__wakes_take(thread, NULL, poll, ns, &wake);
	id = d9__tasks_new_id(thread, library);
	make_solo(thread, poll, id, ns);
	write_begin(thread, slot, published, poll, spelling, id, &wake, ns);
	d9__polls_push(thread, poll, 0, 0, library, spelling->name, id, ns);
	thread->frames[0].stamp = slot->stamp;
	return true;
}

void d9__poll_begin_once(struct d9_poll *poll)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;

	if (is_quick(thread, slot, d9__gate_word()) && !thread->odd && poll->loop &&
	    atomic_load_explicit(&poll->loop->owner, memory_order_relaxed) == thread &&
	    begin_quickly(thread, slot, poll))
		return;
	d9_poll_begin(poll);
}

/* ---- end ---- */

static inline void write_end(struct d9__slot *slot, uint64_t published, uint32_t worker,
			     uint64_t id, uint64_t ns)
{
	uint8_t *begin = slot->batch + (uint32_t)published, *p = begin;

	p = d9__emit_head_at(slot, p, D9__EVENT_POLL_END, ns);
	*p++ = (uint8_t)worker;
	p = d9__varint_put(d9__emit_head_at(slot, p, D9__EVENT_TASK_TERMINATE, ns), id);
	d9__emit_worker(slot, worker, D9__WORKER_RUNNING, 0);
	d9__emit_plain_leave(slot, published, 2, (uint64_t)(p - begin));
}

/* True if |poll| may end in the short way: as d9__poll_is_plain(), of a solo task. */
static inline bool is_plain(const struct d9__thread *thread, const struct d9_poll *poll)
{
	const struct d9__frame_running *frame = &thread->frames[0];

	return thread->mode == d9__mode(D9__ODD_OPEN | D9__ODD_FRAMES, D9__STAGE_ROUND, 1) &&
	       frame->address == (uintptr_t)poll && d9__task_is(&thread->solo, frame->task) &&
	       d9__wire_solo_is_spawned(thread);
}

static bool end_quickly(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll)
{
	struct d9__frame_running *frame = &thread->frames[0];
	uint64_t published, ns = d9__slot_now(slot);

	if (ns - frame->start_ns > atomic_load_explicit(&d9__long_poll_ns, memory_order_relaxed) || !(published = d9__emit_open(slot)))
		return false;
	write_end(slot, published, thread->worker, frame->task, ns);
	d9__wire_solo_forget(thread);
	frame->once = false;
	d9__poll_pop_plain(thread, poll, ns);
	return true;
}

void d9__poll_end_once(struct d9_poll *poll)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;

	if (!poll->task_id ||
	    (is_quick(thread, slot, d9__gate_word()) && is_plain(thread, poll) &&
	     end_quickly(thread, slot, poll)))
		return;
	d9_poll_end(poll);
}
