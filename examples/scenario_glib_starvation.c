/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data comes in at high priority faster than it is handled, and GLib runs nothing of a lower priority
 * as long as something higher is ready: what the idle source has to redraw waits, though no callback
 * is slow.  The innocent twin handles the data at the priority of idle sources.
 *
 *	scenario_glib_starvation [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

#define BURST_US 100000 /* of data, each 250 ms */

static unsigned handled, redraws;
static gint64 burst_end;
static gint priority = G_PRIORITY_HIGH;

static gboolean handle_data(gpointer arg)
{
	gint64 until = g_get_monotonic_time() + 50;

	(void)arg;
	while (g_get_monotonic_time() < until)
		continue; /* some work */
	handled++;
	return g_get_monotonic_time() < burst_end;
}

static gboolean redraw(gpointer arg)
{
	(void)arg;
	redraws++;
	return G_SOURCE_REMOVE;
}

static gboolean on_burst(gpointer arg)
{
	(void)arg;
	burst_end = g_get_monotonic_time() + BURST_US;
	g_idle_add(redraw, NULL);
	g_idle_add_full(priority, handle_data, NULL, NULL);
	return G_SOURCE_CONTINUE;
}

static gboolean stop(gpointer loop)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	if (argc > 1 && !strcmp(argv[1], "innocent"))
		priority = G_PRIORITY_DEFAULT_IDLE;
	d9_g_main_context_attach(NULL);
	g_timeout_add(250, on_burst, NULL);
	g_timeout_add(1600, stop, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%u handled, %u redraws\n", handled, redraws);
	return 0;
}
