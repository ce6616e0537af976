/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs that stand in for callbacks.  Only the callback's pointer is replaced, never its
 * argument: libevent hands the argument of some events to other functions.
 */

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "libevent/real.h"

/* The meaning of a call of the stub to the trace. */
enum d9__stub_kind {
	D9__STUB_POLL,
	D9__STUB_ONCE,      /* a poll; its task ends with it */
	D9__STUB_FINALIZER, /* a poll; its task ends with it, and memory is freed behind it */
	D9__STUB_SPAN,      /* a user's callback inside a poll of libevent's */
};

/* Each returns |callback| itself if it is NULL or no stub is left. */
d9__event_fn d9__libevent_pool_wrap_event(d9__event_fn callback, const void *site, enum d9__stub_kind kind);
d9__pair_fn d9__libevent_pool_wrap_pair(d9__pair_fn callback, const void *site, enum d9__stub_kind kind);
d9__bufferevent_event_fn d9__libevent_pool_wrap_bufferevent_event(d9__bufferevent_event_fn callback,
						    const void *site);

struct d9__libevent_thread;

/*
 * Wrap what a hook was given whose caller is |caller|: unwrap |*callback|, and find the site.
 * Quick if this thread's latest one of the kind, POLL or ONCE, was the same.
 */
d9__event_fn d9__libevent_pool_wrap_event_called(struct d9__libevent_thread *thread, d9__event_fn *callback,
				   void *caller, enum d9__stub_kind kind);

/*
 * event_new() made |event|, whose callback this thread just wrapped.  If many of its kind live it is a task
 * from now on, so that those which never run are seen to heap up.  |arg|: what it will be called with.
 */
void d9__libevent_pool_event_made(struct d9__libevent_thread *thread, const struct event_base *base,
		    const struct event *event, d9__event_fn wrapped, int fd, short events, void *arg);

/* One that event_new() made, with the callback |wrapped|, is about to be freed. */
void d9__libevent_pool_event_freed(d9__event_fn wrapped);

/* libevent registers |callback| for a listener: its tasks are of that kind. */
void d9__libevent_pool_note_listener_callback(d9__event_fn callback);

d9__listener_fn d9__libevent_pool_wrap_listener(d9__listener_fn callback, const void *site);
d9__dns_fn d9__libevent_pool_wrap_dns(d9__dns_fn callback, const void *site);
d9__addrinfo_fn d9__libevent_pool_wrap_addrinfo(d9__addrinfo_fn callback, const void *site);
d9__answer_fn d9__libevent_pool_wrap_answer(d9__answer_fn callback, const void *site);
d9__maker_fn d9__libevent_pool_wrap_maker(d9__maker_fn callback, const void *site);
d9__error_fn d9__libevent_pool_wrap_error(d9__error_fn callback, const void *site);

/* The program's own callback behind a stub; anything else is returned as it is. */
d9__event_fn d9__libevent_pool_unwrap_event(d9__event_fn callback);
d9__pair_fn d9__libevent_pool_unwrap_pair(d9__pair_fn callback);
d9__bufferevent_event_fn d9__libevent_pool_unwrap_bufferevent_event(d9__bufferevent_event_fn callback);

/* Callbacks that run unrecorded because no stub was left, over all pools. */
extern _Atomic(uint32_t) d9__stubs_full;
void d9__pools_init(void);

/*
 * Identity: tells a task that is set up again with the same callback and argument from a new one.
 * Its first half, which depends on the callback alone, is even.
 */
static inline uint64_t d9__callback_identity(void *callback)
{
	return (uintptr_t)callback * UINT64_C(0x9e3779b97f4a7c15) << 1;
}

static inline uint64_t d9__pair_identity(void *callback, void *arg)
{
	return (d9__callback_identity(callback) + 2 * (uint64_t)(uintptr_t)arg) | 1;
}
