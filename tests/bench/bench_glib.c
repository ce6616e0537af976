/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of recording a dispatch: idle sources in a context of their own, 64 in each round,
 * or one, 64 descriptors that are always ready, and 64 sources whose prepare() and check() are timed.
 * Variants take turns, in runs too short for the scheduler to come between; printed are medians of the
 * differences from the raw run of the same round, and the ratio to it.  The raw context's sources go by
 * a table that no hook has seen.
 *
 *	bench_glib [ROUNDS [DISPATCHES]]
 */

#include "config.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include <dial9/glib.h>
#include <dial9/recorder.h>

#include <glib-unix.h>

#include "bench/bench.h"

static unsigned long runs;

static gboolean on_idle(gpointer arg)
{
	(void)arg;
	runs++;
	return G_SOURCE_CONTINUE;
}

static gboolean on_ready(gint fd, GIOCondition condition, gpointer arg)
{
	(void)fd;
	(void)condition;
	return on_idle(arg);
}

/* Time a source that the program defines: prepare() and check(), both in each round. */
static gboolean own_prepare(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = 0;
	return FALSE;
}

static gboolean own_check(GSource *source)
{
	(void)source;
	return TRUE;
}

static gboolean own_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)source;
	return callback(arg);
}

static GSourceFuncs own_funcs = { own_prepare, own_check, own_dispatch, NULL, NULL, NULL };

/* Where GLib's own would announce the table. */
static void keep(gpointer data)
{
	(void)data;
}

static void get(gpointer data, GSource *source, GSourceFunc *callback, gpointer *arg)
{
	(void)data;
	(void)source;
	*callback = on_idle;
	*arg = NULL;
}

static void get_ready(gpointer data, GSource *source, GSourceFunc *callback, gpointer *arg)
{
	get(data, source, callback, arg);
	*callback = G_SOURCE_FUNC(on_ready);
}

static GSourceCallbackFuncs idle_callbacks = { keep, keep, get }, ready_callbacks = { keep, keep, get_ready };

static struct {
	GSource *(*source_new)(GSourceFuncs *funcs, guint size);
	GSource *(*fd_source_new)(gint fd, GIOCondition condition);
	void (*set_funcs)(GSource *source, GSourceFuncs *funcs);
	void (*set_callback_indirect)(GSource *source, gpointer data, GSourceCallbackFuncs *funcs);
	guint (*attach)(GSource *source, GMainContext *context);
	gboolean (*iteration)(GMainContext *context, gboolean may_block);
} glib;

static void find_functions(void)
{
	void *handle = dlopen("libglib-2.0.so.0", RTLD_NOW);

	*(void **)&glib.source_new = dlsym(handle, "g_source_new");
	*(void **)&glib.fd_source_new = dlsym(handle, "g_unix_fd_source_new");
	*(void **)&glib.set_funcs = dlsym(handle, "g_source_set_funcs");
	*(void **)&glib.set_callback_indirect = dlsym(handle, "g_source_set_callback_indirect");
	*(void **)&glib.attach = dlsym(handle, "g_source_attach");
	*(void **)&glib.iteration = dlsym(handle, "g_main_context_iteration");
}

/* Of one kind: by GLib's own table, and by a copy of it from before it was patched. */
struct kind {
	const char *name;
	int n;
	bool ready; /* descriptors */
	GSourceFuncs *funcs, raw;
};

static GSource *make_source(const struct kind *kind, GSourceFuncs *funcs)
{
	GSource *source;
	int fd;

	if (!kind->ready)
		return glib.source_new(funcs, 2 * sizeof(GSource)); /* as its own */
	fd = eventfd(1, EFD_CLOEXEC);
	if (fd < 0)
		exit(99);
	source = glib.fd_source_new(fd, G_IO_IN);
	glib.set_funcs(source, funcs);
	return source;
}

static GMainContext *make(const struct kind *kind, GSourceFuncs *funcs)
{
	GMainContext *context = g_main_context_new();

	for (int i = 0; i < kind->n; i++) {
		GSource *source = make_source(kind, funcs);

		glib.set_callback_indirect(source, context,
					   kind->ready ? &ready_callbacks : &idle_callbacks);
		glib.attach(source, context);
		g_source_unref(source);
	}
	return context;
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* ns per dispatch */
static double run(GMainContext *context, unsigned long n)
{
	double start = now_ns();

	runs = 0;
	while (runs < n)
		glib.iteration(context, FALSE);
	return (now_ns() - start) / (double)runs;
}

enum { RAW, SHUT, OPEN, RAW_AGAIN, VARIANTS };

static const char *const names[VARIANTS] = { "raw", "attached, switched off", "attached, recording",
					     "raw again" };

static void compare(struct kind *kind, unsigned rounds, unsigned long n, double budget)
{
	static double ns[VARIANTS][BENCH_ROUNDS_MAX];
	GMainContext *raw = make(kind, &kind->raw), *attached = make(kind, kind->funcs);
	char line[96];

	if (d9_g_main_context_attach(attached))
		exit(99);
	for (int i = -2; i < (int)rounds; i++) {
		unsigned at = i < 0 ? 0 : (unsigned)i;

		ns[RAW][at] = run(raw, n);
		d9_disable();
		ns[SHUT][at] = run(attached, n);
		d9_enable();
		ns[OPEN][at] = run(attached, n);
		ns[RAW_AGAIN][at] = run(raw, n);
	}
	for (int i = SHUT; i < VARIANTS; i++) {
		snprintf(line, sizeof(line), "GLib: %s, %s", kind->name, names[i]);
		bench_ratio(line, "ns", ns[i], "raw", ns[RAW], rounds, 0);
	}
	for (unsigned i = 0; i < rounds; i++)
		ns[OPEN][i] -= ns[RAW][i];
	snprintf(line, sizeof(line), "GLib: %s, more than raw", kind->name);
	bench_value(line, "ns", ns[OPEN], rounds, budget);
}

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 400000000 };
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 101;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 6400;
	struct kind idle = { "one of 64 idle sources", 64, false, &g_idle_funcs, g_idle_funcs };
	struct kind one = { "one of 1 idle source", 1, false, &g_idle_funcs, g_idle_funcs };
	struct kind ready = { "one of 64 ready descriptors", 64, true, &g_unix_fd_source_funcs,
			      g_unix_fd_source_funcs };
	struct kind own = { "one of 64 sources with prepare() and check()", 64, false, &own_funcs, own_funcs };

	find_functions();
	if (rounds > BENCH_ROUNDS_MAX || d9_g_main_context_attach(NULL))
		return 99;
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	compare(&idle, rounds, n, BENCH_MORE_NS);
	compare(&one, rounds, n / 4, 0);
	compare(&ready, rounds, n / 10, BENCH_MORE_NS);
	compare(&own, rounds, n / 2, 0);
	return 0;
}
