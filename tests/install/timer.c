/* SPDX-License-Identifier: Apache-2.0 */
/* A program as a user has it: a timer of libevent that runs ten times and attaches itself when
 * built with -DATTACH. */
#include <stdio.h>

#include <event2/event.h>
#ifdef ATTACH
#include <dial9/libevent.h>
#endif

static int left = 10;

void on_tick(evutil_socket_t fd, short what, void *base);

void on_tick(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(void)
{
	const struct timeval two_ms = { 0, 2000 };
	struct event_base *base = event_base_new();
	struct event *tick = event_new(base, -1, EV_PERSIST, on_tick, base);

#ifdef ATTACH
	if (d9_event_base_attach(base))
		return 1;
#endif
	event_add(tick, &two_ms);
	event_base_dispatch(base);
	event_free(tick);
	event_base_free(base);
	puts("ten ticks");
	return 0;
}
