/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two plugins of libevent_host.c from one source: one that uses the host's libevent, and, with
 * FOREIGN, one that has event_* functions of its own which have nothing to do with libevent.
 */

#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "counters.h"

#define D9_VISIBLE __attribute__((visibility("default")))

#ifdef FOREIGN
/* libevent's names with other types, called through the PLT like any visible function. */
D9_VISIBLE long foreign_event(long a, long b);
long event_assign_other(long a) __asm__("event_assign") D9_VISIBLE;
long event_free_other(long a) __asm__("event_free") D9_VISIBLE;
long event_base_loop_other(long a, long b) __asm__("event_base_loop") D9_VISIBLE;
long event_base_new_other(void) __asm__("event_base_new") D9_VISIBLE;

long event_assign_other(long a)
{
	return a + 1;
}

long event_free_other(long a)
{
	return a + 2;
}

long event_base_loop_other(long a, long b)
{
	return a * b;
}

long event_base_new_other(void)
{
	return 11;
}

long foreign_event(long a, long b)
{
	return event_base_loop_other(event_assign_other(a), event_free_other(b)) +
	       event_base_new_other();
}
#else
typedef void counted_fn(void);

/* Loaded: the loader holds its lock, and this takes that of the base. */
static __attribute__((constructor)) void activate_on_load(void)
{
	const char *event = getenv("D9_PLUGIN_EVENT");

	if (event)
		event_active((struct event *)(uintptr_t)strtoull(event, NULL, 16), EV_READ, 1);
}

D9_VISIBLE void plugin_run(struct event_base *base, counted_fn *count);

static void on_plugin(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(*(counted_fn **)arg)();
}

void plugin_run(struct event_base *base, counted_fn *count)
{
	struct event *event = event_new(base, -1, 0, on_plugin, &count);
	struct event embedded;

	for (int i = 0; i < 3; i++) {
		event_active(event, EV_READ, 1);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	event_free(event);
	event_assign(&embedded, base, -1, 0, on_plugin, &count);
	event_active(&embedded, EV_READ, 1);
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_debug_unassign(&embedded);
}
#endif
