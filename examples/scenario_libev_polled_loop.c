/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback asks a helper and looks at the loop again and again until the answer is there, without letting it wait: the
 * CPU is busy with that.  The innocent twin returns, and goes on when the answer is there.
 *
 *	scenario_libev_polled_loop [innocent]
 */
#include <stdio.h>
#include <string.h>

#include <ev.h>

#include <dial9/libev.h>

#define ASKED 5

static int innocent;
static unsigned asked, answered, ticks;
static ev_timer answer;

static void on_answer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	/* On a machine under load one request may come before the answer to another. */
	answered = asked;
	if (answered == ASKED)
		ev_break(loop, EVBREAK_ALL);
}

/* The helper answers after 400 ms. */
static void handle_request(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)events;
	if (++asked == ASKED)
		ev_timer_stop(loop, w);
	ev_timer_stop(loop, &answer);
	ev_timer_set(&answer, 0.4, 0.);
	ev_timer_start(loop, &answer);
	while (!innocent && answered < asked)
		ev_run(loop, EVRUN_NOWAIT);
}

static void tick(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)w, (void)events;
	ticks++;
}

int main(int argc, char **argv)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer requests, ticker;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_ev_loop_attach(loop);
	ev_timer_init(&answer, on_answer, 0., 0.);
	ev_timer_init(&requests, handle_request, 0.5, 0.5);
	ev_timer_init(&ticker, tick, 0.02, 0.02);
	ev_timer_start(loop, &requests);
	ev_timer_start(loop, &ticker);
	ev_run(loop, 0);

	ev_loop_destroy(loop);
	printf("%u asked, %u answered, %u ticks\n", asked, answered, ticks);
	return 0;
}
