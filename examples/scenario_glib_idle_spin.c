/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An idle source that is always ready looks for work: the loop never waits and a CPU is busy with
 * nothing.  The innocent twin adds the idle source when there is work, and removes it after that.
 *
 *	scenario_glib_idle_spin [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

static unsigned jobs, done, looks;
static gboolean innocent, looking;

static gboolean look_for_work(gpointer arg)
{
	(void)arg;
	looks++;
	if (jobs > 0) {
		jobs--;
		done++;
	}
	looking = !innocent || jobs > 0;
	return looking;
}

static gboolean add_job(gpointer arg)
{
	(void)arg;
	jobs++;
	if (!looking)
		g_idle_add(look_for_work, NULL);
	looking = TRUE;
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
	g_timeout_add(50, add_job, NULL);
	if (!innocent)
		g_idle_add(look_for_work, NULL);
	looking = !innocent;
	g_timeout_add(1000, stop, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%u jobs done, %u looks\n", done, looks);
	return 0;
}
