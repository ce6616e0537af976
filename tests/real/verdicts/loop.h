/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop of libevent, libev (-DVERDICT_EV) or GLib (-DVERDICT_GLIB), so that a program, in C or
 * C++, is the same on all of them.  The library itself calls the callbacks that ON_READ(name, fd,
 * arg) and ON_TIMER(name, arg) begin.
 */

#pragma once

#include <stdbool.h>
#include <stdlib.h>

#define BODY(name, ...) static inline void name##_body(__VA_ARGS__)

#if defined(VERDICT_EV)
#include <ev.h>

#define ON_READ(name, fd, arg)                                                                     \
	BODY(name, int, void *);                                                                   \
	static void name(struct ev_loop *loop, ev_io *w, int r)                                    \
	{                                                                                          \
		(void)loop, (void)r;                                                               \
		name##_body(w->fd, w->data);                                                       \
	}                                                                                          \
	BODY(name, int fd, void *arg)
#define ON_TIMER(name, arg)                                                                        \
	BODY(name, void *);                                                                        \
	static void name(struct ev_loop *loop, ev_timer *w, int r)                                 \
	{                                                                                          \
		(void)loop, (void)r;                                                               \
		name##_body(w->data);                                                              \
	}                                                                                          \
	BODY(name, void *arg)

typedef struct ev_loop loop_t;

static inline loop_t *loop_new(void)
{
	return ev_loop_new(0);
}

static inline void *loop_read(loop_t *loop, int fd, void (*on)(loop_t *, ev_io *, int), void *arg)
{
	ev_io *w = (ev_io *)calloc(1, sizeof(*w));

	ev_io_init(w, on, fd, EV_READ);
	w->data = arg;
	ev_io_start(loop, w);
	return w;
}

static inline void loop_unread(loop_t *loop, void *event)
{
	ev_io_stop(loop, (ev_io *)event);
	free(event);
}

static inline void loop_every(loop_t *loop, double s, void (*on)(loop_t *, ev_timer *, int),
			      void *arg)
{
	ev_timer *w = (ev_timer *)calloc(1, sizeof(*w));

	ev_timer_init(w, on, s, s);
	w->data = arg;
	ev_timer_start(loop, w);
}

static inline void on_end(loop_t *loop, ev_timer *w, int r)
{
	(void)w, (void)r;
	ev_break(loop, EVBREAK_ALL);
}

static inline void loop_run(loop_t *loop, double s)
{
	loop_every(loop, s, on_end, NULL);
	ev_run(loop, 0);
}

#elif defined(VERDICT_GLIB)
#include <glib-unix.h>
#include <glib.h>

#define ON_READ(name, fd, arg)                                                                     \
	BODY(name, int, void *);                                                                   \
	static gboolean name(gint fd_, GIOCondition what, gpointer p)                              \
	{                                                                                          \
		(void)what;                                                                        \
		name##_body(fd_, p);                                                               \
		return TRUE;                                                                       \
	}                                                                                          \
	BODY(name, int fd, void *arg)
#define ON_TIMER(name, arg)                                                                        \
	BODY(name, void *);                                                                        \
	static gboolean name(gpointer p)                                                           \
	{                                                                                          \
		name##_body(p);                                                                    \
		return TRUE;                                                                       \
	}                                                                                          \
	BODY(name, void *arg)

typedef GMainContext loop_t;

static inline loop_t *loop_new(void)
{
	return g_main_context_new();
}

static inline void *loop_read(loop_t *loop, int fd, GUnixFDSourceFunc on, void *arg)
{
	GSource *source = g_unix_fd_source_new(fd, G_IO_IN);

	g_source_set_callback(source, (GSourceFunc)(void (*)(void))on, arg, NULL);
	g_source_attach(source, loop);
	return source;
}

static inline void loop_unread(loop_t *loop, void *event)
{
	(void)loop;
	g_source_destroy((GSource *)event);
	g_source_unref((GSource *)event);
}

static inline void loop_every(loop_t *loop, double s, GSourceFunc on, void *arg)
{
	GSource *source = g_timeout_source_new((guint)(s * 1000));

	g_source_set_callback(source, on, arg, NULL);
	g_source_attach(source, loop);
	g_source_unref(source);
}

static inline gboolean on_end(gpointer loop)
{
	g_main_loop_quit((GMainLoop *)loop);
	return FALSE;
}

static inline void loop_run(loop_t *loop, double s)
{
	GMainLoop *run = g_main_loop_new(loop, FALSE);

	loop_every(loop, s, on_end, run);
	g_main_loop_run(run);
}

#else
#include <event2/event.h>

#define ON_READ(name, fd, arg)                                                                     \
	BODY(name, int, void *);                                                                   \
	static void name(evutil_socket_t fd_, short what, void *p)                                 \
	{                                                                                          \
		(void)what;                                                                        \
		name##_body(fd_, p);                                                               \
	}                                                                                          \
	BODY(name, int fd, void *arg)
#define ON_TIMER(name, arg)                                                                        \
	BODY(name, void *);                                                                        \
	static void name(evutil_socket_t fd_, short what, void *p)                                 \
	{                                                                                          \
		(void)fd_, (void)what;                                                             \
		name##_body(p);                                                                    \
	}                                                                                          \
	BODY(name, void *arg)

typedef struct event_base loop_t;

static inline loop_t *loop_new(void)
{
	return event_base_new();
}

static inline void *loop_read(loop_t *loop, int fd, event_callback_fn on, void *arg)
{
	struct event *event = event_new(loop, fd, EV_READ | EV_PERSIST, on, arg);

	event_add(event, NULL);
	return event;
}

static inline void loop_unread(loop_t *loop, void *event)
{
	(void)loop;
	event_free((struct event *)event);
}

static inline struct timeval seconds(double s)
{
	return (struct timeval) { (time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6) };
}

static inline void loop_every(loop_t *loop, double s, event_callback_fn on, void *arg)
{
	struct timeval every = seconds(s);

	event_add(event_new(loop, -1, EV_PERSIST, on, arg), &every);
}

static inline void loop_run(loop_t *loop, double s)
{
	struct timeval end = seconds(s);

	event_base_loopexit(loop, &end);
	event_base_dispatch(loop);
}
#endif
