/* SPDX-License-Identifier: Apache-2.0 */
/* The libevent half of libev_beside.c. */

#include "config.h"

#include <event2/event.h>

#include "counters.h"

void run_libevent_half(void);

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_event, KIND_POLL);
}

void run_libevent_half(void)
{
	static struct event_base *base;
	static struct event *event;
	const struct timeval soon = { .tv_usec = 1000 };

	if (!base) {
		base = event_base_new();
		event = event_new(base, -1, 0, on_event, NULL);
	}
	for (int i = 0; i < 3; i++) {
		event_add(event, &soon);
		event_base_dispatch(base);
	}
}
