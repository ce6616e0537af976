/* SPDX-License-Identifier: Apache-2.0 */
/* Where the program and libevent hand over the callbacks of events, and where events end. */

#include "config.h"

#include <time.h>

#include <dial9/loop.h>

#include "base/time.h"
#include "libevent/bases.h"
#include "libevent/fields.h"
#include "libevent/pools.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

/* The argument that |event| is called with if it is given |arg|, which may stand for the event. */
static void *argument_of(struct event *event, void *arg)
{
	/* relaxed: it is one constant address, or not known yet */
	return arg && arg == atomic_load_explicit(&d9__libevent_fields.self_argument,
						  memory_order_relaxed)
		       ? event
		       : arg;
}

/*
 * An event was set up at the address of |event|.  With another pair of callback and argument, or
 * by libevent itself, which sets up a new object each time, it is a new task.
 */
static void note_assignment(struct event *event, d9__event_fn callback, void *arg, bool by_libevent)
{
	arg = argument_of(event, arg);
	d9_task_renew(D9_LIBRARY_LIBEVENT, (uintptr_t)event,
		      by_libevent ? 0 : d9__pair_identity((void *)callback, arg));
}

static void end_task(const void *key)
{
	d9_task_end(D9_LIBRARY_LIBEVENT, (uintptr_t)key);
}

static void note_event_of_libevent(const struct d9__libevent_thread *thread, d9__event_fn callback,
				   int fd, short events)
{
	if (thread->making == D9__MAKING_LISTENER)
		d9__libevent_pool_note_listener_callback(callback);
	d9__libevent_role_note_event_role(thread, callback, fd, events);
}

static __attribute__((noinline)) int assign(struct event *event, struct event_base *base, int fd,
					    short events, d9__event_fn callback, void *arg,
					    void *caller)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	bool by_libevent = d9__called_by_libevent(thread, caller);
	d9__event_fn stub = d9__libevent_pool_wrap_event_called(thread, &callback, caller, D9__STUB_POLL);
	int result;

	if (by_libevent)
		note_event_of_libevent(thread, callback, fd, events);
	result = d9__real.event_assign(event, base, fd, events, stub, arg);
	if (result == 0)
		note_assignment(event, callback, arg, by_libevent);
	return result;
}

int d9__hook_event_assign(struct event *event, struct event_base *base, int fd, short events,
			  d9__event_fn callback, void *arg)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	if (!thread->skip_assign && !thread->calibrating)
		return assign(event, base, fd, events, callback, arg, __builtin_return_address(0));
	if (thread->calibrating)
		d9__libevent_field_probe_assign();
	thread->skip_assign = false;
	return d9__real.event_assign(event, base, fd, events, callback, arg);
}

struct event *d9__hook_event_new(struct event_base *base, int fd, short events,
				 d9__event_fn callback, void *arg)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	void *caller = __builtin_return_address(0);
	bool by_libevent = d9__called_by_libevent(thread, caller);
	d9__event_fn stub;
	struct event *event;

	if (thread->calibrating)
		return d9__real.event_new(base, fd, events, callback, arg);
	stub = d9__libevent_pool_wrap_event_called(thread, &callback, caller, D9__STUB_POLL);
	thread->skip_assign = true;
	event = d9__real.event_new(base, fd, events, stub, arg);
	thread->skip_assign = false;
	if (!event)
		return NULL;
	note_assignment(event, callback, arg, by_libevent);
	/* Its end will be seen, unlike that of events in the program's own structures. */
	d9__libevent_pool_event_made(thread, base, event, stub, fd, events, argument_of(event, arg));
	return event;
}

void d9__hook_event_set(struct event *event, int fd, short events, d9__event_fn callback, void *arg)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	void *caller = __builtin_return_address(0);
	d9__event_fn stub;

	stub = d9__libevent_pool_wrap_event_called(thread, &callback, caller, D9__STUB_POLL);
	thread->skip_assign = true;
	d9__real.event_set(event, fd, events, stub, arg);
	thread->skip_assign = false;
	note_assignment(event, callback, arg, d9__called_by_libevent(thread, caller));
}

/* libevent's own once-callback stays raw: the poll carries the name of the user's. */
int d9__hook_event_base_once(struct event_base *base, int fd, short events, d9__event_fn callback,
			     void *arg, const struct timeval *timeout)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	d9__event_fn stub;
	int result;

	if (thread->calibrating)
		return d9__real.event_base_once(base, fd, events, callback, arg, timeout);
	stub = d9__libevent_pool_wrap_event_called(thread, &callback, __builtin_return_address(0), D9__STUB_ONCE);
	if (d9__is_callback_of_libevent((const void *)callback))
		d9__libevent_role_note_once_role(callback);
	thread->skip_assign = true;
	result = d9__real.event_base_once(base, fd, events, stub, arg, timeout);
	thread->skip_assign = false;
	return result;
}

/* Calls event_base_once(), which wraps; here only the caller is noted. */
int d9__hook_event_once(int fd, short events, d9__event_fn callback, void *arg,
			const struct timeval *timeout)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	d9__event_fn stub = d9__libevent_pool_wrap_event_called(thread, &callback, __builtin_return_address(0),
						  D9__STUB_ONCE);
	int result;

	D9__SCOPE();
	result = d9__real.event_once(fd, events, stub, arg, timeout);
	thread->skip_assign = false;
	return result;
}

/* ---- timers ---- */

/*
 * libevent looks at the clock once a round.  Told if that is so long ago that the timer will fire
 * early by a good part of what was asked for.
 */
#define STALE_NS   4000000
#define STALE_PART 10
#define TICK_NS	   10000000 /* of the coarse clock, where it is slowest */

static uint64_t ns_by(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return d9__timespec_ns(&now);
}

/*
 * How long ago |base| looked at the clock, whose time then was |seen_ns|; below 0 of something else.  It is the
 * coarse clock unless the program asked for precise timers: by the exact one a round that looked just now would
 * be taken for a stale one.  The coarse clock is never ahead of itself, so that a time ahead of it is not its.
 */
static int64_t age_of_clock(struct d9__libevent_base *base, uint64_t seen_ns)
{
	int64_t age;

	if (atomic_load_explicit(&base->exact_clock, memory_order_relaxed))
		return (int64_t)(ns_by(CLOCK_MONOTONIC) - seen_ns);
	age = (int64_t)(ns_by(CLOCK_MONOTONIC_COARSE) - seen_ns);
	if (age < 0 && -age <= TICK_NS)
		atomic_store_explicit(&base->exact_clock, true, memory_order_relaxed);
	return age;
}

/* |event|, of the loop whose callback runs, was added: by a clock of when? */
static __attribute__((noinline)) void look_at_clock(const struct d9__libevent_thread *thread,
						    const struct event *event,
						    const struct timeval *timeout)
{
	struct d9__libevent_base *base = thread->now.base;
	uint64_t timeout_ns, due_ns;
	int64_t lag_ns;

	if (!base || d9__real.event_get_base(event) != base->base)
		return;
	timeout_ns = d9__libevent_field_timeout_ns(timeout);
	due_ns = d9__libevent_field_deadline_ns(event);
	if (!due_ns || !timeout_ns)
		return;
	lag_ns = age_of_clock(base, due_ns - timeout_ns);
	if (lag_ns >= STALE_NS && lag_ns < (int64_t)D9__SECOND_NS * 3600 &&
	    STALE_PART * (uint64_t)lag_ns >= timeout_ns)
		d9_timer_stale(base->loop, (uintptr_t)event, timeout_ns, due_ns);
}

/* Before the call: behind it another thread may have run |event|, and freed it. */
static __attribute__((noinline)) void note_waits(const struct event *event, const void *caller)
{
	struct d9_loop *loop;
	short events;

	if (d9__libevent_thread()->calibrating || !(loop = d9__libevent_loop_of(d9__real.event_get_base(event))))
		return;
	events = d9__real.event_get_events(event);
	/* Of a signal the number stands where descriptors do. */
	d9__task_waits(loop, (uintptr_t)event, events & D9__EV_SIGNAL ? -1 : d9__real.event_get_fd(event),
		       (const void *)d9__real.event_add, caller, (events & D9__EV_PERSIST) != 0);
}

int d9__hook_event_add(struct event *event, const struct timeval *timeout)
{
	struct d9__libevent_thread *thread;
	int result;

	if (d9__gate_arms())
		note_waits(event, __builtin_return_address(0));
	if (!timeout || !d9__gate_open(D9__GATE_WAKE))
		return d9__real.event_add(event, timeout);
	result = d9__real.event_add(event, timeout);
	thread = d9__libevent_thread();
	/* Elsewhere libevent has just looked at the clock, or another thread may have the event now. */
	if (result == 0 && thread->now.state == D9__STATE_POLL && !thread->calibrating)
		look_at_clock(thread, event, timeout);
	return result;
}

/* ---- ends ---- */

/* Made by event_new(), and still what it was then. */
static void end_made(struct event *event)
{
	d9__libevent_pool_event_freed(d9__libevent_callback_in(event));
	end_task(event);
}

void d9__hook_event_free(struct event *event)
{
	end_made(event);
	d9__real.event_free(event);
}

/* For an embedded event this is the only end it ever announces. */
void d9__hook_event_debug_unassign(struct event *event)
{
	end_task(event);
	d9__real.event_debug_unassign(event);
}

int d9__hook_event_finalize(unsigned flags, struct event *event, d9__pair_fn callback)
{
	D9__SCOPE();

	end_task(event);
	return d9__real.event_finalize(flags, event,
				       d9__libevent_pool_wrap_pair(d9__libevent_pool_unwrap_pair(callback),
						     d9__libevent_thread()->site,
						     D9__STUB_FINALIZER));
}

int d9__hook_event_free_finalize(unsigned flags, struct event *event, d9__pair_fn callback)
{
	D9__SCOPE();

	end_made(event);
	return d9__real.event_free_finalize(flags, event,
					    d9__libevent_pool_wrap_pair(d9__libevent_pool_unwrap_pair(callback),
							  d9__libevent_thread()->site,
							  D9__STUB_FINALIZER));
}

/* ---- deferred callbacks, libevent's own ---- */

void d9__hook_event_deferred_cb_init_(struct event_callback *callback, uint8_t priority,
				      d9__pair_fn run, void *arg)
{
	void *site = d9__libevent_own_site(__builtin_return_address(0));

	d9_task_renew(D9_LIBRARY_LIBEVENT, (uintptr_t)callback, 0);
	d9__libevent_role_note_deferred_role(d9__libevent_thread(), run);
	d9__real.event_deferred_cb_init_(callback, priority,
					 d9__libevent_pool_wrap_pair(run, site, D9__STUB_POLL), arg);
}

/* libevent 2.0. */
void d9__hook_event_deferred_cb_init(void *callback, d9__pair_fn run, void *arg)
{
	void *site = d9__libevent_own_site(__builtin_return_address(0));

	d9_task_renew(D9_LIBRARY_LIBEVENT, (uintptr_t)callback, 0);
	d9__libevent_role_note_deferred_role(d9__libevent_thread(), run);
	d9__real.event_deferred_cb_init(callback, d9__libevent_pool_wrap_pair(run, site, D9__STUB_POLL), arg);
}

int d9__hook_event_callback_finalize_many_(struct event_base *base, int n,
					   struct event_callback **callbacks, d9__pair_fn run)
{
	void *site = d9__libevent_own_site(__builtin_return_address(0));

	for (int i = 0; i < n; i++)
		end_task(callbacks[i]);
	d9__libevent_role_note_finalizer_role(run);
	return d9__real.event_callback_finalize_many_(base, n, callbacks,
						      d9__libevent_pool_wrap_pair(run, site, D9__STUB_FINALIZER));
}

/* ---- the program gets back what it gave ---- */

d9__event_fn d9__hook_event_get_callback(const struct event *event)
{
	return d9__libevent_pool_unwrap_event(d9__real.event_get_callback(event));
}

void d9__hook_event_get_assignment(const struct event *event, struct event_base **base, int *fd,
				   short *events, d9__event_fn *callback, void **arg)
{
	d9__real.event_get_assignment(event, base, fd, events, callback, arg);
	if (callback)
		*callback = d9__libevent_pool_unwrap_event(*callback);
}

void d9__hook_bufferevent_getcb(struct bufferevent *bev, d9__pair_fn *on_read,
				d9__pair_fn *on_write, d9__bufferevent_event_fn *on_event,
				void **arg)
{
	d9__real.bufferevent_getcb(bev, on_read, on_write, on_event, arg);
	if (on_read)
		*on_read = d9__libevent_pool_unwrap_pair(*on_read);
	if (on_write)
		*on_write = d9__libevent_pool_unwrap_pair(*on_write);
	if (on_event)
		*on_event = d9__libevent_pool_unwrap_bufferevent_event(*on_event);
}

void d9__hook_event_set_mem_functions(void *allocate, void *resize, void *release)
{
	d9__libevent_field_note_allocator();
	d9__real.event_set_mem_functions(allocate, resize, release);
}
