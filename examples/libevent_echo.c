/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server on one loop, recorded: the only line about dial9 is the attach.
 *
 *	libevent_echo PORT [CONNECTIONS]
 *
 * Ends after CONNECTIONS clients have come and gone, or by SIGINT.  Look at the result with
 * `dial9 report $DIAL9_TRACE_DIR`.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/listener.h>

#include <dial9/libevent.h>

static struct event_base *base;
static long connections_left = -1;

struct client {
	struct event *readable;
};

static void hang_up(struct client *client, evutil_socket_t fd)
{
	event_free(client->readable);
	free(client);
	evutil_closesocket(fd);
	if (connections_left > 0 && --connections_left == 0)
		event_base_loopbreak(base);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	char bytes[4096];
	ssize_t len = read(fd, bytes, sizeof(bytes));

	(void)what;
	if (len <= 0 || write(fd, bytes, (size_t)len) != len)
		hang_up(arg, fd);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
			  struct sockaddr *address, int len, void *arg)
{
	struct client *client = malloc(sizeof(*client));

	(void)listener, (void)address, (void)len, (void)arg;
	if (!client) {
		evutil_closesocket(fd);
		return;
	}
	client->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, client);
	event_add(client->readable, NULL);
}

static void on_interrupt(evutil_socket_t sig, short what, void *arg)
{
	(void)sig, (void)what, (void)arg;
	event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct evconnlistener *listener;
	struct event *interrupt;
	int err;

	if (argc < 2) {
		fprintf(stderr, "usage: %s PORT [CONNECTIONS]\n", argv[0]);
		return 2;
	}
	if (argc > 2)
		connections_left = atol(argv[2]);

	base = event_base_new();
	err = d9_event_base_attach(base);
	if (err)
		fprintf(stderr, "not recorded: %s\n", d9_strerror(err));

	address.sin_port = htons((uint16_t)atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = evconnlistener_new_bind(base, on_connection, NULL,
					   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1,
					   (struct sockaddr *)&address, sizeof(address));
	if (!listener) {
		perror("listen");
		return 1;
	}
	interrupt = evsignal_new(base, SIGINT, on_interrupt, NULL);
	event_add(interrupt, NULL);

	event_base_dispatch(base);

	event_free(interrupt);
	evconnlistener_free(listener);
	event_base_free(base);
	return 0;
}
