/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways to keep a loop busy with nothing.  The innocent twins move data as fast as they can, or
 * stop when there is nothing to do.
 *
 *	scenario_spin read [innocent]     the descriptor is readable, and nobody reads
 *	scenario_spin write [innocent]    EV_WRITE stays although there is nothing to write
 *	scenario_spin hangup [innocent]   the peer is gone, and the event stays
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

static struct event_base *base;
static struct event *event;
static int innocent, ends[2], to_send = 20;
static unsigned long bytes;
static char buffer[65536];

/* Sees that there is something, and leaves it for later. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void read_all(evutil_socket_t fd, short what, void *arg)
{
	ssize_t n = read(fd, buffer, sizeof(buffer));

	(void)what, (void)arg;
	for (ssize_t i = 0; i < n; i++)
		bytes += buffer[i] == 'x';
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)what, (void)arg;
	if (to_send > 0 && write(fd, "x", 1) == 1) {
		to_send--;
		bytes++;
	}
	if (to_send == 0 && innocent)
		event_del(event);
}

static void on_data(evutil_socket_t fd, short what, void *arg)
{
	ssize_t n = read(fd, buffer, sizeof(buffer));

	(void)what, (void)arg;
	if (n > 0)
		bytes += (unsigned long)n;
	else if (n == 0 && innocent)
		event_del(event);
}

/* Writes until the other end is closed. */
static void *flood(void *arg)
{
	memset(arg, 'x', sizeof(buffer));
	while (send(ends[1], arg, sizeof(buffer), MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void begin(const char *how)
{
	static char data[sizeof(buffer)];
	pthread_t thread;

	if (!strcmp(how, "write")) {
		event = event_new(base, ends[0], EV_WRITE | EV_PERSIST, on_writable, NULL);
	} else if (!strcmp(how, "hangup")) {
		event = event_new(base, ends[0], EV_READ | EV_PERSIST, on_data, NULL);
		if (write(ends[1], "hello", 5) == 5)
			close(ends[1]);
	} else {
		event = event_new(base, ends[0], EV_READ | EV_PERSIST,
				  innocent ? read_all : on_readable, NULL);
		pthread_create(&thread, NULL, flood, data);
		pthread_detach(thread);
	}
	event_add(event, NULL);
}

int main(int argc, char **argv)
{
	const struct timeval second = { .tv_sec = 1 };

	innocent = argc > 2 && !strcmp(argv[2], "innocent");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) {
		perror("socketpair");
		return 1;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	base = event_base_new();
	d9_event_base_attach(base);
	begin(argc > 1 ? argv[1] : "read");
	event_base_loopexit(base, &second);
	event_base_dispatch(base);

	event_free(event);
	event_base_free(base);
	printf("%lu bytes\n", bytes);
	return 0;
}
