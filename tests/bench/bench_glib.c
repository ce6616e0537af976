/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording costs per dispatch: idle sources in a context of their own, 64 of them in each round,
 * or one.  Variants take turns, in runs too short for the scheduler to come between; printed are
 * medians of the differences from the raw run of the same round, and the ratio to it.  The raw
 * context's sources go by a table that no hook has seen.
 *
 *	bench_glib [ROUNDS [DISPATCHES]]
 */

#include "config.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <dial9/glib.h>
#include <dial9/recorder.h>

#include <glib.h>

#include "bench/bench.h"

#define SOURCES 64

static unsigned long runs;

static gboolean on_idle(gpointer arg)
{
	(void)arg;
	runs++;
	return G_SOURCE_CONTINUE;
}

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

static GSourceCallbackFuncs callbacks = { keep, keep, get };

static struct {
	GSource *(*source_new)(GSourceFuncs *funcs, guint size);
	void (*set_callback_indirect)(GSource *source, gpointer data, GSourceCallbackFuncs *funcs);
	guint (*attach)(GSource *source, GMainContext *context);
	gboolean (*iteration)(GMainContext *context, gboolean may_block);
} glib;

static void find_functions(void)
{
	void *handle = dlopen("libglib-2.0.so.0", RTLD_NOW);

	*(void **)&glib.source_new = dlsym(handle, "g_source_new");
	*(void **)&glib.set_callback_indirect = dlsym(handle, "g_source_set_callback_indirect");
	*(void **)&glib.attach = dlsym(handle, "g_source_attach");
	*(void **)&glib.iteration = dlsym(handle, "g_main_context_iteration");
}

static GMainContext *make(GSourceFuncs *funcs, int n)
{
	GMainContext *context = g_main_context_new();

	for (int i = 0; i < n; i++) {
		GSource *source = glib.source_new(funcs, 2 * sizeof(GSource)); /* as its own */

		glib.set_callback_indirect(source, context, &callbacks);
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

static void compare(GSourceFuncs *raw_funcs, int n_sources, unsigned rounds, unsigned long n, double budget)
{
	static double ns[VARIANTS][BENCH_ROUNDS_MAX];
	GMainContext *raw = make(raw_funcs, n_sources), *attached = make(&g_idle_funcs, n_sources);
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
		snprintf(line, sizeof(line), "GLib: one of %d idle source%s, %s", n_sources,
			 n_sources > 1 ? "s" : "", names[i]);
		bench_ratio(line, "ns", ns[i], "raw", ns[RAW], rounds, i == OPEN ? budget : 0);
	}
}

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 400000000 };
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 101;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 6400;
	GSourceFuncs raw_funcs = g_idle_funcs; /* before it is patched */

	find_functions();
	if (rounds > BENCH_ROUNDS_MAX || d9_g_main_context_attach(NULL))
		return 99;
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	compare(&raw_funcs, SOURCES, rounds, n, 1.25);
	compare(&raw_funcs, 1, rounds, n / 4, 0);
	return 0;
}
