/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request adds 16 KiB to a history that nobody reads ("memory"), or opens a file that nobody closes
 * ("descriptors"), until the process is killed for it.  The innocent twin keeps the newest hundred.
 *
 *	scenario_growth memory|descriptors [innocent]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define KEPT  100
#define BYTES 16384

static int innocent, memory;
static char *history[4000];
static int files[4000];
static unsigned requests;

static void remember(void)
{
	history[requests % 4000] = malloc(BYTES);
	if (history[requests % 4000])
		memset(history[requests % 4000], 1, BYTES);
	if (innocent && requests >= KEPT)
		free(history[(requests - KEPT) % 4000]);
}

static void open_file(void)
{
	files[requests % 4000] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (innocent && requests >= KEPT)
		close(files[(requests - KEPT) % 4000]);
}

static void handle_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (memory)
		remember();
	else if (requests % 10 == 0 || innocent)
		open_file();
	requests++;
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 8000 }, end = { .tv_sec = 6, .tv_usec = 500000 };
	struct event_base *base = event_base_new();
	struct event *timer;

	memory = argc > 1 && !strcmp(argv[1], "memory");
	innocent = argc > 2 && !strcmp(argv[2], "innocent");
	d9_event_base_attach(base);
	timer = event_new(base, -1, EV_PERSIST, handle_request, NULL);
	event_add(timer, &period);
	event_base_loopexit(base, &end);
	event_base_dispatch(base);

	event_free(timer);
	event_base_free(base);
	printf("%u requests\n", requests);
	return 0;
}
