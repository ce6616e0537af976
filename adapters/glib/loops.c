/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts are made, and loops run. */
#include "config.h"

#include "glib/loops.h"

#include <dial9/loop.h>

#include "glib/attach.h"
#include "glib/contexts.h"
#include "glib/dispatch.h"
#include "glib/thread.h"
#include "hook/got.h"
#include "loop/adapter.h"

/* ---- constructors ---- */

static GMainContext *note_new(struct d9__glib_thread *thread, GMainContext *context)
{
	if (context && !thread->calibrating &&
	    atomic_load_explicit(&d9__glib_all, memory_order_relaxed))
		d9__glib_context_register(context, NULL, thread->eventfd, NULL);
	return context;
}

GMainContext *d9__hook_g_main_context_new(void)
{
	struct d9__glib_thread *thread = d9__glib_thread();

	thread->eventfd = -1;
	return note_new(thread, d9__glib.g_main_context_new());
}

GMainContext *d9__hook_g_main_context_new_with_flags(guint flags)
{
	struct d9__glib_thread *thread = d9__glib_thread();

	thread->eventfd = -1;
	return note_new(thread, d9__glib.g_main_context_new_with_flags(flags));
}

GMainContext *d9__hook_g_main_context_default(void)
{
	GMainContext *context = d9__glib.g_main_context_default();

	d9__glib_context_note_default(context);
	return context;
}

GMainLoop *d9__hook_g_main_loop_new(GMainContext *context, gboolean running)
{
	GMainLoop *loop = d9__glib.g_main_loop_new(context, running);

	if (!context && loop)
		d9__glib_context_note_default(d9__glib.g_main_loop_get_context(loop));
	return loop;
}

/* ---- runs ---- */

struct run {
	struct d9_loop_run run;
	GSource *saved_chain;
	bool told, round;
};

/*
 * Inside a callback the trace shows that callback's poll in pieces: where the inner loop ends has
 * to be told.  Where a thread begins is worth telling too; of its every iteration it is enough
 * to know where the program works in between.
 */
static void enter(struct run *run, GMainContext *context, bool always)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__glib_context *record = d9__glib_context(thread, context);

	/* GLib has no lock here. */
	if (__builtin_expect(!thread->blocking_started, 0) && !thread->calibrating) {
		thread->blocking_started = true;
		d9__blocking_start();
	}
	run->saved_chain = thread->chain;
	thread->chain = NULL;
	run->told = record && (always || d9_poll_task() != 0);
	run->round = record && !run->told && !thread->timing;
	if (run->told)
		d9_loop_enter(record->loop, &run->run);
	else if (run->round)
		d9__loop_round_begin();
}

static void leave(struct run *run)
{
	if (run->told)
		d9_loop_leave(&run->run);
	else if (run->round)
		d9__loop_round_end();
	d9__glib_thread()->chain = run->saved_chain;
}

void d9__hook_g_main_loop_run(GMainLoop *loop)
{
	__attribute__((cleanup(leave))) struct run run;

	d9__got_rescan();
	enter(&run, loop ? d9__glib.g_main_loop_get_context(loop) : NULL, true);
	d9__glib.g_main_loop_run(loop);
}

static GMainContext *which(GMainContext *context)
{
	GMainContext *known;

	if (context)
		return context;
	known = atomic_load_explicit(&d9__glib_default, memory_order_relaxed);
	if (known)
		return known;
	/* The real call is about to make it. */
	d9__glib_context_note_default(d9__glib.g_main_context_default());
	return atomic_load_explicit(&d9__glib_default, memory_order_relaxed);
}

gboolean d9__hook_g_main_context_iteration(GMainContext *context, gboolean may_block)
{
	__attribute__((cleanup(leave))) struct run run;

	enter(&run, which(context), false);
	return d9__glib.g_main_context_iteration(context, may_block);
}

/* GLib looks whether anything is ready; a program that hears no goes on with what is its own. */
gboolean d9__hook_g_main_context_pending(GMainContext *context)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	bool round = d9__glib_context(thread, which(context)) && !thread->timing;
	gboolean pending;

	if (round)
		d9__loop_round_begin();
	pending = d9__glib.g_main_context_pending(context);
	if (round)
		d9__loop_round_end();
	return pending;
}

/* A host that waits by itself begins its round, which ends with check() or dispatch(). */
gboolean d9__hook_g_main_context_prepare(GMainContext *context, gint *priority)
{
	d9__loop_round_begin();
	return d9__glib.g_main_context_prepare(context, priority);
}

void d9__hook_g_main_context_dispatch(GMainContext *context)
{
	__attribute__((cleanup(leave))) struct run run;

	enter(&run, which(context), false);
	d9__glib.g_main_context_dispatch(context);
}
