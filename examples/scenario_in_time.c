/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service whose three kinds of requests take half a millisecond each, and at certain times much longer:
 *
 *	periodic  whoever comes first when its time has come tidies up for all, for 30 ms every 0.4 s
 *	first     the first request loads what all others need
 *	growing   each request is looked for in a list of all before it
 *
 * The innocent twin tidies up in pieces, loads before it takes requests, forgets old ones.
 *
 *	scenario_in_time periodic|first|growing [innocent]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define REQUEST_US 500
#define ROUNDS     200

enum kind { PERIODIC, FIRST, GROWING };

static enum kind kind;
static int innocent, loaded, tidy_left_us;
static unsigned handled, remembered;
static struct event_base *base;
static struct timespec tidied;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void tidy_up(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec * 1000 + now.tv_nsec / 1000000 >= tidied.tv_sec * 1000 + tidied.tv_nsec / 1000000 + 400) {
		tidied = now;
		tidy_left_us = 30000;
	}
	if (tidy_left_us > 0) {
		compute(innocent ? 500 : 30000);
		tidy_left_us -= innocent ? 500 : 30000;
	}
}

static void load(void)
{
	if (!loaded)
		compute(40000);
	loaded = 1;
}

static void look_for(unsigned what)
{
	compute(100L * what);
	if (!innocent)
		remembered++;
}

static void handle_request(void)
{
	compute(REQUEST_US);
	if (kind == PERIODIC)
		tidy_up();
	else if (kind == FIRST)
		load();
	else
		look_for(remembered);
	if (++handled == ROUNDS)
		event_base_loopbreak(base);
}

static void on_read(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	handle_request();
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	handle_request();
}

static void on_search(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	handle_request();
}

int main(int argc, char **argv)
{
	static void (*const callbacks[])(evutil_socket_t, short, void *) = { on_read, on_write, on_search };
	const struct timeval periods[] = { { .tv_usec = 30000 }, { .tv_usec = 37000 }, { .tv_usec = 41000 } };
	unsigned n = 3;
	struct event *events[3] = { NULL };

	if (argc < 2)
		return 2;
	kind = !strcmp(argv[1], "periodic") ? PERIODIC : !strcmp(argv[1], "first") ? FIRST : GROWING;
	innocent = argc > 2 && !strcmp(argv[2], "innocent");
	base = event_base_new();
	d9_event_base_attach(base);
	if (kind != PERIODIC)
		n = 1;
	if (kind == FIRST && innocent)
		load();
	clock_gettime(CLOCK_MONOTONIC, &tidied);
	for (unsigned i = 0; i < n; i++) {
		events[i] = event_new(base, -1, EV_PERSIST, callbacks[i], NULL);
		event_add(events[i], &periods[i]);
	}
	event_base_dispatch(base);

	for (unsigned i = 0; i < n; i++)
		event_free(events[i]);
	event_base_free(base);
	printf("%u requests\n", handled);
	return 0;
}
