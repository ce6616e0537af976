/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks that make system calls leave little of this in the processor's first caches: it is kept
 * short, and what it needs lies together in few lines.
 */
#include "config.h"

#include "loop/plain.h"

#include <string.h>

#include "loop/callsites.h"
#include "loop/fast_polls.h"
#include "loop/loops.h"
#include "loop/wakes.h"
#include "loop/workers.h"
#include "record/recorder.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

_Static_assert(D9__WORKER_WIDE == 0x80, "d9__emit_plain_poll_start() writes one byte");

/* ---- begin ---- */

D9__EMIT_PLAIN void push(struct d9__thread *thread, struct d9_poll *poll, uint64_t ns,
			 const struct d9__cached_task *cached)
{
	struct d9__frame_running *frame = &thread->frames[0];
	uint64_t id = cached->emit.id;

	frame->address = (uintptr_t)poll;
	frame->start_ns = ns;
	frame->loc = cached->name;
	/* Else the compiler packs neighbours into vectors first, which takes longer than two stores. */
	__asm__ volatile("" : : : "memory");
	frame->task = id;
	frame->depth = poll->depth;
	/* For signal handlers that ask for the task. */
	atomic_signal_fence(memory_order_release);
	thread->mode = d9__mode(D9__ODD_FRAMES | D9__ODD_OPEN, D9__STAGE_ROUND, 1);
	thread->shared_ns = 0;
	thread->loop = poll->loop;
	poll->task_id = id;
}

/* Is |task| still what |cached| says, and what |poll| runs? */
D9__EMIT_PLAIN bool is_same(const struct d9__thread *thread, const struct d9__cached_task *cached,
			    const struct d9__task *task, const struct d9_poll *poll)
{
	return d9__task_is(task, cached->emit.id) &&
	       atomic_load_explicit(&task->spawned, memory_order_relaxed) == thread->epoch &&
	       (atomic_load_explicit(&task->identity, memory_order_relaxed) == poll->task.identity ||
		!poll->task.identity);
}

/* Nothing is to be told of its wake, or it is in the trace already. */
D9__EMIT_PLAIN bool is_wake_told(struct d9__task *task, const struct d9_poll *poll)
{
	if (atomic_load_explicit(&task->wake, memory_order_relaxed) != D9__WAKE_NONE)
		return false;
	return atomic_load_explicit(&task->woken, memory_order_relaxed) ||
	       (!poll->ready_ns && !poll->reason);
}

/* Was |cached| polled as |poll| will be, and is its loop this thread's? */
D9__EMIT_PLAIN bool is_of(const struct d9__thread *thread, const struct d9__cached_task *cached,
			  const struct d9_poll *poll)
{
	const struct d9_loop *loop = poll->loop;

	return __builtin_expect(cached && cached->loop == loop &&
					cached->callsite == poll->task.callsite &&
					atomic_load_explicit(&loop->owner, memory_order_relaxed) == thread,
				1);
}

/* False: nothing happened. */
D9__EMIT_PLAIN bool begin_at(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
			     uint64_t ns)
{
	const struct d9__cached_task *cached = d9__task_cache_get(&thread->cache, poll->task.key);
	struct d9__task *task;
	uint64_t published;

	if (!is_of(thread, cached, poll))
		return false;
	task = cached->task;
	if (__builtin_expect(!is_same(thread, cached, task, poll) || !is_wake_told(task, poll), 0))
		return false;
	published = d9__emit_plain_enter(slot, ns);
	if (__builtin_expect(!published, 0))
		return false;
	/* Not earlier: a signal handler may have changed chunks. */
	if (__builtin_expect(cached->stamp != slot->stamp, 0)) {
		d9__emit_plain_cancel(slot);
		return false;
	}
	atomic_store_explicit(&task->woken, 0, memory_order_relaxed);
	atomic_store_explicit(&task->polled_ns, ns, memory_order_relaxed);
	d9__emit_plain_poll_start(slot, published, ns, thread->head, poll->depth, &cached->emit);
	push(thread, poll, ns, cached);
	return true;
}

/* May |poll| be plain? */
D9__EMIT_PLAIN bool is_usual(const struct d9__thread *thread, const struct d9__slot *slot,
			     const struct d9_poll *poll, uint32_t gate)
{
	return __builtin_expect(d9__thread_exists(thread) && d9__slot_is_real(slot) &&
					!thread->odd && thread->gate == gate && poll->loop,
				1);
}

/* When it begins.  False: nothing happened. */
D9__EMIT_PLAIN bool stamp(const struct d9__thread *thread, struct d9__slot *slot,
			  const struct d9_poll *poll, uint64_t *ns)
{
	*ns = slot->last_ns;
	return d9__poll_is_shared(thread, slot, poll->flags & D9_POLL_BATCHED) ||
	       __builtin_expect(d9__slot_try_now(slot, ns), 1);
}

/* False: nothing happened. */
D9__EMIT_PLAIN bool begin(struct d9_poll *poll, uint32_t gate)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	uint64_t ns;

	return is_usual(thread, slot, poll, gate) && stamp(thread, slot, poll, &ns) &&
	       begin_at(thread, slot, poll, ns);
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
			d9__poll_begin_slow(poll, gate);
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

/* ---- begin, with a wake ---- */

/* In one go: the wake, if there is one to write, and the start. */
static inline void write_woken(struct d9__slot *slot, uint64_t published, uint64_t ns,
			       const struct d9__thread *thread, const struct d9_poll *poll,
			       const struct d9__emit_task *task, const struct d9__wake *wake)
{
	uint8_t *begin = slot->batch + (uint32_t)published, *p = begin;
	bool tells = wake->ns && d9__gate_open(D9__GATE_WAKE);

	if (tells) {
		p = d9__emit_head_at(slot, p, D9__EVENT_WAKE, wake->ns);
		p = d9__varint_put(p, wake->waker);
		memcpy(p, task->wire, 8);
		p += task->id_len;
		*p++ = d9__emit_depth(wake->worker);
		*p++ = (uint8_t)wake->reason;
	}
	p = d9__emit_head_at(slot, p, D9__EVENT_POLL_START, ns);
	*p++ = (uint8_t)thread->worker;
	*p++ = d9__emit_depth(poll->depth);
	memcpy(p, task->wire, sizeof(task->wire));
	p += task->start_len - D9__EMIT_PLAIN_HEAD_LEN;
	slot->worker_state = D9__WORKER_POLLING;
	slot->task = task->id;
	d9__emit_plain_leave(slot, published, tells ? 2 : 1, (uint64_t)(p - begin));
}

/* |cached| is_of() it and is_same().  False: nothing happened. */
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
	push(thread, poll, ns, cached);
	return true;
}

bool d9__poll_begin_woken(struct d9_poll *poll)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	const struct d9__cached_task *cached;
	uint32_t gate = d9__gate_word();
	uint64_t ns;

	if (!(gate & D9__GATE_LOOP) || !is_usual(thread, slot, poll, gate) ||
	    !stamp(thread, slot, poll, &ns))
		return false;
	cached = d9__task_cache_get(&thread->cache, poll->task.key);
	return is_of(thread, cached, poll) && is_same(thread, cached, cached->task, poll) &&
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
	end = d9__wire_put_u32(cached->emit.wire + cached->emit.id_len, word & 0xffff);
	cached->emit.start_len = (uint8_t)(D9__EMIT_PLAIN_HEAD_LEN + (end - cached->emit.wire));
	cached->stamp = slot->stamp;
}

void d9__poll_know(struct d9__thread *thread, const struct d9__slot *slot,
		   const struct d9_poll *poll, uint32_t library, struct d9__task *task)
{
	struct d9__cached_task *cached =
		d9__task_cache_put(&thread->cache, library, poll->task.key, task);

	cached->loop = poll->loop;
	cached->callsite = poll->task.callsite;
	cached->name = d9__callsite_name(poll->task.callsite);
	spell(thread, slot, cached);
}

bool d9__poll_begin_again(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
			  uint64_t ns)
{
	struct d9__cached_task *cached = d9__task_cache_get(&thread->cache, poll->task.key);

	if (!is_of(thread, cached, poll) || !is_same(thread, cached, cached->task, poll) ||
	    poll->task.flags & D9_TASK_RUNS_ONCE)
		return false;
	/* The open chunk may be another than at the task's latest poll, and know the name already. */
	if (cached->stamp != slot->stamp)
		spell(thread, slot, cached);
	return begin_at(thread, slot, poll, ns) ||
	       begin_woken_at(thread, slot, poll, ns, cached);
}

/* ---- end ---- */

/* May |poll| end plainly, and when?  False: nothing happened. */
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
		d9__poll_end_slow(poll);
}

/* ---- end, and the task stays ready ---- */

/* The end and, of the same moment, the wake for the next poll. */
static inline void write_end_ready(struct d9__slot *slot, uint64_t published, uint64_t ns,
				   const struct d9__thread *thread, const struct d9__emit_task *task)
{
	uint8_t *begin = slot->batch + (uint32_t)published, *p;

	p = d9__emit_plain_head(slot, published, D9__EVENT_POLL_END, ns, thread->head, 0) - 1;
	p = d9__wire_put_event_head(p, D9__EVENT_WAKE, 0);
	*p++ = 0; /* by nobody */
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
	if (!is_of(thread, cached, poll) || !is_same(thread, cached, cached->task, poll) ||
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
	d9__wake_again(poll->loop, poll->task.key);
}
