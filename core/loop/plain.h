/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain poll: outermost, of a known task, between wakes and polls of the same kind.  Nearly all
 * polls are, so d9_poll_begin() and d9_poll_end() ask for it first, in straight lines without a
 * call.  Here are its steps; again.c takes them in other orders, polls.c has all other polls.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "loop/loops.h"
#include "loop/thread_state.h"
#include "loop/wakes.h"
#include "loop/workers.h"
#include "record/triggers.h"
#include "ring/emit_inl.h"
#include "ring/slot.h"

_Static_assert(D9__WORKER_WIDE == 0x80, "d9__emit_plain_poll_start() writes one byte");

/* True if the previous poll's end is the start of the next.  Not after any other stamp. */
static inline bool d9__poll_is_shared(const struct d9__thread *thread, const struct d9__slot *slot,
				      bool batched)
{
	return batched && thread->shared_ns == slot->last_ns;
}

/* True if one callback runs, |poll|'s, and its PollStart is the latest record but for wakes. */
static inline bool d9__poll_is_plain(const struct d9__thread *thread, const struct d9_poll *poll,
				     uint32_t gate, uint64_t ns)
{
	const struct d9__frame_running *frame = &thread->frames[0];

	return thread->mode == d9__mode(D9__ODD_OPEN | D9__ODD_FRAMES, D9__STAGE_ROUND, 1) &&
	       frame->address == (uintptr_t)poll && !frame->once && thread->gate == gate &&
	       ns - frame->start_ns <= atomic_load_explicit(&d9__long_poll_ns, memory_order_relaxed);
}

static inline void d9__poll_pop_plain(struct d9__thread *thread, struct d9_poll *poll, uint64_t ns)
{
	thread->mode = d9__mode(0, D9__STAGE_ROUND, 0);
	thread->shared_ns = poll->flags & D9_POLL_BREAKS_BATCH ? 0 : ns;
	poll->task_id = 0;
}

/* ---- begin ---- */

D9__EMIT_PLAIN void d9__plain_push(struct d9__thread *thread, struct d9_poll *poll, uint64_t ns,
				   const struct d9__cached_task *cached)
{
	struct d9__frame_running *frame = &thread->frames[0];
	uint64_t id = cached->emit.id;

	frame->address = (uintptr_t)poll;
	frame->start_ns = ns;
	frame->loc = cached->name;
	frame->stamp = cached->stamp;
	/*
	 * Else the compiler packs neighbours into vectors first, which takes longer than two
	 * stores.
	 */
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

/* True if |task| is still the one that |cached| says, and the one that |poll| runs. */
D9__EMIT_PLAIN bool d9__plain_is_same(const struct d9__thread *thread,
				      const struct d9__cached_task *cached,
				      const struct d9__task *task, const struct d9_poll *poll)
{
	return d9__task_is(task, cached->emit.id) &&
	       atomic_load_explicit(&task->spawned, memory_order_relaxed) == thread->epoch &&
	       (atomic_load_explicit(&task->identity, memory_order_relaxed) ==
			poll->task.identity ||
		!poll->task.identity);
}

/* True if |cached| was polled as |poll| will be, and its loop is this thread's. */
D9__EMIT_PLAIN bool d9__plain_is_of(const struct d9__thread *thread,
				    const struct d9__cached_task *cached,
				    const struct d9_poll *poll)
{
	const struct d9_loop *loop = poll->loop;

	return __builtin_expect(
		cached && cached->loop == loop && cached->callsite == poll->task.callsite &&
			atomic_load_explicit(&loop->owner, memory_order_relaxed) == thread,
		1);
}

/*
 * True if PollStart, in the chunk |stamp|, tells all of the wake of |task|, which its own thread
 * |woken|: |*told|.
 */
D9__EMIT_PLAIN bool d9__plain_tells(const struct d9__thread *thread, const struct d9__task *task,
				    uint32_t woken, uint32_t stamp, uint64_t ns, uint64_t *told)
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

/*
 * |may_say|: |poll| may say that a descriptor of it is ready, which no wake announced.  False:
 * nothing happened.
 */
D9__EMIT_PLAIN bool d9__plain_begin_at(struct d9__thread *thread, struct d9__slot *slot,
				       struct d9_poll *poll, uint64_t ns, bool may_say)
{
	const struct d9__cached_task *cached = d9__task_cache_get(&thread->cache, poll->task.key);
	uint64_t published, told = 0;
	struct d9__task *task;

	if (!d9__plain_is_of(thread, cached, poll))
		return false;
	task = cached->task;
	if (__builtin_expect(!d9__plain_is_same(thread, cached, task, poll), 0))
		return false;
	if (atomic_load_explicit(&task->wakes, memory_order_relaxed)) {
		uint32_t woken = atomic_load_explicit(&task->woken, memory_order_relaxed);

		if (__builtin_expect(
			    atomic_load_explicit(&task->wake, memory_order_relaxed) !=
					    D9__WAKE_NONE ||
				    !d9__plain_tells(thread, task, woken, cached->stamp, ns, &told),
			    0))
			return false;
	} else if (__builtin_expect(poll->ready_ns || poll->reason, 0)) {
		if (!may_say || poll->ready_ns || poll->reason != D9_WAKE_FD ||
		    thread->unpark_stamp != cached->stamp || d9__old_events())
			return false;
		told = D9__WAKE_OF_UNPARK;
	}
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
	d9__emit_plain_poll_start(slot, published, ns, thread->head, poll->depth, &cached->emit,
				  told);
	d9__plain_push(thread, poll, ns, cached);
	return true;
}

/* True if |poll| may be plain. */
D9__EMIT_PLAIN bool d9__plain_is_usual(const struct d9__thread *thread, const struct d9__slot *slot,
				       const struct d9_poll *poll, uint32_t gate)
{
	return __builtin_expect(d9__thread_exists(thread) && d9__slot_is_real(slot) &&
					!thread->odd && thread->gate == gate && poll->loop,
				1);
}

/* Stamp its begin.  False: nothing happened. */
D9__EMIT_PLAIN bool d9__plain_stamp(const struct d9__thread *thread, struct d9__slot *slot,
				    const struct d9_poll *poll, uint64_t *ns)
{
	*ns = slot->last_ns;
	return d9__poll_is_shared(thread, slot, poll->flags & D9_POLL_BATCHED) ||
	       __builtin_expect(d9__slot_try_now(slot, ns), 1);
}
