/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process, three loop libraries: each in a thread of its own, all waking each other round and
 * round, and then all in one thread, the loops of libevent and libev inside callbacks of GLib's.
 *
 *	three_loops [--attach] [--out=FILE]
 */

#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <ev.h>

/* libevent calls another number so. */
enum { LIBEV_READ = EV_READ };

#include <event2/event.h>
#include <event2/thread.h>
#include <glib-unix.h>
#include <glib.h>

#include "counters.h"

#define LAPS   500
#define TIMERS 50
#define NESTED 20

static bool attached;

static void attach(const char *function, void *loop)
{
	if (attached)
		attach_with(function, loop, NULL);
}

/* ---- a lap: libevent to libev to GLib to libevent, over pipes ---- */

static int pipes[3][2];
static int laps[3];

static void hand_on(int from)
{
	char byte;

	if (read(pipes[from][0], &byte, 1) != 1)
		complain("read", 1, 0);
	/* The first thread has begun with one. */
	if (++laps[from] < LAPS || from != 2)
		if (write(pipes[(from + 1) % 3][1], "", 1) != 1)
			complain("write", 1, 0);
}

/* ---- libevent ---- */

struct events {
	struct event_base *base;
	int timers;
};

static void on_event_pipe(evutil_socket_t fd, short what, void *arg)
{
	struct events *events = arg;

	(void)fd, (void)what;
	COUNT(on_event_pipe, KIND_POLL);
	hand_on(0);
	if (laps[0] == LAPS && events->timers == TIMERS)
		event_base_loopbreak(events->base);
}

static void on_event_timer(evutil_socket_t fd, short what, void *arg)
{
	struct events *events = arg;

	(void)fd, (void)what;
	COUNT(on_event_timer, KIND_POLL);
	if (++events->timers == TIMERS && laps[0] == LAPS)
		event_base_loopbreak(events->base);
}

/* Persistent, and deleted when it has run its times. */
static void on_event_tick(evutil_socket_t fd, short what, void *arg)
{
	static int ticks;

	COUNT(on_event_tick, KIND_POLL);
	if (++ticks == TIMERS)
		event_del(*(struct event **)arg);
	(void)fd, (void)what;
}

static void *run_libevent(void *arg)
{
	static const struct timeval soon = { 0, 300 };
	struct events events = { .base = arg };
	struct event *reader, *ticker = NULL;

	reader = event_new(events.base, pipes[0][0], EV_READ | EV_PERSIST, on_event_pipe, &events);
	ticker = event_new(events.base, -1, EV_PERSIST, on_event_tick, &ticker);
	event_add(reader, NULL);
	event_add(ticker, &soon);
	for (int i = 0; i < TIMERS; i++)
		event_base_once(events.base, -1, EV_TIMEOUT, on_event_timer, &events, &soon);
	event_base_dispatch(events.base);
	/* Run the timers that came due after the last lap. */
	event_del(reader);
	event_base_dispatch(events.base);
	event_free(reader);
	event_free(ticker);
	return NULL;
}

/* ---- libev ---- */

static void on_ev_pipe(struct ev_loop *loop, ev_io *io, int events)
{
	(void)events;
	COUNT(on_ev_pipe, KIND_POLL);
	hand_on(1);
	if (laps[1] == LAPS)
		ev_io_stop(loop, io);
}

static void on_ev_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	static int timers;

	(void)events;
	COUNT(on_ev_timer, KIND_POLL);
	if (++timers == TIMERS)
		ev_timer_stop(loop, timer);
}

static void *run_libev(void *arg)
{
	ev_io io;
	ev_timer timer;

	ev_io_init(&io, on_ev_pipe, pipes[1][0], LIBEV_READ);
	ev_timer_init(&timer, on_ev_timer, 0.0003, 0.0003);
	ev_io_start(arg, &io);
	ev_timer_start(arg, &timer);
	ev_run(arg, 0);
	return NULL;
}

/* ---- GLib ---- */

static gboolean on_glib_pipe(gint fd, GIOCondition condition, gpointer loop)
{
	(void)fd, (void)condition;
	COUNT(on_glib_pipe, KIND_POLL);
	hand_on(2);
	if (laps[2] < LAPS)
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static gboolean on_glib_timer(gpointer arg)
{
	static int timers;

	(void)arg;
	COUNT(on_glib_timer, KIND_POLL);
	return ++timers < TIMERS;
}

static gboolean on_glib_idle(gpointer arg)
{
	static int idles;

	(void)arg;
	COUNT(on_glib_idle, KIND_POLL);
	return ++idles < TIMERS;
}

static void run_glib(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	g_unix_fd_add(pipes[2][0], G_IO_IN, on_glib_pipe, loop);
	g_timeout_add(1, on_glib_timer, NULL);
	g_idle_add(on_glib_idle, NULL);
	g_main_loop_run(loop);
	while (counter_of("on_glib_timer", (void *)on_glib_timer, KIND_POLL)->count < TIMERS)
		g_main_context_iteration(NULL, TRUE);
	g_main_loop_unref(loop);
}

/* ---- all in one thread ---- */

static struct event_base *base;
static struct ev_loop *inner;

static void on_inner_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_inner_event, KIND_POLL);
}

static void on_inner_ev(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop, (void)timer, (void)events;
	COUNT(on_inner_ev, KIND_POLL);
	/* And one deeper. */
	event_base_once(base, -1, EV_TIMEOUT, on_inner_event, NULL, NULL);
	event_base_loop(base, EVLOOP_ONCE);
}

static gboolean on_outer(gpointer arg)
{
	static int times;
	ev_timer timer;

	COUNT(on_outer, KIND_POLL);
	event_base_once(base, -1, EV_TIMEOUT, on_inner_event, NULL, NULL);
	event_base_loop(base, EVLOOP_ONCE);
	ev_timer_init(&timer, on_inner_ev, 0., 0.);
	ev_timer_start(inner, &timer);
	ev_run(inner, EVRUN_ONCE);
	if (++times < NESTED)
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(arg);
	return G_SOURCE_REMOVE;
}

static void run_nested(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	g_idle_add(on_outer, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
}

/* Before the threads: a counter is made at its first use. */
static void make_counters(void)
{
	static void *const callbacks[] = {
		(void *)on_event_pipe, (void *)on_event_timer, (void *)on_event_tick,
		(void *)on_ev_pipe,    (void *)on_ev_timer,    (void *)on_glib_pipe,
		(void *)on_glib_timer, (void *)on_glib_idle,   (void *)on_outer,
		(void *)on_inner_event, (void *)on_inner_ev,
	};
	static const char *const names[] = { "on_event_pipe", "on_event_timer", "on_event_tick",
					     "on_ev_pipe",    "on_ev_timer",	"on_glib_pipe",
					     "on_glib_timer", "on_glib_idle",	"on_outer",
					     "on_inner_event", "on_inner_ev" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		counter_of(names[i], callbacks[i], KIND_POLL);
}

int main(int argc, char **argv)
{
	const char *out = NULL;
	pthread_t threads[2];

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--out=", 6))
			out = argv[i] + 6;
		attached |= !strcmp(argv[i], "--attach");
	}
	make_counters();
	evthread_use_pthreads();
	base = event_base_new();
	inner = ev_loop_new(0);
	if (!base || !inner || pipe(pipes[0]) || pipe(pipes[1]) || pipe(pipes[2]))
		return 99;
	attach("d9_event_base_attach", base);
	attach("d9_ev_loop_attach", inner);
	attach("d9_g_main_context_attach", NULL);
	if (write(pipes[0][1], "", 1) != 1)
		return 99;
	pthread_create(&threads[0], NULL, run_libevent, base);
	pthread_create(&threads[1], NULL, run_libev, inner);
	run_glib();
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	run_nested();
	event_base_free(base);
	ev_loop_destroy(inner);
	return counters_write(out);
}
