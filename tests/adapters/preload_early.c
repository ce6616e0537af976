/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that makes a libevent base in its constructor, and one that it frees again; the loader has it
 * run 50 callbacks.
 */
#include <event2/event.h>
#include <stdio.h>

static struct event_base *base;

static __attribute__((constructor)) void make_early(void)
{
	event_base_free(event_base_new());
	base = event_base_new();
}

static void count_early(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	++*(int *)arg;
}

int every_kind_main(int argc, char **argv);

__attribute__((visibility("default"))) int every_kind_main(int argc, char **argv)
{
	static const struct timeval at_once = { 0, 0 };
	int ran = 0;

	(void)argc;
	(void)argv;
	for (int i = 0; i < 50; i++) {
		event_base_once(base, -1, EV_TIMEOUT, count_early, &ran, &at_once);
		event_base_dispatch(base);
	}
	printf("count_early %d\n", ran);
	return 0;
}
