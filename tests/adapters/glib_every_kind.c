/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every kind of GLib source and writes what ran, how often and in which order.
 *
 *	glib_every_kind [--attach] [--adapter=LIBRARY] [--out=FILE]
 */
#include "config.h"

#include <gio/gio.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"

static GMainLoop *loop;
static unsigned waited_for; /* sources that have not had their last run */

/* Run the loop until |n| sources have called done(). */
static void run_until(unsigned n)
{
	waited_for = n;
	g_main_loop_run(loop);
}

static void done(void)
{
	if (--waited_for == 0)
		g_main_loop_quit(loop);
}

/* ---- idle and timers ---- */

static gboolean on_idle(gpointer arg)
{
	unsigned *left = arg;

	COUNT(on_idle, KIND_POLL);
	log_line("idle %u", *left);
	if (--*left)
		return G_SOURCE_CONTINUE;
	done();
	return G_SOURCE_REMOVE;
}

static gboolean on_timer(gpointer arg)
{
	unsigned *left = arg;

	COUNT(on_timer, KIND_POLL);
	if (--*left)
		return G_SOURCE_CONTINUE;
	done();
	return G_SOURCE_REMOVE;
}

#if GLIB_CHECK_VERSION(2, 74, 0)
static void on_once(gpointer arg)
{
	COUNT(on_once, KIND_POLL);
	log_line("once %s", (const char *)arg);
	done();
}
#endif

static void stage_timers(void)
{
	unsigned idles = 10, timers = 5, seconds = 1;
	GSource *timer = g_timeout_source_new(1);

	g_idle_add(on_idle, &idles);
	g_timeout_add(1, on_timer, &timers);
	g_timeout_add_seconds_full(G_PRIORITY_DEFAULT, 0, on_timer, &seconds, NULL);
#if GLIB_CHECK_VERSION(2, 74, 0)
	char idle_name[] = "idle", timer_name[] = "timer";

	g_idle_add_once(on_once, idle_name);
	run_until(4);
	g_timeout_add_once(2, on_once, timer_name); /* its place in the log is not left to time */
	run_until(1);
#else
	run_until(3);
#endif
	timers = 3;
	g_source_set_callback(timer, on_timer, &timers, NULL);
	g_source_attach(timer, NULL);
	run_until(1);
	g_source_unref(timer);
}

/* ---- descriptors ---- */

struct pipe_end {
	int fds[2];
	unsigned left;
};

static void refill(struct pipe_end *end)
{
	if (write(end->fds[1], "x", 1) != 1)
		complain("write", 1, 0);
}

static gboolean on_fd(gint fd, GIOCondition condition, gpointer arg)
{
	struct pipe_end *end = arg;
	char byte;

	COUNT(on_fd, KIND_POLL);
	log_line("fd %d %u", condition, end->left);
	if (read(fd, &byte, 1) == 1 && --end->left) {
		refill(end);
		return G_SOURCE_CONTINUE;
	}
	done();
	return G_SOURCE_REMOVE;
}

static gboolean on_channel(GIOChannel *channel, GIOCondition condition, gpointer arg)
{
	struct pipe_end *end = arg;
	char byte;

	(void)channel;
	COUNT(on_channel, KIND_POLL);
	log_line("channel %d %u", condition, end->left);
	if (read(end->fds[0], &byte, 1) == 1 && --end->left) {
		refill(end);
		return G_SOURCE_CONTINUE;
	}
	done();
	return G_SOURCE_REMOVE;
}

static void stage_descriptors(void)
{
	struct pipe_end a = { .left = 6 }, b = { .left = 4 };
	GIOChannel *channel;

	if (pipe(a.fds) || pipe(b.fds))
		complain("pipe", 0, -1);
	channel = g_io_channel_unix_new(b.fds[0]);
	g_unix_fd_add(a.fds[0], G_IO_IN, on_fd, &a);
	g_io_add_watch(channel, G_IO_IN, on_channel, &b);
	refill(&a);
	refill(&b);
	run_until(2);
	g_io_channel_unref(channel);
	for (int i = 0; i < 2; i++) {
		close(a.fds[i]);
		close(b.fds[i]);
	}
}

/* ---- signals and children ---- */

static gboolean on_signal(gpointer arg)
{
	unsigned *left = arg;

	COUNT(on_signal, KIND_POLL);
	if (--*left) {
		raise(SIGUSR1);
		return G_SOURCE_CONTINUE;
	}
	done();
	return G_SOURCE_REMOVE;
}

static void on_child(GPid pid, gint status, gpointer arg)
{
	(void)arg;
	COUNT(on_child, KIND_POLL);
	log_line("child %d", status);
	g_spawn_close_pid(pid);
	done();
}

static void stage_processes(void)
{
	char name[] = "true", *argv[] = { name, NULL };
	unsigned signals = 3;
	GPid pid;

	g_unix_signal_add(SIGUSR1, on_signal, &signals);
	raise(SIGUSR1);
	run_until(1);
	if (g_spawn_async(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL,
			  NULL, &pid, NULL)) {
		g_child_watch_add(pid, on_child, NULL);
		run_until(1);
	}
}

/* ---- sources that the program defines ---- */

struct own_source {
	GSource source;
	unsigned left;
};

static gboolean own_prepare(GSource *source, gint *timeout)
{
	*timeout = -1;
	return ((struct own_source *)source)->left > 0;
}

static gboolean own_check(GSource *source)
{
	return ((struct own_source *)source)->left > 0;
}

static gboolean own_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)callback;
	(void)arg;
	COUNT(own_dispatch, KIND_POLL);
	log_line("own %s", g_source_get_name(source));
	if (--((struct own_source *)source)->left)
		return G_SOURCE_CONTINUE;
	done();
	return G_SOURCE_REMOVE;
}

static unsigned finalized;

static void own_finalize(GSource *source)
{
	(void)source;
	finalized++;
}

/* In memory that is read-only once the program runs. */
static const GSourceFuncs own_funcs = { own_prepare, own_check, own_dispatch, own_finalize,
					NULL,	     NULL };

static GSourceFuncs chained_funcs;

static gboolean chained_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	return g_idle_funcs.dispatch(source, callback, arg);
}

/* The page of |address| cannot be written to, as the program was made. */
static void expect_read_only(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long low, high;
	char line[512], access[8];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &low, &high, access) == 3 &&
		    (unsigned long)address - low < high - low && access[1] == 'w')
			complain("write access to a constant table", 0, 1);
	}
	if (maps)
		fclose(maps);
}

static void stage_own(void)
{
	GSource *own = g_source_new((GSourceFuncs *)&own_funcs, sizeof(struct own_source));
	GSourceFuncs copy = g_idle_funcs;
	unsigned copied = 3, chained = 2;
	GSource *of_copy, *of_chain;

	((struct own_source *)own)->left = 4;
	g_source_set_name(own, "own source");
	g_source_attach(own, NULL);
	run_until(1);
	g_source_unref(own);
	if (finalized != 1)
		complain("finalized", 1, finalized);
	expect_read_only(&own_funcs);

	of_copy = g_source_new(&copy, sizeof(struct own_source));
	g_source_set_callback(of_copy, on_idle, &copied, NULL);
	g_source_attach(of_copy, NULL);
	run_until(1);
	g_source_unref(of_copy);

	chained_funcs = g_idle_funcs;
	chained_funcs.dispatch = chained_dispatch;
	of_chain = g_source_new(&chained_funcs, sizeof(struct own_source));
	g_source_set_callback(of_chain, on_idle, &chained, NULL);
	g_source_attach(of_chain, NULL);
	run_until(1);
	g_source_unref(of_chain);
}

/* ---- GIO ---- */

static gboolean on_cancelled(GCancellable *cancellable, gpointer arg)
{
	(void)cancellable;
	(void)arg;
	log_line("cancelled");
	done();
	return G_SOURCE_REMOVE;
}

static void in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	(void)source;
	(void)data;
	(void)cancellable;
	g_task_return_boolean(task, TRUE);
}

static void on_task(GObject *source, GAsyncResult *result, gpointer arg)
{
	(void)source;
	(void)arg;
	if (!g_task_propagate_boolean(G_TASK(result), NULL))
		complain("task", 1, 0);
	done();
}

static void on_resolved(GObject *source, GAsyncResult *result, gpointer arg)
{
	GList *found = g_resolver_lookup_by_name_finish(G_RESOLVER(source), result, NULL);

	(void)arg;
	if (!found)
		complain("addresses of localhost", 1, 0);
	g_resolver_free_addresses(found);
	done();
}

static gboolean on_closure(gpointer arg)
{
	unsigned *left = arg;

	if (--*left)
		return G_SOURCE_CONTINUE;
	done();
	return G_SOURCE_REMOVE;
}

static void stage_gio(void)
{
	GCancellable *cancellable = g_cancellable_new();
	GSource *source = g_cancellable_source_new(cancellable), *idle = g_idle_source_new();
	GResolver *resolver = g_resolver_get_default();
	unsigned closures = 3;

	g_source_set_callback(source, G_SOURCE_FUNC(on_cancelled), NULL, NULL);
	g_source_attach(source, NULL);
	g_cancellable_cancel(cancellable);
	run_until(1);
	g_source_unref(source);
	g_object_unref(cancellable);

	for (int i = 0; i < 5; i++) {
		GTask *task = g_task_new(NULL, NULL, on_task, NULL);

		g_task_run_in_thread(task, in_thread);
		g_object_unref(task);
	}
	run_until(5);
	g_resolver_lookup_by_name_async(resolver, "localhost", NULL, on_resolved, NULL);
	run_until(1);
	g_object_unref(resolver);

	/* Calls reach it through libgobject: its polls are those of a closure's callback there. */
	g_source_set_closure(idle, g_cclosure_new(G_CALLBACK(on_closure), &closures, NULL));
	g_source_attach(idle, NULL);
	run_until(1);
	g_source_unref(idle);
}

/* ---- nested loops ---- */

static gboolean on_inner(gpointer arg)
{
	COUNT(on_inner, KIND_POLL);
	g_main_loop_quit(arg);
	return G_SOURCE_REMOVE;
}

static gboolean on_nested(gpointer arg)
{
	unsigned *depth = arg;
	GMainLoop *inner = g_main_loop_new(NULL, FALSE);

	COUNT(on_nested, KIND_POLL);
	log_line("nested %u", *depth);
	if (--*depth)
		g_idle_add(on_nested, depth);
	g_timeout_add(2, on_inner, inner);
	g_main_loop_run(inner);
	g_main_loop_unref(inner);
	if (*depth == 0)
		g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void stage_nested(void)
{
	unsigned depth = 3;

	g_idle_add(on_nested, &depth);
	run_until(1);
}

/* ---- another thread's context ---- */

#define INVOKES 20

static struct counter *invoked;
static GMainLoop *other_loop;
static unsigned left_to_invoke = INVOKES;

static gboolean on_invoked(gpointer arg)
{
	(void)arg;
	invoked->count++;
	if (--left_to_invoke == 0)
		g_main_loop_quit(other_loop);
	return G_SOURCE_REMOVE;
}

static gpointer run_other(gpointer context)
{
	g_main_context_push_thread_default(context);
	g_main_loop_run(other_loop);
	g_main_context_pop_thread_default(context);
	return NULL;
}

static void stage_threads(void)
{
	GMainContext *context = g_main_context_new();
	GThread *thread;

	invoked = counter_of("on_invoked", (void *)on_invoked, KIND_POLL);
	other_loop = g_main_loop_new(context, FALSE);
	thread = g_thread_new("other", run_other, context);
	while (!g_main_loop_is_running(other_loop))
		g_usleep(100);
	for (int i = 0; i < INVOKES; i++)
		g_main_context_invoke(context, on_invoked, NULL);
	g_thread_join(thread);
	g_main_loop_unref(other_loop);
	g_main_context_unref(context);
}

int main(int argc, char **argv)
{
	const char *out = NULL, *adapter = NULL;
	gboolean attach = FALSE;

	for (int i = 1; i < argc; i++) {
		attach |= g_str_has_prefix(argv[i], "--a");
		if (g_str_has_prefix(argv[i], "--adapter="))
			adapter = argv[i] + strlen("--adapter=");
		if (g_str_has_prefix(argv[i], "--out="))
			out = argv[i] + strlen("--out=");
	}
	if (attach)
		attach_with("d9_g_main_context_attach", NULL, adapter);
	loop = g_main_loop_new(NULL, FALSE);
	stage_timers();
	stage_descriptors();
	stage_processes();
	stage_own();
	stage_gio();
	stage_nested();
	if (!attach) /* only contexts that are attached are recorded */
		stage_threads();
	g_main_loop_unref(loop);
	return counters_write(out);
}
