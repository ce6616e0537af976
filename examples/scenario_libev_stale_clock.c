/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler works for 9 ms and then gives its peer 10 ms to answer.  libev looked at the clock before
 * the handler began: only 1 ms is left.  The innocent twin has libev look again first.
 *
 *	scenario_libev_stale_clock [innocent]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <ev.h>

#include <dial9/libev.h>

#define REQUESTS 12

static ev_timer patience;
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

static void begin_request(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	compute(9000);
	if (innocent)
		ev_now_update(loop);
	ev_timer_stop(loop, &patience);
	ev_timer_set(&patience, 0.01, 0.);
	ev_timer_start(loop, &patience);
	if (++requests == REQUESTS)
		ev_break(loop, EVBREAK_ALL);
}

static void on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)w, (void)events;
	timeouts++;
}

int main(int argc, char **argv)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer next;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_ev_loop_attach(loop);
	ev_timer_init(&next, begin_request, 0.08, 0.08);
	ev_timer_start(loop, &next);
	ev_init(&patience, on_timeout);
	ev_run(loop, 0);

	ev_loop_destroy(loop);
	printf("%u requests, %u timeouts\n", requests, timeouts);
	return 0;
}
