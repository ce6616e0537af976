/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of glib_cases.c in which several threads run. */
#include "config.h"

#include "counters.h"
#include "glib_cases.h"

/* ---- many contexts on many threads ---- */

static gint thread_polls;

static gboolean on_thread(gpointer arg)
{
	(void)arg;
	g_atomic_int_inc(&thread_polls);
	return G_SOURCE_REMOVE;
}

static gpointer run_own_context(gpointer arg)
{
	GMainContext *context = g_main_context_new();
	GSource *source = g_idle_source_new();

	(void)arg;
	g_source_set_callback(source, on_thread, NULL, NULL);
	g_source_attach(source, context);
	g_source_unref(source);
	g_main_context_iteration(context, FALSE);
	g_main_context_unref(context);
	return NULL;
}

void run_threads(void)
{
	GThread *threads[40];

	for (int i = 0; i < 200; i++)
		g_thread_join(g_thread_new("one", run_own_context, NULL));
	for (int i = 0; i < 40; i++)
		threads[i] = g_thread_new("many", run_own_context, NULL);
	for (int i = 0; i < 40; i++)
		g_thread_join(threads[i]);
	counter_of("on_thread", (void *)on_thread, KIND_POLL)->count =
		(unsigned long)g_atomic_int_get(&thread_polls);
}

/* ---- helper threads ---- */

#define ITEMS 70

static void work(gpointer item, gpointer arg)
{
	(void)item;
	g_atomic_int_inc((gint *)arg);
}

static gboolean on_push(gpointer pool)
{
	COUNT(on_push, KIND_POLL);
	for (gsize i = 1; i <= ITEMS; i++)
		g_thread_pool_push(pool, GSIZE_TO_POINTER(i), NULL);
	return G_SOURCE_REMOVE;
}

void run_pool(void)
{
	gint done = 0;
	GThreadPool *pool = g_thread_pool_new(work, &done, 3, FALSE, NULL);

	g_idle_add(on_push, pool);
	iterate_until_idle(NULL);
	g_thread_pool_free(pool, FALSE, TRUE);
	if (g_atomic_int_get(&done) != ITEMS)
		complain("items", ITEMS, g_atomic_int_get(&done));
}

/* ---- attach from elsewhere ---- */

static gint churn_over;

static gboolean on_churn(gpointer arg)
{
	(void)arg;
	return G_SOURCE_REMOVE;
}

static gpointer churn(gpointer arg)
{
	(void)arg;
	while (!g_atomic_int_get(&churn_over)) {
		GSource *source = g_timeout_source_new(1000);

		g_source_set_callback(source, on_churn, NULL, NULL);
		g_source_attach(source, NULL);
		g_source_destroy(source);
		g_source_unref(source);
#if defined(__SANITIZE_THREAD__)
		g_usleep(50); /* of what a thread did before it remembers only so much */
#endif
	}
	return NULL;
}

static gpointer attach_elsewhere(gpointer arg)
{
	attach(NULL);
	g_usleep(50000);
	g_idle_add(on_quit, arg);
	return NULL;
}

/* Counts what comes once the loop has been attached and has waited. */
static gboolean on_tick(gpointer arg)
{
	++*(unsigned *)arg;
	return G_SOURCE_CONTINUE;
}

void run_elsewhere(void)
{
	unsigned ticks = 0;
	GThread *churning, *attaching;

	g_timeout_add(1, on_tick, &ticks);
	churning = g_thread_new("churn", churn, NULL);
	attaching = g_thread_new("attach", attach_elsewhere, loop);
	g_main_loop_run(loop);
	g_atomic_int_set(&churn_over, 1);
	g_thread_join(churning);
	g_thread_join(attaching);
	counter_of("on_tick", (void *)on_tick, KIND_TASKS)->count = 1;
}
