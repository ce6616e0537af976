/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include <stddef.h>
#include <unwind.h>

#include "hook/stubs.h"
#include "libevent/bases.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

_Thread_local struct d9__libevent_thread d9__libevent_self D9_TLS;

struct walk {
	void *found;
	int left;
	bool in_libevent; /* past our own hooks, which in a static library no address tells */
};

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *arg)
{
	struct walk *walk = arg;
	void *address = (void *)_Unwind_GetIP(context);

	if (!address || !walk->left--)
		return _URC_END_OF_STACK;
	walk->in_libevent |= d9__in_libevent(address);
	if (D9__LIBEVENT_ARCHIVE && !walk->in_libevent)
		return _URC_NO_REASON;
	if (d9__in_libevent(address) || d9__libevent_base_is_ours(address))
		return _URC_NO_REASON;
	/* The outermost frame of a coroutine has a caller that is any word of its stack. */
	if (d9__callsite_is_code(address))
		walk->found = address;
	return _URC_END_OF_STACK;
}

/*
 * Only where libevent registers something outside of any call that we hook: 26,000 instructions.
 * While recording is off each connection that a listener takes would come here four times, to find
 * who runs the loop.
 */
static void *walk_to_program(void)
{
	struct walk walk = { .left = 32 };

	if (!d9__gate_open(D9__GATE_LOOP))
		return NULL;
	_Unwind_Backtrace(look_at_frame, &walk);
	return walk.found;
}

/* The running poll's callback registered something by a call that the compiler made a jump. */
static void *site_of_tail_call(const struct d9__libevent_thread *thread)
{
	return thread->now.stub ? thread->now.stub->callback : NULL;
}

void *d9__libevent_thread_site(void *caller)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	bool by_libevent = d9__called_by_libevent(thread, caller);

	if (D9__LIBEVENT_ARCHIVE)
		thread->by_libevent = by_libevent;
	if (thread->site)
		return thread->site;
	if (d9__libevent_base_is_ours(caller))
		return site_of_tail_call(thread);
	if (!by_libevent)
		return caller;
	if (d9__libevent_in_poll(thread) && thread->now.stub)
		return (void *)thread->now.stub->site;
	return walk_to_program();
}

void d9__libevent_thread_scope_enter(struct d9__libevent_scope *scope, void *caller)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	bool by_libevent = d9__called_by_libevent(thread, caller);

	scope->saved = thread->site;
	if (D9__LIBEVENT_ARCHIVE)
		thread->by_libevent = by_libevent;
	if (thread->site)
		return;
	if (by_libevent) {
		/* Here nothing but the scope tells that the next call is libevent's too. */
		if (d9__libevent_is_static())
			thread->site = (void *)thread->now.stub->site;
		return;
	}
	thread->site = d9__libevent_base_is_ours(caller) ? site_of_tail_call(thread) : caller;
}

void d9__libevent_thread_scope_leave(struct d9__libevent_scope *scope)
{
	d9__libevent_thread()->site = scope->saved;
}
