/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request adds a timer that watches over it, and nobody removes the timer when the request has
 * been answered: sources pile up, and GLib asks every one of them in every round.  The innocent twin
 * removes them.
 *
 *	scenario_glib_leak [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

static unsigned requests;
static gboolean innocent;

static gboolean on_watchdog(gpointer arg)
{
	(void)arg;
	return G_SOURCE_CONTINUE;
}

#define REQUESTS 10 /* at a time */

static gboolean on_requests(gpointer arg)
{
	for (int i = 0; i < REQUESTS; i++) {
		guint watchdog = g_timeout_add(200, on_watchdog, arg);

		requests++;
		if (innocent)
			g_source_remove(watchdog);
	}
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

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_g_main_context_attach(NULL);
	g_timeout_add(25, on_requests, NULL);
	g_timeout_add(1500, stop, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%u requests\n", requests);
	return 0;
}
