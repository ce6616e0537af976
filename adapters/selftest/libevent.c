/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for `dial9 doctor` to record: one that only knows libevent and counts its own
 * callbacks.  Prints "CALLBACKS VERSION METHOD".
 */
#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 100

struct ping {
	struct event *timer, *reader;
	int fds[2];
	unsigned callbacks, rounds;
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct ping *ping = arg;

	(void)fd;
	(void)what;
	ping->callbacks++;
	if (write(ping->fds[1], "x", 1) != 1)
		event_del(ping->reader);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval soon = { 0, 50 };
	struct ping *ping = arg;
	char byte;

	(void)what;
	ping->callbacks++;
	if (read(fd, &byte, 1) == 1 && ++ping->rounds < ROUNDS)
		event_add(ping->timer, &soon);
	else
		event_del(ping->reader);
}

int main(void)
{
	static const struct timeval soon = { 0, 50 };
	struct event_base *base = event_base_new();
	struct ping ping = { 0 };

	alarm(20); /* whatever happens, `dial9 doctor` does not wait for ever */
	if (!base || pipe(ping.fds))
		return 1;
	ping.timer = evtimer_new(base, on_timer, &ping);
	ping.reader = event_new(base, ping.fds[0], EV_READ | EV_PERSIST, on_readable, &ping);
	if (!ping.timer || !ping.reader || event_add(ping.reader, NULL) ||
	    event_add(ping.timer, &soon) || event_base_dispatch(base) < 0)
		return 1;
	printf("%u %s %s\n", ping.callbacks, event_get_version(), event_base_get_method(base));
	event_free(ping.timer);
	event_free(ping.reader);
	event_base_free(base);
	return ping.rounds == ROUNDS ? 0 : 1;
}
