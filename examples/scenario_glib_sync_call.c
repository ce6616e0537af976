/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback asks a slow peer by a main context of its own until the answer is there, as synchronous
 * calls of GIO do (g_dbus_connection_call_sync(), g_subprocess_wait()): nothing else of its loop runs
 * meanwhile.  The innocent twin iterates the loop that it runs in.
 *
 *	scenario_glib_sync_call [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

#define ANSWER_MS 30

static unsigned answers;

static gboolean on_answer(gpointer answered)
{
	*(gboolean *)answered = TRUE;
	answers++;
	return G_SOURCE_REMOVE;
}

static void ask(GMainContext *context)
{
	GSource *answer = g_timeout_source_new(ANSWER_MS);
	gboolean answered = FALSE;

	g_source_set_callback(answer, on_answer, &answered, NULL);
	g_source_attach(answer, context);
	g_source_unref(answer);
	while (!answered)
		g_main_context_iteration(context, TRUE);
}

static gboolean ask_in_loop(gpointer arg)
{
	(void)arg;
	ask(NULL);
	return G_SOURCE_CONTINUE;
}

static gboolean call_sync(gpointer arg)
{
	GMainContext *context = g_main_context_new();

	(void)arg;
	ask(context);
	g_main_context_unref(context);
	return G_SOURCE_CONTINUE;
}

static gboolean on_tick(gpointer arg)
{
	++*(unsigned *)arg;
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
	unsigned ticks = 0;

	d9_g_main_context_attach(NULL);
	g_timeout_add(100, argc > 1 && !strcmp(argv[1], "innocent") ? ask_in_loop : call_sync,
		      NULL);
	g_timeout_add(10, on_tick, &ticks);
	g_timeout_add(1000, stop, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%u answers, %u ticks\n", answers, ticks);
	return 0;
}
