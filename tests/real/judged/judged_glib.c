/* SPDX-License-Identifier: Apache-2.0 */
#include <gio/gio.h>
#include <stdlib.h>
#include <unistd.h>

#include "judged.h"

static bool is_innocent;
static double begun, run_for;

static gboolean on_client(gpointer data)
{
	(void)data;
	judged_compute(0.02);
	return G_SOURCE_CONTINUE;
}

static gboolean stop(gpointer data)
{
	g_main_loop_quit(data);
	return G_SOURCE_REMOVE;
}

static GMainLoop *with_clients(double seconds)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	for (unsigned i = 0; i < 4; i++)
		g_timeout_add(5, on_client, NULL);
	g_timeout_add((guint)(seconds * 1e3), stop, loop);
	return loop;
}

/* ---- hold the loop ---- */

static gboolean ask_user(gpointer data)
{
	GMainContext *context;
	GMainLoop *loop;
	GSource *answer;

	(void)data;
	if (is_innocent)
		return G_SOURCE_CONTINUE;
	context = g_main_context_new();
	loop = g_main_loop_new(context, FALSE);
	answer = g_timeout_source_new(45);
	g_source_set_callback(answer, stop, loop, NULL);
	g_source_attach(answer, context);
	g_main_loop_run(loop);
	g_source_unref(answer);
	g_main_loop_unref(loop);
	g_main_context_unref(context);
	return G_SOURCE_CONTINUE;
}

static void hold_nested(bool innocent, double seconds)
{
	GMainLoop *loop = with_clients(seconds);

	is_innocent = innocent;
	g_timeout_add(500, ask_user, NULL);
	g_main_loop_run(loop);
}

static gboolean rebuild_index(gpointer data)
{
	(void)data;
	judged_compute(is_innocent ? 0.2 : 9);
	return G_SOURCE_CONTINUE;
}

static void hold_callback(bool innocent, double seconds)
{
	GMainLoop *loop = with_clients(seconds);

	is_innocent = innocent;
	g_timeout_add(250, rebuild_index, NULL);
	g_main_loop_run(loop);
}

static __attribute__((noinline)) void sweep_cache(void)
{
	judged_compute(is_innocent ? 0.2 : 25);
}

static gboolean on_batch(gpointer data)
{
	(void)data;
	judged_compute(2);
	return G_SOURCE_CONTINUE;
}

static void hold_between(bool innocent, double seconds)
{
	double next = begun;

	is_innocent = innocent;
	with_clients(seconds);
	/* Enough for samples to find it: so the report knows who runs the loop. */
	g_timeout_add(40, on_batch, NULL);
	while (judged_now() < begun + seconds - 0.3) {
		g_main_context_iteration(NULL, TRUE);
		if (judged_now() < next)
			continue;
		next += 0.5;
		sweep_cache();
	}
}

static __attribute__((noinline)) void ask_sidecar(int sidecar)
{
	char byte = 'x';

	if (write(sidecar, &byte, 1) != 1 || read(sidecar, &byte, 1) != 1)
		abort();
}

static void ask_between(bool innocent, double seconds)
{
	int sidecar = judged_sidecar(innocent ? 0.05 : 6);

	with_clients(seconds);
	while (judged_now() < begun + seconds - 0.3) {
		g_main_context_iteration(NULL, TRUE);
		ask_sidecar(sidecar);
	}
}

/* ---- a pool that is full of long jobs ---- */

static void build_report(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	(void)source, (void)data, (void)cancellable;
	judged_sleep(is_innocent ? 1 : 150);
	g_task_return_boolean(task, TRUE);
}

static void read_row(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	(void)source, (void)data, (void)cancellable;
	judged_sleep(0.2);
	g_task_return_boolean(task, TRUE);
}

static void on_done(GObject *source, GAsyncResult *result, gpointer data)
{
	(void)source, (void)result, (void)data;
}

static gboolean on_report(gpointer data)
{
	(void)data;
	for (unsigned i = 0; i < 24; i++) {
		GTask *task = g_task_new(NULL, NULL, on_done, NULL);

		g_task_run_in_thread(task, build_report);
		g_object_unref(task);
	}
	return G_SOURCE_CONTINUE;
}

static gboolean on_request(gpointer data)
{
	GTask *task = g_task_new(NULL, NULL, on_done, NULL);

	(void)data;
	g_task_run_in_thread(task, read_row);
	g_object_unref(task);
	return G_SOURCE_CONTINUE;
}

static void full_pool(bool innocent, double seconds)
{
	GMainLoop *loop = with_clients(seconds);

	is_innocent = innocent;
	g_timeout_add(400, on_report, NULL);
	g_timeout_add(20, on_request, NULL);
	g_main_loop_run(loop);
}

/* A pool that the program made. */
static void work(gpointer job, gpointer data)
{
	(void)data;
	judged_sleep(GPOINTER_TO_INT(job) == 1 ? (is_innocent ? 1 : 120) : 0.2);
}

static GThreadPool *pool;

static gboolean push_long(gpointer data)
{
	(void)data;
	for (unsigned i = 0; i < 6; i++)
		g_thread_pool_push(pool, GINT_TO_POINTER(1), NULL);
	return G_SOURCE_CONTINUE;
}

static gboolean push_short(gpointer data)
{
	(void)data;
	g_thread_pool_push(pool, GINT_TO_POINTER(2), NULL);
	return G_SOURCE_CONTINUE;
}

static void own_pool(bool innocent, double seconds)
{
	GMainLoop *loop = with_clients(seconds);

	is_innocent = innocent;
	pool = g_thread_pool_new(work, NULL, 2, TRUE, NULL);
	g_timeout_add(500, push_long, NULL);
	g_timeout_add(20, push_short, NULL);
	g_main_loop_run(loop);
}

/* ---- an idle source of a high priority ---- */

static gboolean handle_stream(gpointer data)
{
	double at = judged_now() - begun;

	(void)data;
	judged_compute(0.5);
	return at < run_for - 1;
}

static void starved(bool innocent, double seconds)
{
	GMainLoop *loop = with_clients(seconds);

	is_innocent = innocent;
	run_for = seconds;
	if (!innocent)
		g_idle_add_full(G_PRIORITY_HIGH, handle_stream, NULL, NULL);
	g_main_loop_run(loop);
}

/* ---- timers in whole seconds ---- */

static gboolean on_second(gpointer data)
{
	(void)data;
	return G_SOURCE_CONTINUE;
}

static gboolean hold_second(gpointer data)
{
	(void)data;
	judged_compute(is_innocent ? 0.2 : 150);
	return G_SOURCE_CONTINUE;
}

static void seconds_late(bool innocent, double seconds)
{
	GMainLoop *loop = with_clients(seconds);

	is_innocent = innocent;
	for (unsigned i = 0; i < 6; i++)
		g_timeout_add_seconds(1, on_second, NULL);
	g_timeout_add(310, hold_second, NULL);
	g_main_loop_run(loop);
}

int main(int argc, char **argv)
{
	static const struct judged programs[] = {
		{ "hold_callback", hold_callback },
		{ "hold_nested", hold_nested },
		{ "hold_between", hold_between },
		{ "ask_between", ask_between },
		{ "full_pool", full_pool },
		{ "own_pool", own_pool },
		{ "starved", starved },
		{ "seconds_late", seconds_late },
		{ NULL, NULL },
	};

	begun = judged_now();
	return judged_main(argc, argv, programs);
}
