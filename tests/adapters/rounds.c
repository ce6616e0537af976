/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that goes round its loop by itself and works in between, mostly for a moment, now and
 * then for LONG_MS, of which it sleeps for the most part; one callback of it does the same with a
 *loop of its own.  Built for each loop library.
 *
 *	rounds_libevent, rounds_libev, rounds_glib [iteration|pending|host]
 *
 * Prints, all of them by its own clock and of the outer loop:
 *
 *	pieces N		how often the library was entered again
 *	long N			how many of them came LONG_MS and more after a return
 *	slept N			how often it slept outside of the outer loop, from its first
 *callback on between NS		the time from each return to the next entry inside NS
 *the time from each entry to its return
 */

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef WITH_GLIB
#include <glib.h>
#elif defined WITH_LIBEV
#include <ev.h>
#else
#include <event2/event.h>
#endif

#define ROUNDS	 60
#define LONG_MS	 20
#define SHORT_US 50

static uint64_t left_ns, between_ns, inside_ns;
static unsigned pieces, longs, sleeps, ticks;
static bool nested;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void work_briefly(void)
{
	uint64_t begin_ns = now_ns();

	while (now_ns() - begin_ns < SHORT_US * 1000)
		;
}

/* Works for LONG_MS, and sleeps once. */
static void work_long(void)
{
	const struct timespec sleep = { 0, (LONG_MS - 5) * 1000000 };
	uint64_t begin_ns = now_ns();

	sleeps += !nested && ticks;
	nanosleep(&sleep, NULL);
	while (now_ns() - begin_ns < LONG_MS * 1000000u)
		;
}

/* The library is entered, and has returned. */
static uint64_t enter(void)
{
	uint64_t ns = now_ns();

	if (!nested && left_ns) {
		pieces++;
		longs += ns - left_ns >= LONG_MS * 1000000u;
		between_ns += ns - left_ns;
	}
	return ns;
}

static void leave(uint64_t entered_ns)
{
	uint64_t ns = now_ns();

	if (nested)
		return;
	left_ns = ns;
	inside_ns += ns - entered_ns;
}

static void on_tick(void);

#ifdef WITH_GLIB

static const char *how = "iteration";

static gboolean tick(gpointer data)
{
	(void)data;
	on_tick();
	return G_SOURCE_CONTINUE;
}

static void *make_lane(void)
{
	GMainContext *context = g_main_context_new();
	GSource *source = g_timeout_source_new(1);

	g_source_set_callback(source, tick, NULL, NULL);
	g_source_attach(source, context);
	g_source_unref(source);
	g_main_context_acquire(context);
	return context;
}

static void iterate(GMainContext *context, gboolean may_block)
{
	uint64_t ns = enter();

	g_main_context_iteration(context, may_block);
	leave(ns);
}

static bool is_pending(GMainContext *context)
{
	uint64_t ns = enter();
	bool pending = g_main_context_pending(context);

	leave(ns);
	return pending;
}

/* As QEMU: GLib says what is ready, and the program waits. */
static void go_round(GMainContext *context)
{
	uint64_t ns = enter();
	gint priority, timeout, n;
	GPollFD fds[16];

	g_main_context_prepare(context, &priority);
	n = g_main_context_query(context, priority, &timeout, fds, 16);
	poll((struct pollfd *)(void *)fds, (nfds_t)n, timeout);
	if (g_main_context_check(context, priority, fds, n))
		g_main_context_dispatch(context);
	leave(ns);
}

static void run_once(void *context)
{
	if (!strcmp(how, "host"))
		go_round(context);
	else if (!strcmp(how, "iteration"))
		iterate(context, TRUE);
	else
		while (is_pending(context))
			iterate(context, FALSE);
}

#elif defined WITH_LIBEV

static void tick(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)timer;
	(void)events;
	on_tick();
}

static void *make_lane(void)
{
	static ev_timer timers[2];
	ev_timer *timer = &timers[nested];
	struct ev_loop *loop = ev_loop_new(0);

	ev_timer_init(timer, tick, .001, .001);
	ev_timer_start(loop, timer);
	return loop;
}

static void run_once(void *loop)
{
	uint64_t ns = enter();

	ev_run(loop, EVRUN_ONCE);
	leave(ns);
}

#else

static void tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	on_tick();
}

static void *make_lane(void)
{
	const struct timeval period = { 0, 1000 };
	struct event_base *base = event_base_new();

	event_add(event_new(base, -1, EV_PERSIST, tick, NULL), &period);
	return base;
}

static void run_once(void *base)
{
	uint64_t ns = enter();

	event_base_loop(base, EVLOOP_ONCE);
	leave(ns);
}

#endif

/* Here nothing lies between rounds of the outer loop. */
static void on_tick(void)
{
	void *lane;

	if (nested || ++ticks != 5)
		return;
	nested = true;
	lane = make_lane();
	for (int i = 0; i < 3; i++) {
		run_once(lane);
		work_long();
	}
	nested = false;
}

static void *run(void *arg)
{
	void *lane = make_lane();

	for (unsigned i = 0; i < ROUNDS || ticks < ROUNDS / 2; i++) {
		run_once(lane);
		if (i % 10 == 9)
			work_long();
		else
			work_briefly();
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

#ifdef WITH_GLIB
	if (argc > 1)
		how = argv[1];
#else
	(void)argc;
	(void)argv;
#endif
	/* A thread that ends tells the sum of its last second. */
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	printf("pieces %u\nlong %u\nslept %u\nbetween %llu\ninside %llu\n", pieces, longs, sleeps,
	       (unsigned long long)between_ns, (unsigned long long)inside_ns);
	return 0;
}
