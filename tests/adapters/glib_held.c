/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are held up where another one can come in between.
 *
 *	glib_held made|taken|let_go [--out=FILE]
 *	glib_held attach [--adapter=LIBRARY] [--out=FILE]
 *
 * made: sources that a loop has run and forgotten before the calls that made them go on.  taken: the same,
 * where another thread takes the loop over only now.  let_go: a loop's owner lets go of it while another
 * thread invokes a function in it.  attach: while one thread attaches, another one uses the first functions
 * that are hooked.
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
#include "loop/callsites.h"

#define SOURCES 20

/* Not GLib's, of whose locks a checker of threads knows nothing. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned made, gone;
static struct counter *handed;
static GMainContext *taken_over;
static _Thread_local gboolean making, attaching;

/* The core is in the process already, though perhaps not for all to see. */
static void *real_function(const char *name)
{
	return dlsym(dlopen("libdial9.so.0", RTLD_NOW | RTLD_NOLOAD), name);
}

/* ---- behind the call that makes a source ---- */

static gpointer take_over(gpointer context)
{
	while (gone < made)
		g_main_context_iteration(context, FALSE);
	return NULL;
}

/* In front of the core's own, which the adapter calls about the source that was made. */
__attribute__((visibility("default"))) const struct d9_callsite *
d9__callsite_of_kind(const void *callback, const void *site, enum d9_task_kind kind)
{
	const struct d9_callsite *(*real)(const void *, const void *, enum d9_task_kind) = NULL;

	*(void **)&real = real_function("d9__callsite_of_kind");
	if (making && taken_over)
		g_thread_join(g_thread_new("taker", take_over, taken_over));
	pthread_mutex_lock(&mutex);
	while (making && gone < made)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	return real(callback, site, kind);
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
	if (++gone == SOURCES && loop)
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

static void run_taken(void)
{
	handed = counter_of("on_handed", (void *)on_handed, KIND_POLL);
	taken_over = g_main_context_new();
	while (made < SOURCES) {
		/* It was this thread that ran the loop last. */
		g_main_context_iteration(taken_over, FALSE);
		hand_over(taken_over, NULL);
	}
	g_main_context_unref(taken_over);
	counter_of("cross_thread", (void *)on_handed, KIND_REASON)->count = SOURCES;
	counter_of("on_handed", (void *)on_handed, KIND_ENDED)->count = SOURCES;
}

/* ---- between the check whether a function runs at once, and the call ---- */

static gboolean asked, let_go;
static _Thread_local gboolean invoking;

/* In front of the core's own: another thread has the context, so there will be a source to poll. */
__attribute__((visibility("default"))) int d9_wake_cell_fill(struct d9_wake_cell *cell, struct d9_loop *loop)
{
	int (*real)(struct d9_wake_cell *, struct d9_loop *) = NULL;

	*(void **)&real = real_function("d9_wake_cell_fill");
	if (invoking) {
		pthread_mutex_lock(&mutex);
		asked = TRUE;
		pthread_cond_signal(&changed);
		while (!let_go)
			pthread_cond_wait(&changed, &mutex);
		pthread_mutex_unlock(&mutex);
	}
	return real(cell, loop);
}

static gboolean on_invoked(gpointer calls)
{
	COUNT(on_invoked, KIND_POLL);
	++*(unsigned *)calls;
	return G_SOURCE_REMOVE;
}

static unsigned forgotten;

static void on_forgotten(gpointer calls)
{
	(void)calls;
	forgotten++;
}

static gpointer invoke(gpointer calls)
{
	invoking = TRUE;
	g_main_context_invoke_full(NULL, G_PRIORITY_HIGH, on_invoked, calls, on_forgotten);
	return NULL;
}

static void invoke_and_let_go(unsigned *calls)
{
	GThread *thread;

	asked = let_go = FALSE;
	g_main_context_acquire(NULL);
	thread = g_thread_new("invoker", invoke, calls);
	pthread_mutex_lock(&mutex);
	while (!asked)
		pthread_cond_wait(&changed, &mutex);
	g_main_context_release(NULL);
	let_go = TRUE;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
	g_thread_join(thread);
}

static void run_let_go(void)
{
	unsigned calls = 0;

	while (g_main_context_iteration(NULL, FALSE))
		continue;
	for (unsigned i = 1; i <= SOURCES; i++) {
		invoke_and_let_go(&calls);
		while (calls < i)
			g_main_context_iteration(NULL, FALSE);
	}
	if (forgotten != SOURCES)
		complain("data given back", SOURCES, forgotten);
	counter_of("cross_thread", (void *)on_invoked, KIND_REASON)->count = SOURCES;
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
	const char *out = NULL, *adapter = NULL, *name = argc > 1 ? argv[1] : "";

	for (int i = 2; i < argc; i++) {
		if (g_str_has_prefix(argv[i], "--adapter="))
			adapter = argv[i] + strlen("--adapter=");
		if (g_str_has_prefix(argv[i], "--out="))
			out = argv[i] + strlen("--out=");
	}
	if (!strcmp(name, "attach"))
		run_attach(adapter);
	else if (!strcmp(name, "taken"))
		run_taken();
	else if (!strcmp(name, "let_go"))
		run_let_go();
	else
		run_made();
	return counters_write(out);
}
