/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes: why a callback is ready, read off libevent's activation functions where they are reachable.
 * They run with the base lock held: nothing here calls libevent or takes a lock.
 */

#include "config.h"

#include "base/hot.h"
#include "libevent/bases.h"
#include "libevent/fields.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

/* An activation by libevent's own callback: which driver runs tells why. */
static enum d9_wake_reason reason_in_internal_poll(const struct d9__libevent_thread *thread)
{
	if (thread->now.what & D9__EV_TIMEOUT)
		return D9_WAKE_TIMER; /* the driver of common timeouts */
	if (thread->now.what == D9__EV_READ && !thread->site)
		return D9_WAKE_SIGNAL; /* the reader of the signal pipe */
	return D9_WAKE_INTERNAL;
}

static enum d9_wake_reason reason_on(const struct d9__libevent_thread *thread,
				     const struct d9_loop *loop)
{
	if (!thread->now.base || thread->now.base->loop != loop)
		return D9_WAKE_UNKNOWN;
	if (thread->deferring)
		return D9_WAKE_DEFERRED;
	switch (thread->now.state) {
	case D9__STATE_DISPATCH:
		return D9_WAKE_FD;
	case D9__STATE_LOOP:
		if (thread->activating)
			return D9_WAKE_ACTIVE;
		return thread->now.batch_starts ? D9_WAKE_TIMER : D9_WAKE_INTERNAL;
	case D9__STATE_POLL:
		return D9_WAKE_ACTIVE;
	case D9__STATE_INTERNAL:
		return reason_in_internal_poll(thread);
	default:
		return D9_WAKE_UNKNOWN;
	}
}

/* A timer's wake is stamped with its due time, which its event still holds at this moment. */
static void wake_timer(struct d9_loop *loop, const void *key)
{
	struct d9_waker waker;

	d9_waker_self(&waker);
	waker.task_id = 0;
	waker.ns = d9__libevent_field_due_ns(key, waker.ns);
	d9_wake(loop, (uintptr_t)key, D9_WAKE_TIMER, &waker);
}

/*
 * Is there nothing to do but the real thing?  Then hooks end in a jump.  The answer may be one
 * activation late.
 */
static inline bool is_off(void)
{
	return __builtin_expect(
		!d9__gate_open(D9__GATE_LOOP) &&
			atomic_load_explicit(&d9__libevent_fields.calibrated, memory_order_relaxed),
		0);
}

static __attribute__((noinline)) void wake(struct event_base *base, const void *key)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	enum d9_wake_reason reason;
	struct d9_loop *loop;

	if (!base || !d9__gate_open(D9__GATE_LOOP) || thread->calibrating)
		return;
	loop = d9__libevent_loop_of(base);
	if (!loop)
		return;
	if (thread->now.base && thread->now.base->loop == loop)
		thread->depth++;
	if (!d9__gate_open(D9__GATE_WAKE))
		return;
	reason = reason_on(thread, loop);
	if (reason == D9_WAKE_TIMER)
		wake_timer(loop, key);
	else
		d9_wake(loop, (uintptr_t)key, reason, NULL);
}

/* The two usual cases on a thread that runs |base|: by the program's callback, by the backend. */
static inline bool wake_here(struct d9__libevent_thread *thread, struct event_base *base,
			     const void *key)
{
	struct d9__libevent_base *record = thread->now.base;
	enum d9_wake_reason reason = D9_WAKE_ACTIVE;

	if (!record || record != d9__libevent_wrapped_base(base) || thread->deferring)
		return false;
	if (thread->now.state == D9__STATE_DISPATCH)
		reason = D9_WAKE_FD;
	else if (thread->now.state != D9__STATE_POLL)
		return false;
	thread->depth++;
	d9_wake(record->loop, (uintptr_t)key, reason, NULL);
	return true;
}

D9__HOT int d9__hook_event_callback_activate_nolock_(struct event_base *base,
						     struct event_callback *callback)
{
	struct d9__libevent_thread *thread;
	int result;

	if (is_off())
		return d9__real.event_callback_activate_nolock_(base, callback);
	result = d9__real.event_callback_activate_nolock_(base, callback);
	thread = d9__libevent_thread();
	if (__builtin_expect(thread->calibrating, 0))
		d9__libevent_field_probe_activation();
	if (result && !wake_here(thread, base, callback))
		wake(base, callback);
	return result;
}

int d9__hook_event_callback_activate_later_nolock_(struct event_base *base,
						   struct event_callback *callback)
{
	int result;

	if (is_off())
		return d9__real.event_callback_activate_later_nolock_(base, callback);
	result = d9__real.event_callback_activate_later_nolock_(base, callback);
	if (result)
		wake(base, callback);
	return result;
}

/* libevent 2.0. */
void d9__hook_event_active_nolock(struct event *event, int result, short n_calls)
{
	if (is_off()) {
		d9__real.event_active_nolock(event, result, n_calls);
		return;
	}
	d9__real.event_active_nolock(event, result, n_calls);
	if (__builtin_expect(d9__libevent_thread()->calibrating, 0))
		d9__libevent_field_probe_activation();
	wake(d9__real.event_get_base(event), event);
}

/*
 * The public calls tell of a wake only where the functions above are out of reach.  No lock is held here: once the
 * real call has let the loop's thread go on, the event may have run, and be gone.  So the wake comes first; that
 * it was awake already is nothing new to the trace.
 */
static inline void activate(struct event *event, int result, short n_calls)
{
	if (__builtin_expect(d9__libevent_wakes_are_public(), 0))
		wake(d9__real.event_get_base(event), event);
	d9__real.event_active(event, result, n_calls);
}

/* By the program's evwatch (2.2), where else timers come due. */
static __attribute__((noinline)) void activate_between_callbacks(struct d9__libevent_thread *thread,
								 struct event *event, int result,
								 short n_calls)
{
	thread->activating = true;
	activate(event, result, n_calls);
	thread->activating = false;
}

void d9__hook_event_active(struct event *event, int result, short n_calls)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	if (__builtin_expect(thread->now.state == D9__STATE_LOOP, 0))
		activate_between_callbacks(thread, event, result, n_calls);
	else
		activate(event, result, n_calls);
}

int d9__hook_event_deferred_cb_schedule_(struct event_base *base, struct event_callback *callback)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	bool saved = thread->deferring, public = d9__libevent_wakes_are_public();
	/* Nothing runs meanwhile then, and the result tells if it was new. */
	bool here = public && base && thread->now.base && thread->now.base == d9__libevent_wrapped_base(base);
	int result;

	thread->deferring = true;
	if (public && !here)
		wake(base, callback);
	result = d9__real.event_deferred_cb_schedule_(base, callback);
	if (public && here && result)
		wake(base, callback);
	thread->deferring = saved;
	return result;
}
