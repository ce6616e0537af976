/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread hands each result to the loop by g_idle_add(): a source, a lock and a wake-up for each.
 * The innocent twin hands over as many, and adds a source for five hundred at a time.
 *
 *	scenario_glib_wake_storm [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

#define BATCH 500

static gint handed, stopped;
static unsigned taken, calls;

static gboolean take_results(gpointer arg)
{
	(void)arg;
	taken += (unsigned)g_atomic_int_and((guint *)&handed, 0);
	calls++;
	return G_SOURCE_REMOVE;
}

static gpointer produce(gpointer arg)
{
	const gboolean *innocent = arg;
	unsigned n = 0;

	while (!g_atomic_int_get(&stopped)) {
		g_usleep(20);
		g_atomic_int_inc(&handed);
		if (++n % BATCH == 0 || !*innocent)
			g_idle_add(take_results, NULL);
	}
	return NULL;
}

static gboolean stop(gpointer loop)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	gboolean innocent = argc > 1 && !strcmp(argv[1], "innocent");
	GThread *producer;

	d9_g_main_context_attach(NULL);
	g_timeout_add(1000, stop, loop);
	producer = g_thread_new("producer", produce, &innocent);
	g_main_loop_run(loop);
	g_atomic_int_set(&stopped, 1);
	g_thread_join(producer);
	g_main_loop_unref(loop);
	printf("%u results in %u calls\n", taken, calls);
	return 0;
}
