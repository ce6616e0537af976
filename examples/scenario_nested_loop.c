/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback asks a helper and waits for the answer by a base of its own, so that nothing else runs until then;
 * the base is attached too ("attached") or not ("private"), or attached and looked at again and again without being
 * let wait ("polled").  The innocent twin returns, and goes on when the answer is there.
 *
 *	scenario_nested_loop attached|private|polled [innocent]
 */
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define ASKED 5

static struct event_base *base;
static unsigned asked, answered, ticks;
static int innocent, attached, polled;

static void on_answer(evutil_socket_t fd, short what, void *waiting)
{
	(void)fd, (void)what;
	answered++;
	if (waiting)
		event_base_loopbreak(waiting);
	if (answered == ASKED && innocent)
		event_base_loopexit(base, NULL);
}

/* The helper answers after 400 ms. */
static void ask(struct event_base *where, int wait)
{
	const struct timeval later = { .tv_usec = 400000 };

	event_base_once(where, -1, EV_TIMEOUT, on_answer, wait ? where : NULL, &later);
}

static void handle_request(evutil_socket_t fd, short what, void *arg)
{
	struct event_base *inner;

	(void)fd, (void)what, (void)arg;
	asked++;
	if (innocent) {
		ask(base, 0);
		return;
	}
	inner = event_base_new();
	if (attached)
		d9_event_base_attach(inner);
	ask(inner, 1);
	if (!polled)
		event_base_dispatch(inner);
	while (answered < asked)
		event_base_loop(inner, EVLOOP_NONBLOCK);
	event_base_free(inner);
	if (answered == ASKED)
		event_base_loopexit(base, NULL);
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	ticks++;
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 500000 }, often = { .tv_usec = 20000 };
	struct event *requests, *ticker;

	polled = argc > 1 && !strcmp(argv[1], "polled");
	attached = polled || (argc > 1 && !strcmp(argv[1], "attached"));
	innocent = argc > 2 && !strcmp(argv[2], "innocent");
	base = event_base_new();
	d9_event_base_attach(base);
	requests = event_new(base, -1, EV_PERSIST, handle_request, NULL);
	ticker = event_new(base, -1, EV_PERSIST, tick, NULL);
	event_add(requests, &period);
	event_add(ticker, &often);
	event_base_dispatch(base);

	event_free(requests);
	event_free(ticker);
	event_base_free(base);
	printf("%u asked, %u answered, %u ticks\n", asked, answered, ticks);
	return 0;
}
