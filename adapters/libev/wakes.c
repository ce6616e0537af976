/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libev/wakes.h"

#include <signal.h>

#include <dial9/loop.h>

#include "libev/layout.h"
#include "libev/records.h"
#include "libev/thread.h"
#include "libev/watchers.h"
#include "loop/adapter.h"

/* When a signal arrived, until libev feeds its watchers.  Written by signal handlers. */
static _Atomic(uint64_t) arrived_ns[NSIG];

/* Without drain of our own all polls of a loop are one task's. */
static inline uint64_t key_of(const struct d9__libev_record *record, const void *w)
{
	return record->batch ? (uintptr_t)record : (uintptr_t)w;
}

/* ---- by libev ---- */

static __attribute__((noinline)) void wake_timer(struct d9__libev_record *record,
						 const struct d9__libev_watcher *known,
						 const ev_watcher *w, int events)
{
	struct d9_waker waker;

	d9_waker_self(&waker);
	waker.task_id = 0;
	if (events & EV_TIMER)
		waker.ns = d9__libev_watcher_timer_due_ns((const ev_timer *)w, known);
	else
		waker.ns = d9__libev_watcher_periodic_due_ns((const ev_periodic *)w);
	d9_wake(record->loop, key_of(record, w), D9_WAKE_TIMER, &waker);
}

static void wake_signal(const struct d9__libev_thread *thread, struct d9__libev_record *record,
			const ev_watcher *w)
{
	struct d9_waker waker;
	uint64_t ns;

	d9_waker_self(&waker);
	waker.task_id = 0;
	ns = atomic_load_explicit(&arrived_ns[thread->signum], memory_order_relaxed);
	if (ns && ns < waker.ns)
		waker.ns = ns;
	d9_wake(record->loop, key_of(record, w), D9_WAKE_SIGNAL, &waker);
}

static void wake_async(struct d9__libev_record *record, const ev_watcher *w)
{
	struct d9_waker waker, self;

	d9_waker_self(&self);
	if (!d9__libev_record_cell_take(w, &waker)) {
		/* One that came between the two halves of the one before. */
		self.task_id = 0;
		self.worker = 255;
		waker = self;
	}
	d9_wake(record->loop, key_of(record, w),
		waker.worker == self.worker && waker.task_id ? D9_WAKE_ACTIVE
							     : D9_WAKE_CROSS_THREAD,
		&waker);
}

static inline void wake_by_libev(const struct d9__libev_thread *thread,
				 struct d9__libev_record *record,
				 const struct d9__libev_watcher *known, const ev_watcher *w,
				 int events)
{
	if (events & (EV_READ | EV_WRITE))
		d9_wake(record->loop, key_of(record, w), D9_WAKE_FD, NULL);
	else if (events & (EV_TIMER | EV_PERIODIC))
		wake_timer(record, known, w, events);
	else if (events & EV_ASYNC)
		wake_async(record, w);
	else if (events & EV_SIGNAL)
		wake_signal(thread, record, w);
	else
		d9_wake(record->loop, key_of(record, w), (enum d9_wake_reason)d9__libev_watcher_reason(events),
			NULL);
}

/* A one-shot timer's rest of time counts from when the loop last looked at the clock. */
static uint64_t timer_due_ns(const struct d9__libev_record *record, const ev_timer *timer)
{
	struct ev_loop *loop = (struct ev_loop *)(uintptr_t)atomic_load_explicit(
		&record->address, memory_order_relaxed);
	uint64_t due_ns = d9__libev_watcher_timer_due_ns(timer, NULL);
	double lag = d9__libev.ev_time() - d9__libev.ev_now(loop);

	if (timer->repeat > 0. || lag <= 0. || lag * 1e9 >= (double)due_ns)
		return due_ns;
	return due_ns - (uint64_t)(lag * 1e9);
}

void d9__libev_wake_tell_ready(struct d9__libev_record *record, struct d9__libev_watcher *known,
			  const struct ev_watcher *w, int events, struct d9_poll *poll)
{
	if (poll->ready_ns)
		return;
	poll->reason = d9__libev_watcher_reason(events);
	if (events & EV_TIMER && known->started && known->kind == D9_TASK_TIMER) {
		poll->ready_ns = timer_due_ns(record, (const ev_timer *)w);
		known->expired = !ev_is_active(w);
	} else if (events & EV_PERIODIC && known->started && known->kind == D9_TASK_PERIODIC) {
		poll->ready_ns = d9__libev_watcher_periodic_due_ns((const ev_periodic *)w);
	} else if (events & EV_ASYNC) {
		wake_async(record, (const ev_watcher *)w);
	}
}

/* ---- by the program ---- */

static void wake_by_program(const struct d9__libev_thread *thread, struct d9__libev_record *record,
			    struct d9__libev_watcher *known, const ev_watcher *w, int events,
			    const void *site)
{
	/* Fed and never started: this is the place that it will be known by. */
	if (!known && !ev_is_active(w) && !d9_task_id(D9_LIBRARY_LIBEV, (uintptr_t)w)) {
		known = d9__libev_record_place_for(record, w);
		*known = (struct d9__libev_watcher) { .watcher = w,
						      .callback = (const void *)w->cb,
						      .site = site,
						      .fd = -1,
						      .kind = d9__libev_watcher_kind(events) };
	}
	d9_wake(record->loop, key_of(record, w),
		thread->now.record == record ? D9_WAKE_ACTIVE : D9_WAKE_UNKNOWN, NULL);
}

/* With another callback it is another task, and this its wake. */
static __attribute__((noinline)) void change_callback(struct d9__libev_watcher *known,
						      const ev_watcher *w)
{
	known->callback = (const void *)w->cb;
	known->callsite = NULL;
	d9_task_renew(D9_LIBRARY_LIBEV, (uintptr_t)w, d9__libev_identity(known->callback));
}

/* ---- hooks ---- */

static __attribute__((noinline)) void see_feed(struct d9__libev_thread *thread,
					       struct d9__libev_record *record, const ev_watcher *w,
					       int events, const void *caller)
{
	struct d9__libev_watcher *known;

	if (d9__in_libev((const void *)w->cb))
		return;
	known = d9__libev_recall(record, w);
	if (known && known->callback != (const void *)w->cb)
		change_callback(known, w);
	if (thread->feeder)
		wake_by_program(thread, record, known, w, events, thread->feeder);
	else if (!d9__called_by_libev(thread, caller))
		wake_by_program(thread, record, known, w, events, d9__libev_site(thread, caller));
	else if (d9__libev_layout.feeds) /* the poll tells it, where not all feeding is seen */
		wake_by_libev(thread, record, known, w, events);
}

/* The usual feeds, of tasks that were polled as what they are now: the core alone knows those. */
static inline bool is_told(const struct d9__libev_thread *thread,
			   const struct d9__libev_record *record, const ev_watcher *w, int events,
			   const void *caller)
{
	uint64_t identity;

	if (!d9__gate_open(D9__GATE_WAKE) || record->batch)
		return false;
	identity = d9__libev_identity((const void *)w->cb);
	if (thread->feeder || !d9__called_by_libev(thread, caller))
		return thread->now.record == record &&
		       d9__wake_known(record->loop, (uintptr_t)w, identity);
	return events & (EV_READ | EV_WRITE) &&
	       d9__wake_known_fd(record->loop, (uintptr_t)w, identity);
}

void d9__hook_ev_feed_event(struct ev_loop *loop, void *w, int events)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	const void *caller = __builtin_return_address(0);
	struct d9__libev_record *record;

	if (__builtin_expect(thread->calibrating, 0))
		d9__libev_seen.feed = true;
	record = d9__libev_recorded(thread, loop);
	if (record && !is_told(thread, record, w, events, caller))
		see_feed(thread, record, w, events, caller);
	d9__libev.ev_feed_event(loop, w, events);
}

/* The program is the waker of all that libev feeds meanwhile. */
#define FEEDS_FOR_PROGRAM(call)                                                                    \
	do {                                                                                       \
		struct d9__libev_thread *thread = d9__libev_thread();                              \
		const void *caller = __builtin_return_address(0), *saved = thread->feeder;         \
                                                                                                   \
		if (!d9__called_by_libev(thread, caller))                                          \
			thread->feeder = d9__libev_site(thread, caller);                           \
		call;                                                                              \
		thread->feeder = saved;                                                            \
	} while (0)

void d9__hook_ev_feed_fd_event(struct ev_loop *loop, int fd, int events)
{
	FEEDS_FOR_PROGRAM(d9__libev.ev_feed_fd_event(loop, fd, events));
}

void d9__hook_ev_feed_signal_event(struct ev_loop *loop, int signum)
{
	struct d9__libev_thread *self = d9__libev_thread();

	self->signum = signum > 0 && signum < NSIG ? signum : 0;
	FEEDS_FOR_PROGRAM(d9__libev.ev_feed_signal_event(loop, signum));
	if (self->signum)
		atomic_store_explicit(&arrived_ns[self->signum], 0, memory_order_relaxed);
	self->signum = 0;
}

/* A signal handler: nothing but atomics. */
void d9__hook_ev_feed_signal(int signum)
{
	struct d9_waker waker;
	uint64_t none = 0;

	if (d9__gate_open(D9__GATE_WAKE) && signum > 0 && signum < NSIG) {
		d9_waker_self(&waker);
		atomic_compare_exchange_strong_explicit(&arrived_ns[signum], &none, waker.ns,
							memory_order_relaxed, memory_order_relaxed);
	}
	d9__libev.ev_feed_signal(signum);
}

/* Any thread, any signal handler: nothing but atomics. */
void d9__hook_ev_async_send(struct ev_loop *loop, ev_async *w)
{
	if (d9__gate_open(D9__GATE_WAKE))
		d9__libev_record_cell_fill(w);
	d9__libev.ev_async_send(loop, w);
}
