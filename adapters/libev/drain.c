/* SPDX-License-Identifier: Apache-2.0 */
/* What runs between libev and the program's callbacks: our drain, in the place of libev's. */

#include "config.h"

#include <errno.h>
#include <stdbool.h>

#include <dial9/loop.h>

#include "libev/layout.h"
#include "libev/polls.h"
#include "libev/records.h"
#include "libev/static.h"
#include "libev/thread.h"
#include "loop/adapter.h"
#include "loop/callsites.h"

#include <dial9/ev-embed-kinds.h>

_Atomic(uint32_t) d9__libev_internal, d9__libev_cancelled;

/* ---- one poll ---- */

struct frame {
	struct d9_poll poll;
	struct d9__libev_context saved;
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
	d9__libev_thread()->now = frame->saved;
	if (__builtin_expect(frame->known->expired, 0))
		end_expired(frame);
}

uint16_t d9__libev_kind(int events)
{
	return d9__ev_kind(events);
}

uint16_t d9__libev_reason(int events)
{
	if (events & (EV_READ | EV_WRITE))
		return D9_WAKE_FD;
	if (events & (EV_TIMER | EV_PERIODIC))
		return D9_WAKE_TIMER;
	if (events & (EV_SIGNAL | EV_CHILD))
		return D9_WAKE_SIGNAL;
	return events & EV_CUSTOM ? D9_WAKE_ACTIVE : D9_WAKE_INTERNAL;
}

/* A watcher that was started before we came, that was only fed, or that fell out of the memory. */
static __attribute__((noinline)) struct d9__libev_watcher *
learn(struct d9__libev_record *record, const struct ev_watcher *w, const void *callback, int events)
{
	struct d9__libev_watcher *known = d9__libev_place_for(record, w);
	struct d9_task task = { .fd = -1 };

	/* What a start told; of a start that went by a pointer taken before we came, nothing did. */
	if (!d9__task_armed(D9_LIBRARY_LIBEV, (uintptr_t)w, &task) || !task.callsite ||
	    task.callsite->callback != callback)
		task = (struct d9_task) { .fd = -1, .kind = d9__libev_kind(events) };
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

static inline __attribute__((always_inline)) void
begin_poll(struct frame *frame, struct d9__libev_thread *thread, struct d9__libev_record *record,
	   struct ev_watcher *w, const void *callback, int events, uint32_t depth, uint16_t flags,
	   uint64_t invoked_ns)
{
	struct d9__libev_watcher *known = d9__libev_recall(record, w);

	if (__builtin_expect(!known || known->callback != callback, 0))
		known = learn(record, w, callback, events);
	if (__builtin_expect(!known->callsite, 0))
		name_it(known);
	frame->known = known;
	frame->poll.loop = record->loop;
	frame->poll.task.key = (uintptr_t)w;
	frame->poll.task.identity = d9__libev_identity(callback);
	frame->poll.task.callsite = known->callsite;
	frame->poll.task.name = NULL;
	frame->poll.task.fd = known->kind == D9_TASK_IO ? known->fd : -1;
	frame->poll.task.kind = known->kind;
	frame->poll.task.flags = 0;
	frame->poll.ready_ns = invoked_ns;
	frame->poll.depth = depth;
	frame->poll.flags = flags;
	frame->poll.reason = invoked_ns ? D9_WAKE_ACTIVE : D9_WAKE_UNKNOWN;
	if (__builtin_expect(!d9__libev_layout.feeds, 0))
		d9__libev_tell_ready(record, known, w, events, &frame->poll);
	frame->saved = thread->now;
	d9_poll_begin(&frame->poll);
	thread->now.record = record;
	thread->now.callback = callback;
	thread->now.internal = false;
}

static D9__CALLS_BACK __attribute__((noinline)) void
record_poll(struct d9__libev_record *record, struct ev_loop *loop, struct ev_watcher *w, int events,
	    uint32_t depth, uint16_t flags)
{
	__attribute__((cleanup(end_poll))) struct frame frame;
	d9__libev_watcher_fn callback = w->cb;

	begin_poll(&frame, d9__libev_thread(), record, w, (const void *)callback, events, depth,
		   flags, 0);
	callback(loop, w, events);
}

/* ---- libev's own callbacks ---- */

static void leave_internal(struct d9__libev_context *saved)
{
	d9__libev_thread()->now = *saved;
}

/* The program's callback lies behind one of the emulation's, which is all that is known of it. */
static void note_emulation(const void *callback)
{
	static _Atomic(bool) noted;

	if ((uintptr_t)callback - d9__libev_emulation.low >=
		    d9__libev_emulation.high - d9__libev_emulation.low ||
	    atomic_exchange_explicit(&noted, true, memory_order_relaxed))
		return;
	d9__libev_degrade("poll", "partial", "libev's emulation of libevent is in use");
}

static D9__CALLS_BACK __attribute__((noinline)) void
run_internal(struct d9__libev_record *record, struct ev_loop *loop, struct ev_watcher *w, int events)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	__attribute__((cleanup(leave_internal), unused)) struct d9__libev_context saved = thread->now;
	const void *dummy = d9__libev_member(loop, d9__libev_layout.dummy);

	atomic_fetch_add_explicit(w == dummy ? &d9__libev_cancelled : &d9__libev_internal, 1,
				  memory_order_relaxed);
	note_emulation((const void *)w->cb);
	thread->now.record = record;
	thread->now.callback = (const void *)w->cb;
	thread->now.internal = true;
	if (events & EV_TIMER)
		thread->once_due_ns = d9__libev_timer_due_ns((ev_timer *)w, NULL);
	w->cb(loop, w, events);
}

/* ---- all that is pending ---- */

/* Callbacks feed, clear, stop, drain and free: nothing of these may be kept over a call. */
static inline volatile int *counts_of(struct ev_loop *loop)
{
	return d9__libev_member(loop, d9__libev_layout.counts);
}

static inline volatile int *priority_of(struct ev_loop *loop)
{
	return d9__libev_member(loop, d9__libev_layout.priority);
}

static inline struct d9__libev_pending *take_last(struct ev_loop *loop, int priority)
{
	struct d9__libev_pending *volatile *arrays =
		d9__libev_member(loop, d9__libev_layout.arrays);
	volatile int *counts = counts_of(loop);

	return &arrays[priority][--counts[priority]];
}

static inline uint32_t sum_of_counts(struct ev_loop *loop)
{
	volatile int *counts = counts_of(loop);

	return (uint32_t)(counts[0] + counts[1] + counts[2] + counts[3] + counts[4]);
}

static inline void run_one(struct d9__libev_record *record, struct ev_loop *loop,
			   const struct d9__libev_pending *pending, uint32_t *depth,
			   uint16_t *flags)
{
	struct ev_watcher *w = pending->watcher;
	int events = pending->events;

	w->pending = 0;
	if (__builtin_expect(!record || !d9__gate_open(D9__GATE_LOOP), 0)) {
		w->cb(loop, w, events);
	} else if (__builtin_expect(d9__in_libev((const void *)w->cb), 0)) {
		run_internal(record, loop, w, events);
		*flags = 0;
	} else {
		/* What it fed itself is not in the sum that this round began with. */
		record_poll(record, loop, w, events, *depth ? *depth : 1, *flags);
		*flags = D9_POLL_BATCHED;
	}
	if (*depth)
		--*depth;
}

D9__CALLS_BACK void d9__libev_drain(struct ev_loop *loop, struct d9__libev_record *record)
{
	volatile int *priority = priority_of(loop), *counts = counts_of(loop);
	uint32_t depth = sum_of_counts(loop);
	uint16_t flags = 0;

	*priority = D9__LIBEV_PRIORITIES;
	do {
		*priority = *priority - 1;
		while (counts[*priority])
			run_one(record, loop, take_last(loop, *priority), &depth, &flags);
	} while (*priority);
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
	__attribute__((cleanup(end_poll))) struct frame frame;
	struct ev_watcher *w = watcher;

	begin_poll(&frame, d9__libev_thread(), record, w, (const void *)w->cb, events, 1, 0,
		   d9_loop_now());
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
