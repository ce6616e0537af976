/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests are worked on by a pool of one thread, and queue up there: each answer is late, though the
 * loop idles and no job takes long.  The innocent twin has a pool of as many threads as needed.
 *
 *	scenario_glib_helper [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

#define REQUESTS 8 /* at a time */
#define WORK_US	 12000

static GThreadPool *pool;
static unsigned answers;

static gboolean on_answer(gpointer arg)
{
	(void)arg;
	answers++;
	return G_SOURCE_REMOVE;
}

static void read_record(gpointer request, gpointer arg)
{
	(void)arg;
	g_usleep(WORK_US);
	g_idle_add(on_answer, request);
}

static gboolean on_requests(gpointer arg)
{
	static gsize request;

	(void)arg;
	for (int i = 0; i < REQUESTS; i++)
		g_thread_pool_push(pool, GSIZE_TO_POINTER(++request), NULL);
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
	gboolean innocent = argc > 1 && !strcmp(argv[1], "innocent");

	d9_g_main_context_attach(NULL);
	pool = g_thread_pool_new(read_record, NULL, innocent ? REQUESTS : 1, FALSE, NULL);
	g_timeout_add(120, on_requests, NULL);
	g_timeout_add(1300, stop, loop);
	g_main_loop_run(loop);
	g_thread_pool_free(pool, TRUE, TRUE);
	g_main_loop_unref(loop);
	printf("%u answers\n", answers);
	return 0;
}
