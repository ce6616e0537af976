/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for `dial9 doctor` to record: one that only knows GLib and counts its own callbacks.
 * Prints "CALLBACKS VERSION METHOD".
 */
#include <glib-unix.h>
#include <glib.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 100

struct ping {
	GMainLoop *loop;
	int fds[2];
	unsigned callbacks, rounds;
};

static gboolean on_timer(gpointer arg)
{
	struct ping *ping = arg;

	ping->callbacks++;
	if (write(ping->fds[1], "x", 1) != 1)
		g_main_loop_quit(ping->loop);
	return G_SOURCE_REMOVE;
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer arg)
{
	struct ping *ping = arg;
	char byte;

	(void)condition;
	ping->callbacks++;
	if (read(fd, &byte, 1) == 1 && ++ping->rounds < ROUNDS)
		g_timeout_add(0, on_timer, ping);
	else
		g_main_loop_quit(ping->loop);
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	struct ping ping = { .loop = g_main_loop_new(NULL, FALSE) };

	alarm(20); /* whatever happens, `dial9 doctor` does not wait for ever */
	if (pipe(ping.fds))
		return 1;
	g_unix_fd_add(ping.fds[0], G_IO_IN, on_readable, &ping);
	g_timeout_add(0, on_timer, &ping);
	g_main_loop_run(ping.loop);
	printf("%u %u.%u.%u %s\n", ping.callbacks, glib_major_version, glib_minor_version,
	       glib_micro_version, "poll");
	g_main_loop_unref(ping.loop);
	return ping.rounds == ROUNDS ? 0 : 1;
}
