/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libev/drain.h"

#include <errno.h>
#include <stdbool.h>

#include <dial9/loop.h>

#include "libev/capabilities.h"
#include "libev/layout.h"
#include "libev/records.h"
#include "libev/static.h"
#include "libev/thread.h"
#include "libev/wakes.h"
#include "libev/watchers.h"
#include "loop/adapter.h"

_Atomic(uint32_t) d9__libev_internal, d9__libev_cancelled;

/* ---- one poll ---- */

struct frame {
	struct d9_poll poll;
	struct d9__libev_watcher *known;
};

/* A one-shot timer that its own callback did not start again has ended. */
static __attribute__((noinline)) void end_expired(struct frame *frame)
{
	const void *watcher = (const void *)(uintptr_t)frame->poll.task.key;

	if (frame->known->watcher != watcher)
		return;
	frame->known->watcher = NULL;
	d9_task_end(D9_LIBRARY_LIBEV, frame->poll.task.key);
}

/* errno, and nothing of the watcher is touched: the callback may have freed it. */
static inline void end_poll(struct frame *frame)
{
	d9_poll_end(&frame->poll);
	if (__builtin_expect(frame->known->expired, 0))
		end_expired(frame);
}

/* A watcher that was started before we came, that was only fed, or that fell out of the memory. */
static __attribute__((noinline)) struct d9__libev_watcher *
learn(struct d9__libev_record *record, const struct ev_watcher *w, const void *callback, int events)
{
	struct d9__libev_watcher *known = d9__libev_record_place_for(record, w);
	struct d9_task task = { .fd = -1 };

	/* A start told it, unless the program called by a pointer that it took before we came. */
	if (!d9__task_armed(D9_LIBRARY_LIBEV, (uintptr_t)w, &task) || !task.callsite ||
	    task.callsite->callback != callback)
		task = (struct d9_task) { .fd = -1, .kind = d9__libev_watcher_kind(events) };
	*known = (struct d9__libev_watcher) {
		.watcher = w,
		.callback = callback,
		.callsite = task.callsite,
		.site = task.callsite ? task.callsite->site : NULL,
		.fd = task.fd,
		.kind = task.kind,
	};
	return known;
}

static __attribute__((noinline)) void name_it(struct d9__libev_watcher *known)
{
	known->callsite = d9_callsite(known->callback, known->site, 0);
}

/* The first poll of a watcher, of what it has become, or one that tells more than that it runs. */
static __attribute__((noinline)) void begin_other(struct d9__libev_record *record,
						  struct d9__libev_watcher *known,
						  const struct ev_watcher *w, int events,
						  struct d9_poll *poll)
{
	poll->task.name = NULL;
	poll->task.fd = known->kind == D9_TASK_IO ? known->fd : -1;
	poll->task.kind = known->kind;
	poll->task.flags = 0;
	if (!d9__libev_layout.feeds)
		d9__libev_wake_tell_ready(record, known, w, events, poll);
	d9__poll_begin_other(poll);
}

/* The program's callback runs.  The caller puts the state back, once for a batch of callbacks. */
static inline void enter_callback(struct d9__libev_record *record, const void *callback,
				  const struct d9__libev_context *saved)
{
	struct d9__libev_thread *thread = d9__libev_thread();

	thread->now.record = record;
	thread->now.callback = callback;
	thread->now.frame = saved->frame; /* the one before may have left a run by a longjmp() */
	thread->now.internal = false;
}

/* errno is kept. */
static inline void leave_callbacks(struct d9__libev_context *saved)
{
	d9__libev_thread()->now = *saved;
}

/* Recall |w|, whose callback is |callback|.  NULL: it is not known, or with another callback. */
static inline struct d9__libev_watcher *recall_as(struct d9__libev_record *record,
						  const struct ev_watcher *w, const void *callback)
{
	struct d9__libev_watcher *known = d9__libev_recall(record, w);

	return __builtin_expect(known && known->callback == callback, 1) ? known : NULL;
}

static inline __attribute__((always_inline)) void
begin_poll(struct frame *frame, struct d9__libev_record *record, struct d9__libev_watcher *known,
	   struct ev_watcher *w, const void *callback, int events, uint32_t depth, uint16_t flags,
	   uint64_t invoked_ns, const struct d9__libev_context *saved)
{
	if (__builtin_expect(!known, 0))
		known = learn(record, w, callback, events);
	if (__builtin_expect(!known->callsite, 0))
		name_it(known);
	frame->known = known;
	frame->poll.loop = record->loop;
	frame->poll.task.key = (uintptr_t)w;
	frame->poll.task.identity = d9__libev_identity(callback);
	frame->poll.task.callsite = known->callsite;
	frame->poll.ready_ns = invoked_ns;
	frame->poll.depth = depth;
	frame->poll.flags = flags;
	frame->poll.reason = invoked_ns ? D9_WAKE_ACTIVE : D9_WAKE_UNKNOWN;
	if (__builtin_expect(!d9__libev_layout.feeds || !d9__poll_begin_known(&frame->poll), 0))
		begin_other(record, known, w, events, &frame->poll);
	enter_callback(record, callback, saved);
}

/* ---- libev's own callbacks ---- */

/* The program's callback lies behind one of the emulation's, which is all that is known of it. */
static void note_emulation(const void *callback)
{
	static _Atomic(bool) noted;

	if ((uintptr_t)callback - d9__libev_emulation.low >=
		    d9__libev_emulation.high - d9__libev_emulation.low ||
	    atomic_exchange_explicit(&noted, true, memory_order_relaxed))
		return;
	d9__libev_capability_degrade("poll", "partial", "libev's emulation of libevent is in use");
}

static D9__CALLS_BACK __attribute__((noinline)) void
run_internal(struct d9__libev_record *record, struct ev_loop *loop, struct ev_watcher *w, int events)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	__attribute__((cleanup(leave_callbacks), unused)) struct d9__libev_context saved = thread->now;
	const void *dummy = d9__libev_member(loop, d9__libev_layout.dummy);

	atomic_fetch_add_explicit(w == dummy ? &d9__libev_cancelled : &d9__libev_internal, 1,
				  memory_order_relaxed);
	note_emulation((const void *)w->cb);
	thread->now.record = record;
	thread->now.callback = (const void *)w->cb;
	thread->now.internal = true;
	if (events & EV_TIMER)
		thread->once_due_ns = d9__libev_watcher_timer_due_ns((ev_timer *)w, NULL);
	w->cb(loop, w, events);
}

/* ---- all that is pending ---- */

/*
 * One call of libev's drain.  The loop's members stay where they are; what they hold may not be kept
 * over a call: callbacks feed, clear, stop, drain and free.
 */
struct batch {
	struct d9__libev_pending *volatile *arrays;
	volatile int *counts, *priority;
	struct d9__libev_record *record; /* NULL: nothing is recorded */
	struct d9__libev_context saved;
	uint32_t depth;
	uint16_t flags; /* of the next poll */
};

static inline struct d9__libev_pending *take_last(const struct batch *batch, int priority)
{
	return &batch->arrays[priority][--batch->counts[priority]];
}

static inline uint32_t sum_of(volatile const int *counts)
{
	return (uint32_t)(counts[0] + counts[1] + counts[2] + counts[3] + counts[4]);
}

static inline __attribute__((always_inline)) void
record_poll(struct batch *batch, struct ev_loop *loop, struct d9__libev_watcher *known,
	    struct ev_watcher *w, int events)
{
	__attribute__((cleanup(end_poll))) struct frame frame;
	d9__libev_watcher_fn callback = w->cb;

	/* Watchers that callbacks fed are not in the sum that this batch began with. */
	begin_poll(&frame, batch->record, known, w, (const void *)callback, events,
		   batch->depth ? batch->depth : 1, batch->flags, 0, &batch->saved);
	callback(loop, w, events);
	batch->flags = D9_POLL_BATCHED;
}

static inline __attribute__((always_inline)) void
run_recorded(struct batch *batch, struct ev_loop *loop, struct ev_watcher *w, int events)
{
	struct d9__libev_watcher *known = recall_as(batch->record, w, (const void *)w->cb);

	/* No callback of libev's own is remembered. */
	if (__builtin_expect(!known && d9__in_libev((const void *)w->cb), 0)) {
		run_internal(batch->record, loop, w, events);
		batch->flags = 0;
	} else {
		record_poll(batch, loop, known, w, events);
	}
}

static inline __attribute__((always_inline)) void
run_one(struct batch *batch, struct ev_loop *loop, const struct d9__libev_pending *pending)
{
	struct ev_watcher *w = pending->watcher;
	int events = pending->events;

	w->pending = 0;
	if (__builtin_expect(!batch->record, 0)) {
		w->cb(loop, w, events);
	} else if (__builtin_expect(!d9__gate_open(D9__GATE_LOOP), 0)) {
		enter_callback(batch->record, (const void *)w->cb, &batch->saved);
		w->cb(loop, w, events);
	} else {
		run_recorded(batch, loop, w, events);
	}
	if (batch->depth)
		batch->depth--;
}

static void leave_batch(struct batch *batch)
{
	leave_callbacks(&batch->saved);
}

D9__CALLS_BACK void d9__libev_drain(struct ev_loop *loop, struct d9__libev_record *record)
{
	__attribute__((cleanup(leave_batch))) struct batch batch = {
		.arrays = d9__libev_member(loop, d9__libev_layout.arrays),
		.counts = d9__libev_member(loop, d9__libev_layout.counts),
		.priority = d9__libev_member(loop, d9__libev_layout.priority),
		.record = record,
		.saved = d9__libev_thread()->now,
	};

	batch.depth = sum_of(batch.counts);
	*batch.priority = D9__LIBEV_PRIORITIES;
	do {
		*batch.priority = *batch.priority - 1;
		while (batch.counts[*batch.priority])
			run_one(&batch, loop, take_last(&batch, *batch.priority));
	} while (*batch.priority);
}

/* ---- where private members could not be found ---- */

static void end_batch(struct d9_poll *poll)
{
	d9_poll_end(poll);
}

static void run_batch(struct d9__libev_record *record, struct ev_loop *loop)
{
	unsigned n = d9__libev.ev_pending_count(loop);
	__attribute__((cleanup(end_batch))) struct d9_poll poll = {
		.loop = record->loop,
		.task = { .key = (uintptr_t)record,
			  .callsite = d9_callsite((const void *)d9__libev.ev_invoke_pending, NULL, 0),
			  .fd = -1,
			  .kind = D9_TASK_INTERNAL },
		.depth = n,
	};

	if (n)
		d9_poll_begin(&poll);
	d9__libev.ev_invoke_pending(loop);
}

void d9__hook_ev_invoke_pending(struct ev_loop *loop)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record = d9__libev_record_of(thread, loop);

	if (!record || thread->calibrating)
		d9__libev.ev_invoke_pending(loop);
	else if (record->batch)
		run_batch(record, loop);
	else
		d9__libev_drain(loop, record);
}

/* ---- called by the program itself ---- */

static void invoke_recorded(struct d9__libev_record *record, struct ev_loop *loop, void *watcher,
			    int events)
{
	__attribute__((cleanup(leave_callbacks), unused)) struct d9__libev_context saved =
		d9__libev_thread()->now;
	__attribute__((cleanup(end_poll))) struct frame frame;
	struct ev_watcher *w = watcher;

	begin_poll(&frame, record, recall_as(record, w, (const void *)w->cb), w,
		   (const void *)w->cb, events, 1, 0, d9_loop_now(), &saved);
	d9__libev.ev_invoke(loop, watcher, events);
}

/* It was never pending: ready at the moment of the call. */
void d9__hook_ev_invoke(struct ev_loop *loop, void *w, int events)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record = d9__libev_recorded(thread, loop);

	if (!record || record->batch ||
	    d9__called_by_libev(thread, __builtin_return_address(0)) ||
	    d9__in_libev((const void *)((struct ev_watcher *)w)->cb))
		d9__libev.ev_invoke(loop, w, events);
	else
		invoke_recorded(record, loop, w, events);
}
