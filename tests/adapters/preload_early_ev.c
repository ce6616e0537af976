/* SPDX-License-Identifier: Apache-2.0 */
/* As preload_early.c, with loops of libev. */
#include <ev.h>
#include <stdio.h>

static struct ev_loop *loop;
static int fired;

static __attribute__((constructor)) void make_early(void)
{
	ev_loop_destroy(ev_loop_new(0));
	loop = ev_loop_new(0);
}

static void count_early(struct ev_loop *l, ev_timer *timer, int what)
{
	(void)l;
	(void)timer;
	(void)what;
	fired++;
}

int every_kind_main(int argc, char **argv);

__attribute__((visibility("default"))) int every_kind_main(int argc, char **argv)
{
	ev_timer timer;

	(void)argc;
	(void)argv;
	for (int i = 0; i < 50; i++) {
		ev_timer_init(&timer, count_early, 0., 0.);
		ev_timer_start(loop, &timer);
		ev_run(loop, 0);
	}
	printf("count_early %d\n", fired);
	return 0;
}
