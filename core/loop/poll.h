/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poll: one transaction at the begin of a callback and one at its end.
 *
 * Nearly all polls are alike: outermost, of a task that this thread has polled before, between
 * wakes and polls of the same kind.  d9__poll_open() and d9__poll_close() are for those: straight
 * lines, each inlined once for every name that is exported (poll.c), where |kind| is a literal and
 * leaves the branches of that kind.  They return false where anything is unusual; nothing has
 * happened then, and the caller asks polls.c, which has all other polls.
 *
 * Their records are written in one go: open, put each event, commit (ring/emit_inl.h).
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "loop/announce.h"
#include "loop/loops.h"
#include "loop/thread_state.h"
#include "loop/wakes.h"
#include "loop/wire.h"
#include "loop/workers.h"
#include "record/triggers.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "ring/slot.h"

_Static_assert(D9__WORKER_WIDE == 0x80, "heads are one store for workers of one byte");

#define D9__POLL_INLINE static inline __attribute__((always_inline))

enum d9__poll_kind {
	D9__POLL_PLAIN, /* of a known task; its wake, if it has one, stands in PollStart */
	D9__POLL_SAYS,	/* likewise; |poll| may say that its descriptor is ready, which no wake
			   announced */
	D9__POLL_WOKEN, /* of a known task; whatever wake it has is taken and written before
			   PollStart */
	D9__POLL_ONCE,	/* of a task that no table has: it is spawned before and ends with the poll
			 */
	D9__POLL_READY, /* ends only: the task stays ready */
};

#define D9__GATES_OF_ONCE (D9__GATE_LOOP | D9__GATE_TASK | D9__GATE_WAKE)

/* ---- may it be short? ---- */

/* True if |poll| may be plain. */
D9__POLL_INLINE bool d9__poll_is_usual(const struct d9__thread *thread, const struct d9__slot *slot,
				       const struct d9_poll *poll, uint32_t gate)
{
	return __builtin_expect(d9__thread_exists(thread) && d9__slot_is_real(slot) &&
					!thread->odd && thread->gate == gate && poll->loop,
				1);
}

/* True if the previous poll's end is the start of |poll|.  Not after any other stamp. */
D9__POLL_INLINE bool d9__poll_is_shared(const struct d9__thread *thread,
					const struct d9__slot *slot, const struct d9_poll *poll)
{
	return poll->flags & D9_POLL_BATCHED && thread->shared_ns == slot->last_ns;
}

/* False: the clock is to be asked in the slow way. */
D9__POLL_INLINE bool d9__poll_stamp(const struct d9__thread *thread, struct d9__slot *slot,
				    const struct d9_poll *poll, enum d9__poll_kind kind,
				    uint64_t *ns)
{
	*ns = slot->last_ns;
	if (d9__poll_is_shared(thread, slot, poll))
		return true;
	if (kind != D9__POLL_ONCE)
		return __builtin_expect(d9__slot_try_now(slot, ns), 1);
	*ns = d9__slot_now(slot);
	return true;
}

/* True if |cached| was polled as |poll| will be, and its loop is this thread's. */
D9__POLL_INLINE bool d9__poll_is_of(const struct d9__thread *thread,
				    const struct d9__cached_task *cached,
				    const struct d9_poll *poll)
{
	const struct d9_loop *loop = poll->loop;

	return __builtin_expect(
		cached && cached->loop == loop && cached->callsite == poll->task.callsite &&
			atomic_load_explicit(&loop->owner, memory_order_relaxed) == thread,
		1);
}

/* True if |task| is still the one that |cached| says, and the one that |poll| runs. */
D9__POLL_INLINE bool d9__poll_is_same(const struct d9__thread *thread,
				      const struct d9__cached_task *cached,
				      const struct d9__task *task, const struct d9_poll *poll)
{
	return d9__task_is(task, cached->emit.id) &&
	       atomic_load_explicit(&task->spawned, memory_order_relaxed) == thread->epoch &&
	       (atomic_load_explicit(&task->identity, memory_order_relaxed) ==
			poll->task.identity ||
		!poll->task.identity);
}

/* True if one callback runs, |poll|'s, and its PollStart is the latest record but for wakes. */
D9__POLL_INLINE bool d9__poll_is_plain(const struct d9__thread *thread, const struct d9_poll *poll,
				       uint32_t gate, uint64_t ns, enum d9__poll_kind kind)
{
	const struct d9__frame_running *frame = &thread->frames[0];
	bool is_its = kind == D9__POLL_ONCE ? d9__task_is(&thread->solo, frame->task) &&
						      d9__wire_solo_is_spawned(thread)
					    : !frame->once;

	return thread->mode == d9__mode(D9__ODD_OPEN | D9__ODD_FRAMES, D9__STAGE_ROUND, 1) &&
	       frame->address == (uintptr_t)poll && is_its && thread->gate == gate &&
	       ns - frame->start_ns <=
		       atomic_load_explicit(&d9__long_poll_ns, memory_order_relaxed);
}

/* ---- its wake ---- */

/*
 * True if PollStart, in the chunk |stamp|, tells all of the wake of |task|, which its own thread
 * |woken|: |*told|.
 */
D9__POLL_INLINE bool d9__poll_tells_own(const struct d9__thread *thread,
					const struct d9__task *task, uint32_t woken, uint32_t stamp,
					uint64_t ns, uint64_t *told)
{
	uint64_t woken_ns = atomic_load_explicit(&task->polled_ns, memory_order_relaxed);

	*told = D9__WAKE_OF_UNPARK;
	if (woken == thread->found && thread->unpark_stamp == stamp && woken_ns == thread->round_ns)
		return true;
	/* By this thread, while this chunk was open, and no event has told it. */
	woken ^= stamp << 16 | D9__WOKEN_WORKER(thread->found) << 8;
	*told = (ns - woken_ns) << 4 | D9__WOKEN_REASON(woken);
	return woken - 1 < D9__WOKEN_TOLD - 1 && *told != D9__WAKE_OF_UNPARK;
}

/* True if PollStart alone tells the wake of |poll|, or there is none: |*told| is 0 then. */
D9__POLL_INLINE bool d9__poll_tells(const struct d9__thread *thread,
				    const struct d9__cached_task *cached,
				    const struct d9__task *task, const struct d9_poll *poll,
				    uint64_t ns, enum d9__poll_kind kind, uint64_t *told)
{
	*told = 0;
	if (atomic_load_explicit(&task->wakes, memory_order_relaxed)) {
		uint32_t woken = atomic_load_explicit(&task->woken, memory_order_relaxed);

		return __builtin_expect(
			atomic_load_explicit(&task->wake, memory_order_relaxed) == D9__WAKE_NONE &&
				d9__poll_tells_own(thread, task, woken, cached->stamp, ns, told),
			1);
	}
	if (__builtin_expect(poll->ready_ns || poll->reason, 0)) {
		if (kind != D9__POLL_SAYS || poll->ready_ns || poll->reason != D9_WAKE_FD ||
		    thread->unpark_stamp != cached->stamp || d9__old_events())
			return false;
		*told = D9__WAKE_OF_UNPARK;
	}
	return true;
}

/* ---- its frame ---- */

/*
 * Push the frame of |poll|, whose PollStart is in the chunk |stamp|, above the |outer| callbacks
 * that are running.  |odd| is D9__ODD_WIDE and D9__ODD_WAITS, where they are set.
 */
D9__POLL_INLINE void d9__poll_push(struct d9__thread *thread, struct d9_poll *poll, uint8_t odd,
				   uint16_t outer, uint64_t ns, uint64_t task, uint32_t loc,
				   uint32_t stamp)
{
	struct d9__frame_running *frame = &thread->frames[outer];

	frame->address = (uintptr_t)poll;
	frame->start_ns = ns;
	frame->loc = loc;
	frame->stamp = stamp;
	/*
	 * Else the compiler packs neighbours into vectors first, which takes longer than two
	 * stores.
	 */
	__asm__ volatile("" : : : "memory");
	frame->task = task;
	frame->depth = poll->depth;
	/* For signal handlers that ask for the task. */
	atomic_signal_fence(memory_order_release);
	thread->mode = d9__mode(D9__ODD_FRAMES | D9__ODD_OPEN | odd, D9__STAGE_ROUND,
				(uint16_t)(outer + 1));
	thread->shared_ns = 0;
	thread->loop = poll->loop;
	poll->task_id = task;
}

/* Add to the frame what only ends that are not plain need. */
D9__POLL_INLINE void d9__poll_push_rest(struct d9__frame_running *frame, const struct d9_poll *poll,
					uint32_t library)
{
	frame->key = poll->task.key;
	frame->library = library;
	frame->once = (poll->task.flags & D9_TASK_RUNS_ONCE) != 0;
}

D9__POLL_INLINE void d9__poll_pop(struct d9__thread *thread, struct d9_poll *poll, uint64_t ns)
{
	thread->mode = d9__mode(0, D9__STAGE_ROUND, 0);
	thread->shared_ns = poll->flags & D9_POLL_BREAKS_BATCH ? 0 : ns;
	poll->task_id = 0;
}

/* ---- the task of one poll ---- */

/* release: a dump that sees any of it sees that the number is another one */
D9__POLL_INLINE void d9__poll_make_solo(struct d9__thread *thread, const struct d9_poll *poll,
					uint64_t id, uint64_t ns)
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

/* How the trace spells the task of a poll: one that this thread has polled, or one of this poll
 * alone. */
struct d9__poll_task {
	const struct d9__cached_task *cached;
	struct d9__task *task;			/* of |cached| */
	const struct d9__spawn_spelling *spawn; /* the others are NULL */
	uint32_t library, made_of;		/* of |spawn| */
	uint64_t id;				/* likewise, once it has one */
};

/* Loaded where it is stored: it needs no register in between. */
D9__POLL_INLINE uint64_t d9__poll_task_id(const struct d9__poll_task *of)
{
	return of->cached ? of->cached->emit.id : of->id;
}

/* False: it may not be short. */
D9__POLL_INLINE bool d9__poll_find(struct d9__thread *thread, const struct d9_poll *poll,
				   enum d9__poll_kind kind, struct d9__poll_task *of)
{
	of->cached = NULL;
	of->task = NULL;
	of->spawn = NULL;
	of->id = 0;
	if (kind != D9__POLL_ONCE) {
		of->cached = d9__task_cache_get(&thread->cache, poll->task.key);
		if (!d9__poll_is_of(thread, of->cached, poll))
			return false;
		of->task = of->cached->task;
		return __builtin_expect(d9__poll_is_same(thread, of->cached, of->task, poll), 1);
	}
	of->spawn = d9__spawn_spelling_at(thread->spellings, poll->task.callsite);
	of->library = atomic_load_explicit(&poll->loop->library, memory_order_relaxed);
	of->made_of = d9__spawn_made_of(poll->task.kind, poll->task.flags);
	return atomic_load_explicit(&poll->loop->owner, memory_order_relaxed) == thread &&
	       !poll->task.name && d9__task_is(&thread->solo, 0) &&
	       !d9__tasks_find(of->library, poll->task.key);
}

/* True if the open chunk, which cannot change any more, is the one that it is spelled for. */
D9__POLL_INLINE bool d9__poll_is_spelled(const struct d9__slot *slot, const struct d9_poll *poll,
					 const struct d9__poll_task *of)
{
	return of->cached
		       ? of->cached->stamp == slot->stamp
		       : d9__spawn_spelling_fits(of->spawn, slot, poll->task.callsite, of->made_of);
}

/* Put the spawn of a task of one poll, which gets its number: |of->id|. */
D9__POLL_INLINE uint8_t *d9__poll_put_spawn(struct d9__thread *thread, struct d9__slot *slot,
					    uint8_t *p, const struct d9_poll *poll,
					    struct d9__poll_task *of, uint64_t spawn_ns,
					    uint64_t ns)
{
	of->id = d9__tasks_new_id(thread, of->library);
	d9__poll_make_solo(thread, poll, of->id, ns);
	p = d9__emit_head_at(slot, p, D9__EVENT_TASK_SPAWN, spawn_ns);
	return d9__spawn_spelling_put(of->spawn, p, of->id, poll->task.fd);
}

/* |thread|, |slot| and |poll| are usual; |ns| is the stamp.  False: nothing happened. */
D9__POLL_INLINE bool d9__poll_open_at(struct d9__thread *thread, struct d9__slot *slot,
				      struct d9_poll *poll, uint64_t ns, enum d9__poll_kind kind)
{
	bool takes = kind == D9__POLL_WOKEN || kind == D9__POLL_ONCE;
	uint64_t published, told = 0, events = 1;
	struct d9__wake wake = { .ns = 0 };
	struct d9__poll_task of;
	uint8_t *begin, *p;
	size_t len;

	if (!d9__poll_find(thread, poll, kind, &of) ||
	    (!takes && !d9__poll_tells(thread, of.cached, of.task, poll, ns, kind, &told)))
		return false;
	published = takes ? d9__emit_open(slot) : d9__emit_open_at(slot, ns);
	if (__builtin_expect(!published, 0))
		return false;
	/* Not earlier: a signal handler may have changed chunks. */
	if (__builtin_expect(!d9__poll_is_spelled(slot, poll, &of), 0)) {
		d9__emit_cancel(slot);
		return false;
	}
	p = begin = d9__emit_place(slot, published);
	if (takes)
		d9__wakes_take(thread, of.task, poll, ns, &wake);
	if (of.spawn) {
		p = d9__poll_put_spawn(thread, slot, p, poll, &of, wake.ns ? wake.ns : ns, ns);
		events++;
	} else {
		if (!takes)
			atomic_store_explicit(&of.task->woken, 0, memory_order_relaxed);
		atomic_store_explicit(&of.task->polled_ns, ns, memory_order_relaxed);
	}
	if (takes) {
		told = d9__wakes_in_poll(thread, slot, ns, &wake);
		if (wake.ns && d9__gate_open(D9__GATE_WAKE)) {
			p = d9__put_wake(slot, p, wake.ns, wake.waker, d9__poll_task_id(&of),
					 wake.worker, wake.reason);
			events++;
		}
	}
	len = (size_t)(p - begin) +
	      d9__put_poll_start(slot, p,
				 &(struct d9__poll_start) {
					 .ns = ns,
					 .of = thread->head,
					 .depth = poll->depth,
					 .spelled = of.cached ? &of.cached->emit : NULL,
					 .task = of.id,
					 .loc = of.spawn ? d9__spawn_spelling_loc(of.spawn) : 0,
					 .wake = told },
				 !takes);
	if (of.spawn) /* a cached task is spelled where the slot's worker is the thread's */
		d9__emit_worker(slot, thread->worker, D9__WORKER_POLLING, of.id);
	slot->worker_state = D9__WORKER_POLLING;
	slot->task = d9__poll_task_id(&of);
	d9__emit_commit(slot, published, events, len);
	d9__poll_push(thread, poll, 0, 0, ns, d9__poll_task_id(&of),
		      of.cached ? of.cached->name : of.spawn->name,
		      of.cached ? of.cached->stamp : of.spawn->stamp);
	if (of.spawn)
		d9__poll_push_rest(&thread->frames[0], poll, of.library);
	return true;
}

/* Begin |poll|, of which |gate| is open for loops.  False: nothing happened. */
D9__POLL_INLINE bool d9__poll_open(struct d9_poll *poll, uint32_t gate, enum d9__poll_kind kind)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	uint64_t ns;

	return d9__poll_is_usual(thread, slot, poll, gate) &&
	       (kind != D9__POLL_ONCE || (gate & D9__GATES_OF_ONCE) == D9__GATES_OF_ONCE) &&
	       d9__poll_stamp(thread, slot, poll, kind, &ns) &&
	       d9__poll_open_at(thread, slot, poll, ns, kind);
}

/* ---- end ---- */

/* |task| was polled as |poll| says, by this thread.  The end at |ns| is its wake. */
D9__POLL_INLINE void d9__poll_stay_ready(struct d9__thread *thread, const struct d9__slot *slot,
					 const struct d9_poll *poll, uint64_t id, uint64_t ns)
{
	const struct d9__cached_task *cached = d9__task_cache_get(&thread->cache, poll->task.key);
	struct d9__task *task;

	if (!cached || cached->emit.id != id || cached->loop != poll->loop)
		return;
	task = cached->task;
	if (!d9__task_is(task, id) || atomic_load_explicit(&task->wakes, memory_order_relaxed))
		return;
	atomic_store_explicit(&task->polled_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&task->woken,
			      slot->stamp << 16 | D9__WOKEN_WORKER(thread->found) << 8 |
				      D9_WAKE_DEFERRED | D9__WOKEN_BY_NONE,
			      memory_order_relaxed);
}

/* End |poll|, which was begun.  False: nothing happened. */
D9__POLL_INLINE bool d9__poll_close(struct d9_poll *poll, uint32_t gate, enum d9__poll_kind kind)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	uint64_t published, ns, id = poll->task_id, events = 1;
	bool once = kind == D9__POLL_ONCE;
	uint8_t *begin, *p;

	if (__builtin_expect(!d9__thread_exists(thread) || !d9__slot_is_real(slot), 0))
		return false;
	if (once)
		ns = d9__slot_now(slot);
	else if (__builtin_expect(!d9__slot_try_now(slot, &ns), 0))
		return false;
	if (__builtin_expect(!d9__poll_is_plain(thread, poll, gate, ns, kind), 0))
		return false;
	published = d9__emit_open_at(slot, ns);
	if (__builtin_expect(!published, 0))
		return false;
	begin = d9__emit_place(slot, published);
	p = d9__put_poll_end(slot, begin, ns, thread->head, true);
	slot->worker_state = D9__WORKER_RUNNING;
	if (once) {
		p = d9__varint_put(d9__emit_head_at(slot, p, D9__EVENT_TASK_TERMINATE, ns), id);
		events++;
	}
	d9__emit_commit(slot, published, events, (uint64_t)(p - begin));
	if (once) {
		d9__wire_solo_forget(thread);
		thread->frames[0].once = false;
	}
	d9__poll_pop(thread, poll, ns);
	if (kind == D9__POLL_READY)
		d9__poll_stay_ready(thread, slot, poll, id, ns);
	return true;
}
