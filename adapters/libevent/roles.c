/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libevent/roles.h"

#include <string.h>

#include "hook/stubs.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

static const char bufferevent_read[] = "bufferevent read";
static const char dns_read[] = "evdns read";

static const char *role_of_bufferevent_event(int fd, short events)
{
	if (events & D9__EV_READ)
		return bufferevent_read;
	if (events & D9__EV_WRITE)
		return "bufferevent write";
	return fd < 0 ? "bufferevent timeout" : NULL;
}

/* Nothing that we hook is at work: libevent's own callback sets up what it needs next. */
static const char *role_inside_poll(const struct d9__libevent_thread *thread, int fd, short events)
{
	if (thread->now.state != D9__STATE_INTERNAL)
		return NULL;
	/* TLS goes from the handshake to reading and writing; a client's HTTP connection has failed. */
	return fd >= 0 ? role_of_bufferevent_event(fd, events) : "evhttp connection retry";
}

static const char *role_of_event(const struct d9__libevent_thread *thread, int fd, short events)
{
	switch (thread->making) {
	case D9__MAKING_BASE:
		return "signal pipe";
	case D9__MAKING_NOTIFIER:
		return "wake-up by another thread";
	case D9__MAKING_COMMON_TIMEOUT:
		return "common timeouts";
	case D9__MAKING_BUFFEREVENT:
	case D9__MAKING_TLS_BUFFEREVENT:
		return role_of_bufferevent_event(fd, events);
	case D9__MAKING_RATE_LIMIT:
		return "bufferevent rate limit";
	case D9__MAKING_LISTENER:
		return "listener accept";
	case D9__MAKING_HTTP:
		return "evhttp connection retry";
	case D9__MAKING_DNS:
		return fd >= 0 ? dns_read : "evdns timeout";
	case D9__MAKING_DNS_SERVER:
		return "evdns server";
	default:
		return role_inside_poll(thread, fd, events);
	}
}

/* Both directions of a handshake have one callback. */
static bool is_handshake(const struct d9__libevent_thread *thread, const char *role,
			 const char *known)
{
	return thread->making == D9__MAKING_TLS_BUFFEREVENT && known == bufferevent_read &&
	       role != bufferevent_read;
}

void d9__libevent_role_note_event_role(const struct d9__libevent_thread *thread, d9__event_fn callback, int fd,
			 short events)
{
	const char *role = role_of_event(thread, fd, events), *known;

	if (!role)
		return;
	known = d9__callback_role((const void *)callback);
	if (!known)
		d9__callback_role_set((const void *)callback, role);
	else if (is_handshake(thread, role, known))
		d9__callback_role_set((const void *)callback, "bufferevent TLS handshake");
}

static void note(const void *callback, const char *role)
{
	if (!d9__callback_role(callback))
		d9__callback_role_set(callback, role);
}

void d9__libevent_role_note_once_role(d9__event_fn callback)
{
	/* Nothing else of libevent's makes one. */
	note((const void *)callback, "loopexit");
}

static bool runs_dns(const struct d9__libevent_thread *thread)
{
	const char *running = thread->now.stub ? d9__callback_role(thread->now.stub->callback) : NULL;

	return running && !strncmp(running, "evdns", strlen("evdns"));
}

void d9__libevent_role_note_deferred_role(const struct d9__libevent_thread *thread, d9__pair_fn callback)
{
	switch (thread->making) {
	case D9__MAKING_BUFFEREVENT:
	case D9__MAKING_TLS_BUFFEREVENT:
		note((const void *)callback, "bufferevent deferred");
		break;
	case D9__MAKING_HTTP:
		note((const void *)callback, "evhttp read");
		break;
	case D9__MAKING_DNS:
		note((const void *)callback, "evdns answer");
		break;
	default:
		note((const void *)callback, runs_dns(thread) ? "evdns answer" : "evbuffer callbacks");
	}
}

void d9__libevent_role_note_finalizer_role(d9__pair_fn callback)
{
	/* Nothing but a bufferevent has several callbacks to finalize. */
	note((const void *)callback, "bufferevent finalizer");
}
