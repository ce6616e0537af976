/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are cancelled, in the three ways that loops in C know: a timer is freed before it
 * fires, one is removed between two calls, a connection is closed while its peer could still write.
 * completing_task.c has those that end by themselves.
 *
 *	DIAL9_TRACE_DIR=traces cancelled_task [REQUESTS]
 *	dial9 report traces
 *
 * give_up() and on_hang_up() are not among the report's callbacks: they were never called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>

#include <dial9/libevent.h>

static struct event_base *base;
static struct event *heartbeat;
static unsigned answers, cancelled, beats, closed, open_requests;

struct request {
	struct event *timeout; /* gives up unless the answer comes before */
	struct bufferevent *peer;
	int peers_end;
};

/* With the last one the timer is removed; nothing is left in the loop, which ends. */
static void end_request(struct request *request)
{
	close(request->peers_end);
	free(request);
	if (--open_requests == 0)
		event_del(heartbeat);
}

static void give_up(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	fputs("no answer within ten seconds\n", stderr);
	exit(1);
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	beats++;
}

/* The timeout is freed before it fires, the connection closed before the peer hangs up. */
static void on_answer(struct bufferevent *peer, void *arg)
{
	struct request *request = arg;

	answers++;
	event_free(request->timeout);
	cancelled++;
	bufferevent_free(peer);
	closed++;
	end_request(request);
}

static void on_hang_up(struct bufferevent *peer, short what, void *arg)
{
	(void)peer, (void)what, (void)arg;
	fputs("the peer hung up without an answer\n", stderr);
	exit(1);
}

/* The peer's end of the connection is here as well, and has answered already. */
static void start_request(void)
{
	const struct timeval ten_s = { 10, 0 };
	struct request *request = calloc(1, sizeof(*request));
	int ends[2];

	if (!request || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) ||
	    write(ends[1], "answer", 6) != 6) {
		perror("request");
		exit(1);
	}
	request->peers_end = ends[1];
	request->timeout = evtimer_new(base, give_up, request);
	event_add(request->timeout, &ten_s);
	request->peer = bufferevent_socket_new(base, ends[0], BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(request->peer, on_answer, NULL, on_hang_up, request);
	bufferevent_enable(request->peer, EV_READ);
	open_requests++;
}

static void start_requests(evutil_socket_t fd, short what, void *arg)
{
	unsigned *left = arg;

	(void)fd, (void)what;
	for (; *left; --*left)
		start_request();
}

int main(int argc, char **argv)
{
	const struct timeval every = { 0, 1000 }, soon = { 0, 20000 };
	unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 50;

	base = event_base_new();
	d9_event_base_attach(base);
	heartbeat = event_new(base, -1, EV_PERSIST, on_beat, NULL);
	event_add(heartbeat, &every);
	event_base_once(base, -1, EV_TIMEOUT, start_requests, &requests, &soon);
	event_base_dispatch(base);

	event_free(heartbeat);
	event_base_free(base);
	printf("%u answers, %u timeouts cancelled, %u connections closed, %u beats\n", answers,
	       cancelled, closed, beats);
	return 0;
}
