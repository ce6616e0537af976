/* SPDX-License-Identifier: Apache-2.0 */
/* Sources whose callbacks are closures of C: one function straight, one with its arguments swapped. */

#include <glib-object.h>

static GMainLoop *loop;
static unsigned left = 6;

static void count_down(void)
{
	if (--left == 0)
		g_main_loop_quit(loop);
}

gboolean on_straight(gpointer data);
gboolean on_swapped(gpointer data);

gboolean on_straight(gpointer data)
{
	(void)data;
	count_down();
	return G_SOURCE_CONTINUE;
}

gboolean on_swapped(gpointer data)
{
	(void)data;
	count_down();
	return G_SOURCE_CONTINUE;
}

static void add(GClosure *closure, guint ms)
{
	GSource *source = g_timeout_source_new(ms);

	g_source_set_closure(source, closure);
	g_source_attach(source, NULL);
	g_source_unref(source);
}

int main(void)
{
	loop = g_main_loop_new(NULL, FALSE);
	add(g_cclosure_new(G_CALLBACK(on_straight), NULL, NULL), 2);
	add(g_cclosure_new_swap(G_CALLBACK(on_swapped), NULL, NULL), 2);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	return 0;
}
