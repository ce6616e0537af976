/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/hot.h"
#include "base/time.h"
#include "libevent/dispatch.h"

#include "libevent/bases.h"
#include "libevent/thread.h"

/* One run of event_base_loop() on this thread's stack. */
struct frame {
	struct d9__libevent_context saved;
	void *saved_site;
	struct d9_loop_run run;
	bool recorded;
};

/*
 * A longjmp() out of a callback leaves what it skipped in the thread block.  Its frame lies below
 * ours then; on the stack of a coroutine this may take a living one for dead, which costs no more
 * than the site of what the callback registers before it ends.
 */
static void forget_dead_frames(struct d9__libevent_thread *thread, uintptr_t frame)
{
	if (thread->now.frame && thread->now.frame < frame)
		thread->now = (struct d9__libevent_context) { 0 };
	thread->skip_assign = false;
	thread->deferring = false;
	thread->making = D9__MAKING_NOTHING;
}

static void leave_loop(struct frame *frame)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	if (frame->recorded)
		d9_loop_leave(&frame->run);
	thread->now = frame->saved;
	thread->site = frame->saved_site;
}

static void enter_loop(struct frame *frame, struct event_base *event_base)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	struct d9__libevent_base *base = d9__libevent_base_find(event_base);

	forget_dead_frames(thread, (uintptr_t)frame);
	frame->saved = thread->now;
	frame->saved_site = thread->site;
	frame->recorded = base != NULL;
	thread->site = NULL;
	thread->now = (struct d9__libevent_context) {
		.base = base,
		.frame = (uintptr_t)frame,
		.state = base ? D9__STATE_LOOP : D9__STATE_OUT,
		.batch_starts = true,
	};
	if (base)
		d9_loop_enter(base->loop, &frame->run);
}

int d9__hook_event_base_loop(struct event_base *base, int flags)
{
	__attribute__((cleanup(leave_loop))) struct frame frame;

	if (!d9__libevent_thread()->calibrating)
		d9__got_rescan();
	enter_loop(&frame, base);
	return d9__real.event_base_loop(base, flags);
}

/* The real one's call of event_base_loop() may be bound inside libevent. */
int d9__hook_event_base_dispatch(struct event_base *base)
{
	return d9__hook_event_base_loop(base, 0);
}

static int64_t wait_ns(const struct timeval *timeout)
{
	if (!timeout || timeout->tv_sec > INT64_MAX / 2000000000)
		return -1;
	return timeout->tv_sec * (int64_t)D9__SECOND_NS + timeout->tv_usec * (int64_t)D9__US_NS;
}

/* No read-modify-write: there is one writer at a time. */
static void count_zero_dispatch(struct d9__libevent_base *base)
{
	uint64_t n = atomic_load_explicit(&base->zero_dispatches, memory_order_relaxed);

	atomic_store_explicit(&base->zero_dispatches, n + 1, memory_order_relaxed);
}

/*
 * Libevent's dispatch of an attached base.  The base lock is held: no function of libevent and
 * nothing that takes the loader's lock may be called.
 */
D9__HOT int d9__libevent_dispatch(struct event_base *event_base, struct timeval *timeout)
{
	struct d9__libevent_base *base = d9__libevent_wrapped_base(event_base);
	struct d9__libevent_thread *thread = d9__libevent_thread();
	int64_t ns;
	int result;

	/* Only wrapped bases have this function in their table. */
	if (!base)
		__builtin_unreachable();
	if (thread->now.base != base) {
		/* event_base_loop() was called where our hook could not see it. */
		thread->now = (struct d9__libevent_context) { .base = base };
	}
	thread->site = NULL;
	thread->now.state = D9__STATE_DISPATCH;
	thread->depth = 0;
	ns = wait_ns(timeout);
	if (ns == 0)
		count_zero_dispatch(base);
	d9_loop_park(base->loop, ns);
	result = base->original->dispatch(event_base, timeout);
	d9_loop_unpark(base->loop);
	thread->now.state = D9__STATE_LOOP;
	thread->now.batch_starts = true;
	return result;
}

/* With a changelist backend libevent has replaced the table: 0 polls without this. */
int d9__hook_event_reinit(struct event_base *base)
{
	D9__SCOPE_MAKING(D9__MAKING_BASE);
	int result = d9__real.event_reinit(base);

	d9__libevent_base_find(base);
	return result;
}
