/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler works for 9 ms and then gives its peer 10 ms to answer.  The loop looked at the clock
 * before the handler began: only 1 ms is left.  The innocent twin has the loop look again first.
 *
 *	scenario_stale_clock [innocent]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define REQUESTS 12

static const struct timeval patience = { .tv_usec = 10000 };
static struct event_base *base;
static struct event *timeout;
static int innocent;
static unsigned requests, timeouts;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void begin_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	compute(9000);
	if (innocent)
		event_base_update_cache_time(base);
	event_add(timeout, &patience);
	if (++requests == REQUESTS)
		event_base_loopexit(base, &patience);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	timeouts++;
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 80000 };
	struct event *timer;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	base = event_base_new();
	d9_event_base_attach(base);
	timer = event_new(base, -1, EV_PERSIST, begin_request, NULL);
	timeout = event_new(base, -1, 0, on_timeout, NULL);
	event_add(timer, &period);
	event_base_dispatch(base);

	event_free(timer);
	event_free(timeout);
	event_base_free(base);
	printf("%u requests, %u timeouts\n", requests, timeouts);
	return 0;
}
