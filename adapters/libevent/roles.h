/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles: what libevent's own callbacks are for.  Distributions strip libevent, so their names are gone.  The adapter
 * knows
 * which public function the program is calling while libevent registers one: what bufferevent_socket_new()
 * registers for reading is "bufferevent read".
 */

#pragma once

#include <stdint.h>

#include "libevent/real.h"

/* The innermost hooked function that is at work on a thread: what it makes. */
enum d9__libevent_making {
	D9__MAKING_NOTHING,
	D9__MAKING_BASE,
	D9__MAKING_NOTIFIER,
	D9__MAKING_COMMON_TIMEOUT,
	D9__MAKING_BUFFEREVENT,
	D9__MAKING_TLS_BUFFEREVENT,
	D9__MAKING_RATE_LIMIT,
	D9__MAKING_LISTENER,
	D9__MAKING_HTTP,
	D9__MAKING_DNS,
	D9__MAKING_DNS_SERVER,
};

struct d9__libevent_thread;

/* libevent registers |callback| for an event.  Any lock of libevent's may be held. */
void d9__libevent_role_note_event_role(const struct d9__libevent_thread *thread, d9__event_fn callback, int fd,
			 short events);

/* Note the role of a one-shot event, of a deferred callback, and of a finalizer. */
void d9__libevent_role_note_once_role(d9__event_fn callback);
void d9__libevent_role_note_deferred_role(const struct d9__libevent_thread *thread, d9__pair_fn callback);
void d9__libevent_role_note_finalizer_role(d9__pair_fn callback);
