/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback asks a slow peer and waits for the answer: nothing else of the loop runs meanwhile.  The
 * innocent twin lets a thread wait, and hears of the answer by g_idle_add().
 *
 *	scenario_glib_blocked [innocent]
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include <dial9/glib.h>

#define ANSWER_US 30000

static unsigned answers;

static gboolean on_answer(gpointer arg)
{
	(void)arg;
	answers++;
	return G_SOURCE_REMOVE;
}

static gpointer ask_in_thread(gpointer arg)
{
	(void)arg;
	g_usleep(ANSWER_US);
	g_idle_add(on_answer, NULL);
	return NULL;
}

static gboolean ask_without(gpointer arg)
{
	(void)arg;
	g_thread_unref(g_thread_new("asks", ask_in_thread, NULL));
	return G_SOURCE_CONTINUE;
}

static gboolean ask_and_wait(gpointer arg)
{
	(void)arg;
	g_usleep(ANSWER_US);
	answers++;
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
	g_timeout_add(100, argc > 1 && !strcmp(argv[1], "innocent") ? ask_without : ask_and_wait,
		      NULL);
	g_timeout_add(10, on_tick, &ticks);
	g_timeout_add(1000, stop, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%u answers, %u ticks\n", answers, ticks);
	return 0;
}
