/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two loops on one thread: an outer one, and one that a callback runs to completion while the outer
 * callback waits for it.  The trace has one worker (the thread); the outer callback is split where
 * the inner loop ran, and its time is counted without it.
 *
 *	several_bases [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include <dial9/libevent.h>

static struct event_base *outer, *inner;
static long rounds = 10;
static unsigned long inner_calls;

static void inner_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	inner_calls++;
}

/* Asks the inner loop three things and waits for the answers, as a synchronous client would. */
static void ask_synchronously(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	for (int i = 0; i < 3; i++) {
		const struct timeval soon = { .tv_usec = 1000 };

		event_base_once(inner, -1, EV_TIMEOUT, inner_timer, NULL, &soon);
	}
	event_base_dispatch(inner);
	if (--rounds == 0)
		event_del(arg);
}

int main(int argc, char **argv)
{
	const struct timeval interval = { .tv_usec = 5000 };
	struct event *timer;

	if (argc > 1)
		rounds = atol(argv[1]);
	outer = event_base_new();
	inner = event_base_new();
	d9_event_base_attach_named(outer, "outer");
	d9_event_base_attach_named(inner, "inner");

	timer = event_new(outer, -1, EV_PERSIST, ask_synchronously, event_self_cbarg());
	event_add(timer, &interval);
	event_base_dispatch(outer);

	event_free(timer);
	event_base_free(inner);
	event_base_free(outer);
	printf("%lu inner callbacks\n", inner_calls);
	return 0;
}
