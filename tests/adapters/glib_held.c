/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are held up where another one can come in between.
 *
 *	glib_held made [--out=FILE]
 *	glib_held attach [--adapter=LIBRARY] [--out=FILE]
 *
 * made: sources that a loop has run and forgotten before the calls that made them go on.  attach: while
 * one thread attaches, another one uses the first functions that are hooked.
 */
#include "config.h"

#include <dlfcn.h>
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <dial9/loop.h>

#include "counters.h"
#include "hook/stubs.h"

#define SOURCES 20

/* Not GLib's, of whose locks a checker of threads knows nothing. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned made, gone;
static struct counter *handed;
static _Thread_local gboolean making, attaching;

/* The core is in the process already, though perhaps not for all to see. */
static void *real_function(const char *name)
{
	return dlsym(dlopen("libdial9.so.0", RTLD_NOW | RTLD_NOLOAD), name);
}

/* ---- behind the call that makes a source ---- */

/* In front of the core's own, which the adapter calls about the source that was made. */
__attribute__((visibility("default"))) const struct d9_callsite *
d9_callsite(const void *callback, const void *site, unsigned flags)
{
	const struct d9_callsite *(*real)(const void *, const void *, unsigned) = NULL;

	*(void **)&real = real_function("d9_callsite");
	pthread_mutex_lock(&mutex);
	while (making && gone < made)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
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
	pthread_mutex_lock(&mutex);
	if (++gone == SOURCES)
		g_main_loop_quit(loop);
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
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

static void run_made(void)
{
	GMainContext *context = g_main_context_new();
	GMainLoop *loop = g_main_loop_new(context, FALSE);
	GThread *thread;

	handed = counter_of("on_handed", (void *)on_handed, KIND_POLL);
	thread = g_thread_new("loop", run_loop, loop);
	while (!g_main_loop_is_running(loop))
		g_usleep(100);
	for (unsigned i = 0; i < SOURCES; i++)
		hand_over(context, loop);
	g_thread_join(thread);
	g_main_loop_unref(loop);
	g_main_context_unref(context);
}

/* ---- in the middle of attaching ---- */

static gboolean on_idle(gpointer left)
{
	COUNT(on_idle, KIND_POLL);
	return --*(unsigned *)left > 0;
}

/* Its table of functions becomes known to the adapter by this. */
static gpointer use_idle(gpointer left)
{
	GSource *source = g_idle_source_new();

	g_source_set_callback(source, on_idle, left, NULL);
	return source;
}

/* In front of the core's own: here the adapter hooks the first of GLib's tables. */
__attribute__((visibility("default"))) void *d9__stubs_wrap(struct d9__stubs *stubs, void *callback,
							     const void *site, uint32_t kind)
{
	void *(*real)(struct d9__stubs *, void *, const void *, uint32_t) = NULL;

	*(void **)&real = real_function("d9__stubs_wrap");
	if (attaching) {
		attaching = FALSE;
		g_source_unref(g_thread_join(g_thread_new("other", use_idle, NULL)));
	}
	return real(stubs, callback, site, kind);
}

static void run_attach(const char *adapter)
{
	unsigned left = 3;
	GSource *source;

	attaching = TRUE;
	attach_with("d9_g_main_context_attach", NULL, adapter);
	source = use_idle(&left);
	g_source_attach(source, NULL);
	g_source_unref(source);
	while (left)
		g_main_context_iteration(NULL, FALSE);
}

int main(int argc, char **argv)
{
	const char *out = NULL, *adapter = NULL;

	for (int i = 2; i < argc; i++) {
		if (g_str_has_prefix(argv[i], "--adapter="))
			adapter = argv[i] + strlen("--adapter=");
		if (g_str_has_prefix(argv[i], "--out="))
			out = argv[i] + strlen("--out=");
	}
	if (argc > 1 && !strcmp(argv[1], "attach"))
		run_attach(adapter);
	else
		run_made();
	return counters_write(out);
}
