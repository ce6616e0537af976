/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback shows a dialog and waits for its answer by a loop of its own ("modal"), or waits so by a context
 * that only it knows ("private"), so that nothing else runs, or looks at the loop's own context again and again without
 * letting it wait ("polled").  The innocent twin goes on in the handler of the answer.
 *
 *	scenario_glib_nested_loop modal|private|polled [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

#define ASKED 4

static GMainLoop *loop;
static gboolean innocent, private_context, polled;
static unsigned asked, answered, ticks;

static gboolean on_answer(gpointer waiting)
{
	answered++;
	if (waiting)
		g_main_loop_quit(waiting);
	if (answered == ASKED)
		g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static gboolean show_dialog(gpointer arg)
{
	GMainContext *context = private_context ? g_main_context_new() : g_main_context_ref(g_main_context_default());
	GMainLoop *inner = g_main_loop_new(context, FALSE);
	GSource *answer = g_timeout_source_new(400);

	(void)arg;
	g_source_set_callback(answer, on_answer, innocent ? NULL : inner, NULL);
	if (innocent) {
		g_source_attach(answer, NULL);
	} else {
		g_source_attach(answer, context);
		if (private_context)
			g_main_context_push_thread_default(context);
		if (!polled)
			g_main_loop_run(inner);
		while (answered <= asked)
			g_main_context_iteration(context, FALSE);
		if (private_context)
			g_main_context_pop_thread_default(context);
	}
	g_source_unref(answer);
	g_main_loop_unref(inner);
	g_main_context_unref(context);
	return ++asked < ASKED;
}

static gboolean tick(gpointer arg)
{
	(void)arg;
	ticks++;
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	private_context = argc > 1 && !strcmp(argv[1], "private");
	polled = argc > 1 && !strcmp(argv[1], "polled");
	innocent = argc > 2 && !strcmp(argv[2], "innocent");
	loop = g_main_loop_new(NULL, FALSE);
	d9_g_main_context_attach(NULL);
	g_timeout_add(200, show_dialog, NULL);
	g_timeout_add(20, tick, NULL);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%u asked, %u answered, %u ticks\n", asked, answered, ticks);
	return 0;
}
