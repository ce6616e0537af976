/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call draws into a large picture that it allocates and frees: the kernel gives its pages anew each time.
 * The innocent twin keeps the picture.
 *
 *	scenario_page_faults [innocent]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define PICTURE (48 << 20)
#define CALLS	20

static char *kept;
static int innocent;
static unsigned drawn;
static struct event_base *base;

/* A line of it in each page. */
static void draw(char *picture)
{
	for (size_t i = 0; i < PICTURE; i += 4096)
		memset(picture + i, (int)drawn, 64);
}

static void render(evutil_socket_t fd, short what, void *arg)
{
	char *picture = kept ? kept : malloc(PICTURE);

	(void)fd, (void)what, (void)arg;
	if (picture)
		draw(picture);
	if (picture != kept)
		free(picture);
	if (++drawn == CALLS)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 50000 };
	struct event *timer;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	base = event_base_new();
	d9_event_base_attach(base);
	if (innocent && (kept = malloc(PICTURE)))
		draw(kept);
	timer = event_new(base, -1, EV_PERSIST, render, NULL);
	event_add(timer, &period);
	event_base_dispatch(base);

	event_free(timer);
	event_base_free(base);
	free(kept);
	printf("%u drawn\n", drawn);
	return 0;
}
