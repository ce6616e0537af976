/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback that finds its connection gone sets its timer again, for a millisecond, and so for ever:
 * strace shows epoll_wait(..., 1) = 0 without end.  The innocent twin looks ten times a second.
 *
 *	scenario_libev_timer_storm [innocent]
 */
#include <stdio.h>
#include <string.h>

#include <ev.h>

#include <dial9/libev.h>

static unsigned looks;

static void look_for_connection(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)events;
	looks++;
	ev_timer_again(loop, w);
}

static void stop(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer look, end;

	d9_ev_loop_attach(loop);
	ev_timer_init(&look, look_for_connection, 0., innocent ? 0.1 : 0.001);
	ev_timer_again(loop, &look);
	ev_timer_init(&end, stop, 1., 0.);
	ev_timer_start(loop, &end);
	ev_run(loop, 0);

	ev_loop_destroy(loop);
	printf("looked %u times\n", looks);
	return 0;
}
