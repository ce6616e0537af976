/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what libevent complains of: without a log callback, with one, with another, without again.
 * A line "! LEVEL -: TEXT" on stdout says what the callbacks got; the rest is on stderr.
 */

#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

static struct event_base *base;

static void print(const char *who, int severity, const char *text)
{
	static const char *const levels[] = { "debug", "message", "warning", "error" };

	printf("%s\n! %s -: %s\n", who, levels[severity], text);
}

static void on_line(int severity, const char *text)
{
	print("first", severity, text);
}

static void on_other_line(int severity, const char *text)
{
	print("second", severity, text);
}

/* A loop in itself, and a descriptor that epoll refuses. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct event *event;
	int fds[2];

	(void)fd, (void)what, (void)arg;
	event_base_loop(base, EVLOOP_NONBLOCK);
	if (pipe(fds))
		return;
	event = event_new(base, fds[0], EV_READ, on_timer, NULL);
	close(fds[0]);
	close(fds[1]);
	event_add(event, NULL);
	event_free(event);
}

static void complain(void)
{
	static const struct timeval now = { 0, 0 };

	event_base_once(base, -1, EV_TIMEOUT, on_timer, NULL, &now);
	event_base_dispatch(base);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	base = event_base_new();
	if (!base)
		return 99;
	complain();
	event_set_log_callback(on_line);
	complain();
	event_set_log_callback(on_other_line);
	complain();
	event_set_log_callback(NULL);
	complain();
	event_base_free(base);
	return 0;
}
