/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More clients than descriptors: accept() fails with EMFILE, the connections stay, and the listener
 * is ready again at once.  The innocent twin lets the listener rest after an error.
 *
 *	scenario_accept_storm [innocent]
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/listener.h>

#include <dial9/libevent.h>

#define CLIENTS	    30
#define LIMIT	    300 /* descriptors of this program ... */
#define DESCRIPTORS 10	/* ... and those that are left for clients */

static struct event *pause_timer;
static int innocent;
static unsigned accepted, errors;

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd,
		      struct sockaddr *address, int len, void *arg)
{
	(void)listener, (void)fd, (void)address, (void)len, (void)arg;
	accepted++;
}

static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	const struct timeval pause = { .tv_usec = 100000 };

	(void)arg;
	errors++;
	if (!innocent)
		return;
	evconnlistener_disable(listener);
	event_add(pause_timer, &pause);
}

static void end_pause(evutil_socket_t fd, short what, void *listener)
{
	(void)fd, (void)what;
	evconnlistener_enable(listener);
}

/* Connections that nobody has taken yet. */
static void connect_clients(int listening)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	getsockname(listening, (struct sockaddr *)&address, &len);
	for (int i = 0; i < CLIENTS; i++) {
		int fd = socket(address.ss_family, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, len) < 0)
			perror("client");
	}
}

/* All others are in use already. */
static void use_up_descriptors(void)
{
	struct rlimit limit;
	int fd;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = LIMIT;
	setrlimit(RLIMIT_NOFILE, &limit);
	do
		fd = dup(0);
	while (fd >= 0 && fd < LIMIT - DESCRIPTORS - 1);
}

int main(int argc, char **argv)
{
	/* Abstract, with a name that the kernel chooses. */
	struct sockaddr address = { .sa_family = AF_UNIX };
	const struct timeval second = { .tv_sec = 1 };
	struct event_base *base = event_base_new();
	struct evconnlistener *listener;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_event_base_attach(base);
	listener = evconnlistener_new_bind(base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, 128,
					   &address, sizeof(address.sa_family));
	if (!listener) {
		perror("listen");
		return 1;
	}
	evconnlistener_set_error_cb(listener, on_accept_error);
	pause_timer = event_new(base, -1, 0, end_pause, listener);
	connect_clients(evconnlistener_get_fd(listener));
	use_up_descriptors();
	event_base_loopexit(base, &second);
	event_base_dispatch(base);

	event_free(pause_timer);
	evconnlistener_free(listener);
	event_base_free(base);
	printf("%u accepted, %u errors\n", accepted, errors);
	return 0;
}
