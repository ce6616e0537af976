/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request sets a timer of its own.  One in four requests ends well and frees it; the others
 * forget to.  The innocent twin always frees it.  With "unused" the timers would run in an hour, so
 * that none does, and the next request is what should free them.
 *
 *	scenario_leak [unused] [innocent]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <dial9/libevent.h>

struct request {
	struct event *timeout;
	unsigned number;
};

static int innocent, unused;
static struct request *latest[10];
static unsigned requests, freed;

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct request *request = arg;

	(void)fd, (void)what;
	if (request->number % 4 && !innocent)
		return;
	event_free(request->timeout);
	free(request);
	freed++;
}

/* The request before in |place| has ended. */
static void end_before(struct request **place, struct request *request)
{
	if (*place && innocent) {
		event_free((*place)->timeout);
		free(*place);
		freed++;
	}
	*place = request;
}

static void begin_requests(evutil_socket_t fd, short what, void *base)
{
	const struct timeval timeout = { .tv_sec = unused ? 3600 : 0, .tv_usec = 20000 };

	(void)fd, (void)what;
	for (int i = 0; i < 10; i++) {
		struct request *request = malloc(sizeof(*request));

		if (!request)
			return;
		request->number = requests++;
		request->timeout = event_new(base, -1, 0, on_timeout, request);
		event_add(request->timeout, &timeout);
		if (unused)
			end_before(&latest[i], request);
	}
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 10000 }, lifetime = { .tv_sec = 3 };
	struct event_base *base = event_base_new();
	struct event *timer;

	unused = argc > 1 && !strcmp(argv[1], "unused");
	innocent = argc > 1 && !strcmp(argv[argc - 1], "innocent");
	d9_event_base_attach(base);
	timer = event_new(base, -1, EV_PERSIST, begin_requests, base);
	event_add(timer, &period);
	event_base_loopexit(base, &lifetime);
	event_base_dispatch(base);

	event_free(timer);
	event_base_free(base);
	printf("%u requests, %u freed\n", requests, freed);
	return 0;
}
