/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that end by themselves: a timer that runs once, one that counts down and frees itself in
 * its last call, a connection that is read to its end.  cancelled_task.c has those that others end.
 *
 *	DIAL9_TRACE_DIR=traces completing_task [TASKS]		of each kind
 *	dial9 report traces
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <dial9/libevent.h>

#define STEPS 5

static struct event_base *base;
static unsigned shots, steps, reads, ends;

/* The loop library frees it behind this call. */
static void on_shot(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	shots++;
}

struct countdown {
	struct event *timer;
	unsigned left;
};

static void on_step(evutil_socket_t fd, short what, void *arg)
{
	struct countdown *countdown = arg;

	(void)fd, (void)what;
	steps++;
	if (--countdown->left)
		return;
	event_free(countdown->timer); /* in its own callback: allowed */
	free(countdown);
}

static void on_data(struct bufferevent *download, void *arg)
{
	struct evbuffer *input = bufferevent_get_input(download);

	(void)arg;
	reads++;
	evbuffer_drain(input, evbuffer_get_length(input));
}

static void on_end(struct bufferevent *download, short what, void *arg)
{
	(void)arg;
	ends += (what & BEV_EVENT_EOF) != 0;
	bufferevent_free(download);
}

static void start_countdown(void)
{
	const struct timeval every = { 0, 1000 };
	struct countdown *countdown = malloc(sizeof(*countdown));

	if (!countdown)
		return;
	countdown->left = STEPS;
	countdown->timer = event_new(base, -1, EV_PERSIST, on_step, countdown);
	event_add(countdown->timer, &every);
}

/* From a peer that has sent everything and hung up. */
static void start_download(void)
{
	struct bufferevent *download;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) ||
	    write(pair[1], "everything", 10) != 10) {
		perror("download");
		exit(1);
	}
	close(pair[1]);
	download = bufferevent_socket_new(base, pair[0], BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(download, on_data, NULL, on_end, NULL);
	bufferevent_enable(download, EV_READ);
}

int main(int argc, char **argv)
{
	const struct timeval soon = { 0, 1000 };
	int tasks = argc > 1 ? atoi(argv[1]) : 50;

	base = event_base_new();
	d9_event_base_attach(base);
	for (int i = 0; i < tasks; i++) {
		event_base_once(base, -1, EV_TIMEOUT, on_shot, NULL, &soon);
		start_countdown();
		start_download();
	}
	event_base_dispatch(base); /* returns when the last task has ended */
	event_base_free(base);
	printf("%u shots, %u steps of countdowns, %u reads, %u ends\n", shots, steps, reads, ends);
	return 0;
}
