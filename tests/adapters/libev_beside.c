/* SPDX-License-Identifier: Apache-2.0 */
/* The libev half of a program that runs a loop of libevent's, too; their headers do not go together. */

#include "config.h"

#include <string.h>

#include <ev.h>

#include "counters.h"

/* libev_beside_libevent.c */
void run_libevent_half(void);

static int ticks;

static void on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	COUNT(on_tick, KIND_POLL);
	if (++ticks % 3 == 0)
		ev_break(loop, EVBREAK_ALL);
}

/* A loop of the other library inside a callback of this one. */
static void on_nesting(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)loop, (void)w, (void)events;
	COUNT(on_nesting, KIND_POLL);
	run_libevent_half();
}

int main(int argc, char **argv)
{
	const char *out = argc > 1 && !strncmp(argv[1], "--out=", 6) ? argv[1] + 6 : NULL;
	struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
	ev_timer tick;
	ev_prepare nesting;

	ev_timer_init(&tick, on_tick, 0.001, 0.001);
	ev_init(&nesting, on_nesting);
	ev_timer_start(loop, &tick);
	for (int i = 0; i < 5; i++) {
		ev_run(loop, 0);
		run_libevent_half();
		ev_feed_event(loop, &nesting, EV_CUSTOM);
		ev_run(loop, EVRUN_NOWAIT);
	}
	ev_loop_destroy(loop);
	return counters_write(out);
}
