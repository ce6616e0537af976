/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers are started and stopped, by the program or by libev. */

#include "config.h"

#include "base/time.h"
#include "libev/watchers.h"

#include <time.h>

#include <dial9/loop.h>

#include "libev/capabilities.h"
#include "libev/layout.h"
#include "libev/records.h"
#include "libev/thread.h"
#include "loop/adapter.h"

#include <dial9/ev-embed-kinds.h>

#define NS_PER_S 1e9

/* ---- kinds and reasons ---- */

uint16_t d9__libev_watcher_kind(int events)
{
	return d9__ev_kind(events);
}

uint16_t d9__libev_watcher_reason(int events)
{
	if (events & (EV_READ | EV_WRITE))
		return D9_WAKE_FD;
	if (events & (EV_TIMER | EV_PERIODIC))
		return D9_WAKE_TIMER;
	if (events & (EV_SIGNAL | EV_CHILD))
		return D9_WAKE_SIGNAL;
	return events & EV_CUSTOM ? D9_WAKE_ACTIVE : D9_WAKE_INTERNAL;
}

/* ---- times ---- */

/* Of seconds of CLOCK_MONOTONIC; 0 if they are not plausible. */
static uint64_t ns_of(double s)
{
	return s > 0. && s < 1e10 ? (uint64_t)(s * NS_PER_S) : 0;
}

/* ---- started ---- */

struct start {
	const void *watcher, *callback, *site;
	int32_t fd; /* of an io; what a signal or child watcher is for */
	uint16_t kind;
	bool renewed; /* its descriptor was set anew: another connection, maybe of the same number */
};

static void arm(struct d9__libev_record *record, struct d9__libev_watcher *known)
{
	struct d9_task task = {
		.key = (uintptr_t)known->watcher,
		.identity = d9__libev_identity(known->callback),
		.callsite = d9_callsite(known->callback, known->site, 0),
		.fd = known->kind == D9_TASK_IO ? known->fd : -1,
		.kind = known->kind,
	};

	known->callsite = task.callsite;
	d9_task_arm(record->loop, &task);
}

static __attribute__((noinline)) void remember(struct d9__libev_record *record,
					       const struct start *start)
{
	struct d9__libev_watcher *known = d9__libev_record_place_for(record, start->watcher);

	/* Another one than the one of that address; also one that only the core still knows. */
	if (start->renewed || known->watcher == start->watcher)
		d9_task_renew(D9_LIBRARY_LIBEV, (uintptr_t)start->watcher, 0);
	*known = (struct d9__libev_watcher) {
		.watcher = start->watcher,
		.callback = start->callback,
		.site = start->site,
		.fd = start->fd,
		.kind = start->kind,
		.started = true,
	};
	if (!record->batch && d9__gate_open(D9__GATE_LOOP))
		arm(record, known);
}

/* Before libev starts it: afterwards nothing tells that its descriptor was set. */
static inline void note_start(struct d9__libev_record *record, const struct start *start)
{
	struct d9__libev_watcher *known = d9__libev_recall(record, start->watcher);

	if (__builtin_expect(known && known->callback == start->callback &&
				     known->fd == start->fd && known->kind == start->kind &&
				     !start->renewed,
			     1))
		known->stopped = known->expired = false;
	else
		remember(record, start);
}

/* The program starts |w|, or sets the time of a timer anew, by a call of |function|. */
static __attribute__((noinline)) void note_waits(const struct d9__libev_thread *thread,
						 const struct d9__libev_record *record, const void *w,
						 const void *function, const void *caller, bool stays)
{
	if (record && !record->batch && !thread->calibrating)
		d9__task_waits(record->loop, (uintptr_t)w, -1, function, caller, stays);
}

/* True if the program, not libev, starts |w|, and that tells anything. */
static inline struct d9__libev_record *starts(struct d9__libev_thread *thread,
					      const struct ev_loop *loop, const ev_watcher *w)
{
	if (ev_is_active(w) || d9__in_libev((const void *)w->cb) || thread->calibrating)
		return NULL;
	return d9__libev_record_of(thread, loop);
}

static void on_io(struct d9__libev_record *record, ev_io *w, struct start *start)
{
	(void)record;
	start->fd = w->fd;
	start->renewed = (w->events & EV__IOFDSET) != 0;
}

static void on_signal(struct d9__libev_record *record, ev_signal *w, struct start *start)
{
	(void)record;
	start->fd = w->signum;
}

static void on_child(struct d9__libev_record *record, ev_child *w, struct start *start)
{
	(void)record;
	start->fd = w->pid;
}

static void on_idle(struct d9__libev_record *record, ev_idle *w, struct start *start)
{
	(void)w;
	(void)start;
	record->n_idle++;
}

static void on_async(struct d9__libev_record *record, ev_async *w, struct start *start)
{
	(void)start;
	if (!d9__libev_record_cell_add(w, record->loop))
		d9__libev_capability_degrade("wake", "partial", "more async watchers than cells");
}

static inline void on_other(struct d9__libev_record *record, void *w, struct start *start)
{
	(void)record;
	(void)w;
	(void)start;
}

/* Watchers that libev starts for itself are not noted, nor embed without a program's callback. */
#define START(type, kind_, details)                                                                \
	void d9__hook_ev_##type##_start(struct ev_loop *loop, ev_##type *w)                        \
	{                                                                                          \
		struct d9__libev_thread *thread = d9__libev_thread();                              \
		struct d9__libev_record *record = starts(thread, loop, (const ev_watcher *)w);     \
		const void *caller = __builtin_return_address(0);                                  \
                                                                                                   \
		if (record) {                                                                      \
			struct start start = { .watcher = w,                                       \
					       .callback = (const void *)w->cb,                    \
					       .site = d9__libev_site(thread, caller),             \
					       .fd = -1,                                           \
					       .kind = (kind_) };                                  \
                                                                                                   \
			details(record, w, &start);                                                \
			note_start(record, &start);                                                \
			if (d9__gate_arms())                                                       \
				note_waits(thread, record, w,                                      \
					   (const void *)d9__libev.ev_##type##_start, caller,      \
					   true);                                                  \
		}                                                                                  \
		d9__libev.ev_##type##_start(loop, w);                                              \
	}

START(io, D9_TASK_IO, on_io)
START(periodic, D9_TASK_PERIODIC, on_other)
START(signal, D9_TASK_SIGNAL, on_signal)
START(child, D9_TASK_CHILD, on_child)
START(stat, D9_TASK_STAT, on_other)
START(idle, D9_TASK_IDLE, on_idle)
START(prepare, D9_TASK_PREPARE, on_other)
START(check, D9_TASK_CHECK, on_other)
START(embed, D9_TASK_EMBED, on_other)
START(fork, D9_TASK_FORK, on_other)
START(cleanup, D9_TASK_CLEANUP, on_other)
START(async, D9_TASK_ASYNC, on_async)

/* Starts of a timer by the program; libev starts an inactive one by a call that may be bound inside it. */
static void note_timed(struct d9__libev_record *record, struct d9__libev_thread *thread,
		       const ev_watcher *w, uint16_t kind, const void *caller)
{
	struct start start = { .watcher = w,
			       .callback = (const void *)w->cb,
			       .site = d9__libev_site(thread, caller),
			       .fd = -1,
			       .kind = kind };

	note_start(record, &start);
}

void d9__hook_ev_periodic_again(struct ev_loop *loop, ev_periodic *w)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record = starts(thread, loop, (const ev_watcher *)w);

	if (record)
		note_timed(record, thread, (const ev_watcher *)w, D9_TASK_PERIODIC,
			   __builtin_return_address(0));
	if (d9__gate_arms())
		note_waits(thread, d9__libev_record_of(thread, loop), w,
			   (const void *)d9__libev.ev_periodic_again, __builtin_return_address(0), true);
	d9__libev.ev_periodic_again(loop, w);
}

/* ---- timers by a clock that stands still while callbacks run: they fire early ---- */

#define STALE_NS   (4 * D9__MS_NS)
#define STALE_PART 10
#define SURELY_NOT 0.003 /* s: less than what is stale, however the clocks differ */

/*
 * By the clock that libev looks at: the coarse one is up to two ticks behind, 8 ms, where a processor that
 * rests had the duty to move it on.
 */
static __attribute__((noinline)) void look_at_clock(struct d9__libev_record *record,
						    const ev_timer *w, double timeout)
{
	uint64_t timeout_ns = ns_of(timeout), due_ns = ns_of(w->at), lag_ns;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	lag_ns = ns_of((double)now.tv_sec + (double)now.tv_nsec / NS_PER_S) + timeout_ns - due_ns;
	if (timeout_ns && due_ns && lag_ns >= STALE_NS && lag_ns < ns_of(3600.) &&
	    STALE_PART * lag_ns >= timeout_ns)
		d9_timer_stale(record->loop, (uintptr_t)w, timeout_ns, due_ns);
}

/*
 * Does libev's clock stand still: does a callback of |record|'s loop run, or has this thread left
 * its loops, and is busy between two runs?
 */
static inline bool is_clock_still(const struct d9__libev_record *record,
				  const struct d9__libev_thread *thread)
{
	return thread->now.record == record ? thread->now.callback != NULL : !thread->now.record;
}

/*
 * Does libev count as the trace does, and may its clock be old?  Nearly all are not: that the
 * trace's clock tells at the least cost.
 */
static inline bool may_be_stale(const struct d9__libev_record *record,
				const struct d9__libev_thread *thread, const ev_timer *w,
				double timeout)
{
	return is_clock_still(record, thread) && !record->batch && d9__libev_layout.monotonic &&
	       d9__gate_open(D9__GATE_WAKE) && ev_is_active(w) &&
	       (double)(int64_t)d9_loop_now() * 1e-9 + timeout - w->at >= SURELY_NOT;
}

static inline void start_timer(struct ev_loop *loop, ev_timer *w, double timeout,
			       void (*start)(struct ev_loop *, ev_timer *), const void *caller)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record = starts(thread, loop, (const ev_watcher *)w);

	if (record)
		note_timed(record, thread, (const ev_watcher *)w, D9_TASK_TIMER, caller);
	/* Also of one that is active: its wait begins anew. */
	if (d9__gate_arms())
		note_waits(thread, d9__libev_record_of(thread, loop), w, (const void *)start, caller,
			   w->repeat > 0.);
	start(loop, w);
	if (record && may_be_stale(record, thread, w, timeout))
		look_at_clock(record, w, timeout);
}

void d9__hook_ev_timer_start(struct ev_loop *loop, ev_timer *w)
{
	if (d9__libev_thread()->restarting)
		d9__libev.ev_timer_start(loop, w);
	else
		start_timer(loop, w, w->at, d9__libev.ev_timer_start, __builtin_return_address(0));
}

void d9__hook_ev_timer_again(struct ev_loop *loop, ev_timer *w)
{
	struct d9__libev_thread *thread = d9__libev_thread();

	thread->restarting = true;
	start_timer(loop, w, w->repeat, d9__libev.ev_timer_again, __builtin_return_address(0));
	thread->restarting = false;
}

/* ---- stopped ---- */

/* The wake that was announced is void: the next poll must not be measured from it. */
static void forget_wake(struct d9__libev_watcher *known, const void *w)
{
	if (known)
		known->watcher = NULL;
	d9_task_end(D9_LIBRARY_LIBEV, (uintptr_t)w);
}

static inline void note_stop(struct d9__libev_watcher *known, const ev_watcher *w, bool by_libev)
{
	/* libev stops a watcher by itself when that is about to run. */
	if (d9__gate_arms() && !by_libev)
		d9__task_rests(D9_LIBRARY_LIBEV, (uintptr_t)w);
	if (w->pending) {
		forget_wake(known, w);
	} else if (known) {
		known->stopped = true;
		known->expired = by_libev;
	} else if (!by_libev) {
		d9_task_end(D9_LIBRARY_LIBEV, (uintptr_t)w);
	}
}

static inline struct d9__libev_record *stops(struct d9__libev_thread *thread,
					     const struct ev_loop *loop, const ev_watcher *w)
{
	if (!(ev_is_active(w) || w->pending) || d9__in_libev((const void *)w->cb) ||
	    thread->calibrating)
		return NULL;
	return d9__libev_record_of(thread, loop);
}

#define STOP(type, details)                                                                        \
	void d9__hook_ev_##type##_stop(struct ev_loop *loop, ev_##type *w)                         \
	{                                                                                          \
		struct d9__libev_thread *thread = d9__libev_thread();                              \
		struct d9__libev_record *record = stops(thread, loop, (const ev_watcher *)w);      \
		bool by_libev = d9__called_by_libev(thread, __builtin_return_address(0));          \
                                                                                                   \
		if (record) {                                                                      \
			struct d9__libev_watcher *known = d9__libev_recall(record, w);             \
                                                                                                   \
			details(record, known, w, by_libev);                                       \
			note_stop(known, (const ev_watcher *)w, by_libev);                         \
		}                                                                                  \
		d9__libev.ev_##type##_stop(loop, w);                                               \
	}

/* Where libev stops it by itself, it has just expired. */
static inline void off_timer(struct d9__libev_record *record, struct d9__libev_watcher *known,
			     ev_timer *w, bool by_libev)
{
	(void)record;
	if (known && by_libev)
		known->due_ns = ns_of(w->at);
}

static inline void off_idle(struct d9__libev_record *record, struct d9__libev_watcher *known,
			    ev_idle *w, bool by_libev)
{
	(void)known;
	(void)by_libev;
	if (ev_is_active(w) && record->n_idle)
		record->n_idle--;
}

static inline void off_async(struct d9__libev_record *record, struct d9__libev_watcher *known,
			     ev_async *w, bool by_libev)
{
	(void)record;
	(void)known;
	(void)by_libev;
	d9__libev_record_cell_remove(w);
}

static inline void off_other(struct d9__libev_record *record, struct d9__libev_watcher *known,
			     const void *w, bool by_libev)
{
	(void)record;
	(void)known;
	(void)w;
	(void)by_libev;
}

STOP(io, off_other)
STOP(timer, off_timer)
STOP(periodic, off_other)
STOP(signal, off_other)
STOP(child, off_other)
STOP(stat, off_other)
STOP(idle, off_idle)
STOP(prepare, off_other)
STOP(check, off_other)
STOP(embed, off_other)
STOP(fork, off_other)
STOP(cleanup, off_other)
STOP(async, off_async)

int d9__hook_ev_clear_pending(struct ev_loop *loop, void *w)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record = d9__libev_recorded(thread, loop);

	if (record && ((ev_watcher *)w)->pending)
		forget_wake(d9__libev_recall(record, w), w);
	return d9__libev.ev_clear_pending(loop, w);
}

void d9__hook_ev_set_allocator(void *(*allocate)(void *, long))
{
	d9__libev_seen.allocator = true;
	d9__libev.ev_set_allocator(allocate);
}

/* ---- deadlines ---- */

uint64_t d9__libev_watcher_timer_due_ns(const ev_timer *timer, const struct d9__libev_watcher *known)
{
	if (!d9__libev_layout.monotonic)
		return 0;
	/* A missed period is not made up for: then this is a lower bound of its lateness. */
	if (timer->repeat > 0.)
		return ns_of(timer->at - timer->repeat);
	if (known && known->due_ns)
		return known->due_ns;
	/* |at| is the rest of its time, because the loop has just looked at the clock. */
	return ns_of((double)d9_loop_now() / NS_PER_S + timer->at);
}

uint64_t d9__libev_watcher_periodic_due_ns(const ev_periodic *periodic)
{
	double due = periodic->interval > 0. ? periodic->at - periodic->interval : periodic->at;

	if (periodic->reschedule_cb)
		return 0;
	return ns_of((double)d9_loop_now() / NS_PER_S - (d9__libev.ev_time() - due));
}
