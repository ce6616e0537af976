/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a loop outside its callbacks.
 *
 *	glib_outside phases	a source whose check() and prepare() work; prints the time in them
 *	glib_outside two	two of them, whose numbers are alike; prints the time in both
 *	glib_outside long	one check() that takes long
 *	glib_outside chained	a check() that calls that of another table of the program's
 *	glib_outside driven	a loop that waits by itself, between query and check; prints how long
 *
 * What is printed is in microseconds, by the program's own clock.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

static gint64 in_prepare_us, in_check_us, waited_us;
static unsigned prepares, checks, least_prepares;
static gint64 work_us = 300;

static void work(gint64 *sum)
{
	gint64 begin = g_get_monotonic_time();

	while (g_get_monotonic_time() - begin < work_us)
		;
	*sum += g_get_monotonic_time() - begin;
}

static gboolean device_prepare(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = 1;
	prepares++;
	work(&in_prepare_us);
	return FALSE;
}

static gboolean device_check(GSource *source)
{
	(void)source;
	checks++;
	work(&in_check_us);
	return FALSE;
}

static gboolean device_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	(void)source;
	(void)callback;
	(void)data;
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs device = { device_prepare, device_check, device_dispatch, NULL, NULL, NULL };

static gboolean chained_check(GSource *source)
{
	return device.check(source);
}

static GSourceFuncs chained = { NULL, chained_check, device_dispatch, NULL, NULL, NULL };

static gboolean on_end(gpointer loop)
{
	if (prepares < least_prepares)
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static gboolean on_tick(gpointer left)
{
	return --*(unsigned *)left > 0;
}

static void run_source(GSourceFuncs *funcs, guint ms, bool two)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	GSource *source = g_source_new(funcs, sizeof(GSource)), *other = g_source_new(&device, sizeof(GSource));
	unsigned ticks = 1000;

	g_source_attach(source, NULL);
	if (two) {
		least_prepares = 400; /* as much as a busy machine takes longer for */
		for (int i = 0; i < 31; i++)
			g_timeout_add_seconds(1000, on_end, loop);
		g_source_attach(other, NULL);
	}
	/* Else it was made so that its table is known before the other one calls it. */
	g_source_unref(other);
	if (funcs == &chained)
		g_timeout_add(1, on_tick, &ticks);
	g_timeout_add(ms, on_end, loop);
	g_main_loop_run(loop);
	g_source_destroy(source);
	g_source_unref(source);
	g_main_loop_unref(loop);
}

static void run_driven(void)
{
	GMainContext *context = g_main_context_default();
	GPollFD fds[16];
	unsigned ticks = 10;
	gint priority, timeout, n;
	gint64 begin;

	g_main_context_acquire(context);
	g_timeout_add(20, on_tick, &ticks);
	while (ticks > 0) {
		g_main_context_prepare(context, &priority);
		n = g_main_context_query(context, priority, &timeout, fds, 16);
		begin = g_get_monotonic_time();
		poll((struct pollfd *)(void *)fds, (nfds_t)n, timeout);
		waited_us += g_get_monotonic_time() - begin;
		g_main_context_check(context, priority, fds, n);
		g_main_context_dispatch(context);
	}
	g_main_context_release(context);
	printf("waited %lld\n", (long long)waited_us);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "driven")) {
		run_driven();
		return 0;
	}
	if (!strcmp(what, "long"))
		work_us = 12000;
	run_source(!strcmp(what, "chained") ? &chained : &device, 300, !strcmp(what, "two"));
	printf("prepare %lld %u\ncheck %lld %u\n", (long long)in_prepare_us, prepares, (long long)in_check_us, checks);
	return 0;
}
