/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for `dial9 doctor` to record: one that only knows libev and counts its own callbacks.
 * Prints "CALLBACKS VERSION BACKEND".
 */
#include <ev.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 100

static ev_timer timer;
static ev_io reader;
static int fds[2];
static unsigned callbacks, rounds;

static void on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	callbacks++;
	if (write(fds[1], "x", 1) != 1)
		ev_io_stop(loop, &reader);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	char byte;

	(void)events;
	callbacks++;
	if (read(w->fd, &byte, 1) == 1 && ++rounds < ROUNDS) {
		ev_timer_set(&timer, 0.00005, 0.);
		ev_timer_start(loop, &timer);
	} else {
		ev_io_stop(loop, w);
	}
}

static const char *backend_of(struct ev_loop *loop)
{
	switch (ev_backend(loop)) {
	case EVBACKEND_SELECT:
		return "select";
	case EVBACKEND_POLL:
		return "poll";
	case EVBACKEND_EPOLL:
		return "epoll";
	default:
		return "other";
	}
}

int main(void)
{
	struct ev_loop *loop = ev_default_loop(0);

	alarm(20); /* whatever happens, `dial9 doctor` does not wait for ever */
	if (!loop || pipe(fds))
		return 1;
	ev_timer_init(&timer, on_timer, 0.00005, 0.);
	ev_timer_start(loop, &timer);
	ev_io_init(&reader, on_readable, fds[0], EV_READ);
	ev_io_start(loop, &reader);
	ev_run(loop, 0);
	printf("%u %d.%d %s\n", callbacks, ev_version_major(), ev_version_minor(),
	       backend_of(loop));
	return rounds == ROUNDS ? 0 : 1;
}
