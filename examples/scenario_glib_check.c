/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of the program's own asks its device in check(), in each round of the loop, and that takes
 * 15 ms.  The innocent twin's check() looks at a flag.
 *
 *	scenario_glib_check [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <dial9/glib.h>

static gboolean innocent;
static unsigned asked, ticks;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static gboolean device_prepare(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = -1;
	return FALSE;
}

static gboolean device_check(GSource *source)
{
	(void)source;
	if (!innocent)
		compute(15000);
	return ++asked % 10 == 0;
}

static gboolean device_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)source;
	return callback(arg);
}

static gboolean on_device(gpointer arg)
{
	(void)arg;
	return G_SOURCE_CONTINUE;
}

static gboolean tick(gpointer loop)
{
	if (++ticks == 60)
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	static GSourceFuncs functions = { device_prepare, device_check, device_dispatch, NULL, NULL, NULL };
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	GSource *device = g_source_new(&functions, sizeof(GSource));

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_g_main_context_attach(NULL);
	g_source_set_callback(device, on_device, NULL, NULL);
	g_source_attach(device, NULL);
	g_timeout_add(30, tick, loop);
	g_main_loop_run(loop);
	g_source_destroy(device);
	g_source_unref(device);
	g_main_loop_unref(loop);
	printf("asked %u times, %u ticks\n", asked, ticks);
	return 0;
}
