/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that a loop has run and forgotten before the calls that made them go on: whoever makes one
 * is held up behind the real call, where the adapter enters it.
 *
 *	glib_held [--out=FILE]
 */
#include "config.h"

#include <dlfcn.h>
#include <glib.h>
#include <string.h>

#include <dial9/loop.h>

#include "counters.h"

#define SOURCES 20

static GMutex mutex;
static GCond changed;
static unsigned made, gone;
static struct counter *handed;
static _Thread_local gboolean making;

/* In front of the core's own, which the adapter calls about the source that was made. */
__attribute__((visibility("default"))) const struct d9_callsite *
d9_callsite(const void *callback, const void *site, unsigned flags)
{
	const struct d9_callsite *(*real)(const void *, const void *, unsigned) = NULL;

	*(void **)&real = dlsym(RTLD_NEXT, "d9_callsite");
	g_mutex_lock(&mutex);
	while (making && gone < made)
		g_cond_wait(&changed, &mutex);
	g_mutex_unlock(&mutex);
	return real(callback, site, flags);
}

static gboolean on_handed(gpointer loop)
{
	(void)loop;
	handed->count++;
	return G_SOURCE_REMOVE;
}

/* Behind its dispatch. */
static void on_gone(gpointer loop)
{
	g_mutex_lock(&mutex);
	if (++gone == SOURCES)
		g_main_loop_quit(loop);
	g_cond_signal(&changed);
	g_mutex_unlock(&mutex);
}

static gpointer run_loop(gpointer loop)
{
	g_main_loop_run(loop);
	return NULL;
}

static void hand_over(GMainContext *context, GMainLoop *loop)
{
	GSource *source = g_idle_source_new();

	g_source_set_callback(source, on_handed, loop, on_gone);
	made++;
	making = TRUE;
	g_source_attach(source, context);
	making = FALSE;
	g_source_unref(source);
}

int main(int argc, char **argv)
{
	const char *out = argc > 1 && g_str_has_prefix(argv[1], "--out=") ? argv[1] + 6 : NULL;
	GMainContext *context = g_main_context_new();
	GMainLoop *loop = g_main_loop_new(context, FALSE);
	GThread *thread;

	handed = counter_of("on_handed", (void *)on_handed, KIND_POLL);
	thread = g_thread_new("loop", run_loop, loop);
	for (unsigned i = 0; i < SOURCES; i++)
		hand_over(context, loop);
	g_thread_join(thread);
	g_main_loop_unref(loop);
	g_main_context_unref(context);
	return counters_write(out);
}
