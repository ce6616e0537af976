/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service whose requests take half a millisecond, and one function that takes 40 ms each time: all
 * requests wait for it.  The innocent twin does the same work in pieces.
 *
 *	scenario_long_callback [innocent]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define REQUEST_US 500
#define REPORT_US  40000
#define PIECE_US   500

static struct event_base *base;
static struct event *requests, *reports;
static unsigned handled, rebuilt;
static int report_left_us;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void handle_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	compute(REQUEST_US);
	if (++handled == 200)
		event_base_loopbreak(base);
}

static void rebuild_report(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	compute(REPORT_US);
	rebuilt++;
}

static void rebuild_piece(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	compute(PIECE_US);
	report_left_us -= PIECE_US;
	if (report_left_us > 0)
		return;
	report_left_us = REPORT_US;
	rebuilt++;
}

int main(int argc, char **argv)
{
	const struct timeval soon = { .tv_usec = 5000 }, now_and_then = { .tv_usec = 250000 };
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");

	report_left_us = REPORT_US;
	base = event_base_new();
	d9_event_base_attach(base);
	requests = event_new(base, -1, EV_PERSIST, handle_request, NULL);
	reports = event_new(base, -1, EV_PERSIST, innocent ? rebuild_piece : rebuild_report, NULL);
	event_add(requests, &soon);
	event_add(reports, innocent ? &soon : &now_and_then);
	event_base_dispatch(base);

	event_free(requests);
	event_free(reports);
	event_base_free(base);
	printf("%u requests, %u reports\n", handled, rebuilt);
	return 0;
}
