/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of glib_cases.c that want a newer GLib than 2.74; skipped with an older one. */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "counters.h"
#include "glib_cases.h"

#if GLIB_CHECK_VERSION(2, 90, 0)

#define TIMES 100

/* Not GLib's, of whose locks a checker of threads knows nothing. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned runs;
static struct counter *readied;

static gboolean timed_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)callback;
	(void)arg;
	readied->count++;
	g_source_clear_ready_time(source);
	pthread_mutex_lock(&mutex);
	runs++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
	return G_SOURCE_CONTINUE;
}

static void ready_at(GSource *source, uint64_t time_ns)
{
	unsigned before = runs; /* the loop waits, so no callback changes it */

	g_source_set_ready_time_ns(source, time_ns);
	pthread_mutex_lock(&mutex);
	while (runs == before)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

static gpointer run_loop(gpointer arg)
{
	g_main_loop_run(arg);
	return NULL;
}

/* Ready at once by another thread, and at a time that no number of microseconds says. */
void run_nanoseconds(void)
{
	static GSourceFuncs funcs = { NULL, NULL, timed_dispatch, NULL, NULL, NULL };
	GMainContext *context = g_main_context_new();
	GMainLoop *other = g_main_loop_new(context, FALSE);
	GSource *source = g_source_new(&funcs, sizeof(GSource));
	GThread *thread;
	uint64_t due;

	readied = counter_of("timed_dispatch", (void *)timed_dispatch, KIND_POLL);
	g_source_attach(source, context);
	thread = g_thread_new("other", run_loop, other);
	while (!g_main_loop_is_running(other))
		g_usleep(100);
	for (unsigned i = 0; i < TIMES; i++)
		ready_at(source, 0);
	due = (g_get_monotonic_time_ns() / 1000 + 2000) * 1000 + 1;
	ready_at(source, due);
	log_line("due %" PRIu64, due);
	g_main_loop_quit(other);
	g_thread_join(thread);
	g_source_destroy(source);
	g_source_unref(source);
	g_main_loop_unref(other);
	g_main_context_unref(context);
}

#else

void run_nanoseconds(void)
{
	exit(77);
}

#endif
