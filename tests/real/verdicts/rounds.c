/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watcher of libev's that computes in each round, whatever the loop woke for.  The innocent one
 * looks at a flag there, and a timer does the work.  Until it has used a second and a half of CPU
 *time, however busy the machine is.
 *
 *	rounds prepare|check [innocent]
 */
#include <ev.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "burn.h"

#define USED_MS 1500

static bool innocent;

static __attribute__((noinline)) void flush_dirty(void)
{
	BURN(3);
	STAY;
}

static void look(struct ev_loop *loop)
{
	struct timespec used;

	if (!innocent)
		flush_dirty();
	if (BURN_NOW_MS(used) > (innocent ? USED_MS / 10 : USED_MS))
		ev_break(loop, EVBREAK_ALL);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)w, (void)events;
	look(loop);
}

static void on_check(struct ev_loop *loop, ev_check *w, int events)
{
	(void)w, (void)events;
	look(loop);
}

static void on_request(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)w, (void)events;
	BURN(0.02);
}

static void on_flush(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)w, (void)events;
	if (innocent)
		flush_dirty();
}

int main(int argc, char **argv)
{
	struct ev_loop *loop = ev_loop_new(0);
	ev_prepare prepare;
	ev_check check;
	ev_timer request, flush;

	innocent = argc > 2;
	ev_prepare_init(&prepare, on_prepare);
	ev_check_init(&check, on_check);
	if (argc > 1 && !strcmp(argv[1], "check"))
		ev_check_start(loop, &check);
	else
		ev_prepare_start(loop, &prepare);
	ev_timer_init(&request, on_request, 0.004, 0.004);
	ev_timer_start(loop, &request);
	ev_timer_init(&flush, on_flush, 0.1, 0.1);
	ev_timer_start(loop, &flush);
	ev_run(loop, 0);
	return 0;
}
