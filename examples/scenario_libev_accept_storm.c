/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More clients than descriptors: accept() fails with EMFILE, the connections stay, and the watcher of the
 * listening socket is called again at once.  The innocent twin stops that watcher until a descriptor is free.
 *
 *	scenario_libev_accept_storm [innocent]
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ev.h>

#include <dial9/libev.h>

#define CLIENTS	    30
#define LIMIT	    300 /* descriptors of this program ... */
#define DESCRIPTORS 10	/* ... and those that are left for clients */

static ev_io connections[CLIENTS];
static unsigned taken, received, errors;
static int innocent;

static void on_data(struct ev_loop *loop, ev_io *w, int events)
{
	char byte;

	(void)loop, (void)events;
	if (read(w->fd, &byte, 1) == 1)
		received++;
}

static void on_ready(struct ev_loop *loop, ev_io *w, int events)
{
	int fd = accept(w->fd, NULL, NULL);

	(void)events;
	if (fd >= 0) {
		ev_io_init(&connections[taken], on_data, fd, EV_READ);
		ev_io_start(loop, &connections[taken++]);
		return;
	}
	errors++;
	if (innocent)
		ev_io_stop(loop, w);
}

static void stop(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	ev_break(loop, EVBREAK_ALL);
}

/* Connections that nobody has taken yet. */
static int listen_for_clients(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "dial9-libev-%d", (int)getpid());
	socklen_t size = (socklen_t)(sizeof(address.sun_family) + 1 + (size_t)n);

	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, CLIENTS))
		return -1;
	for (int i = 0; i < CLIENTS; i++) {
		int client = socket(AF_UNIX, SOCK_STREAM, 0);

		if (connect(client, (struct sockaddr *)&address, size) || write(client, "x", 1) != 1)
			return -1;
	}
	return listener;
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
	struct ev_loop *loop = ev_default_loop(0);
	ev_io listener;
	ev_timer end;
	int fd;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_ev_loop_attach(loop);
	fd = listen_for_clients();
	if (fd < 0) {
		perror("cannot listen");
		return 1;
	}
	use_up_descriptors();
	ev_io_init(&listener, on_ready, fd, EV_READ);
	ev_io_start(loop, &listener);
	ev_timer_init(&end, stop, 1., 0.);
	ev_timer_start(loop, &end);
	ev_run(loop, 0);

	printf("%u accepted, %u received, %u errors\n", taken, received, errors);
	return 0;
}
