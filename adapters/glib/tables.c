/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/tables.h"

#include <dlfcn.h>
#include <stddef.h>

#include <dial9/loop.h>

#include "glib/capabilities.h"
#include "glib/dispatch.h"
#include "glib/phases.h"
#include "hook/stubs.h"
#include "hook/word.h"

_Atomic(uint32_t) d9__glib_tables, d9__glib_stubs_full, d9__glib_unpatchable;

/* A stub's word. */
#define WORD_DESCRIPTORS 1u

/* Tables by name, with what their sources are. */
static const struct exported {
	const char *name;
	uint16_t kind;
	uint16_t ready;
} exported[] = {
	{ "g_timeout_funcs", D9_TASK_TIMER, D9__READY_TIMER },
	{ "g_idle_funcs", D9_TASK_IDLE, D9__READY_IDLE },
	{ "g_child_watch_funcs", D9_TASK_CHILD, D9__READY_SIGNAL },
	{ "g_unix_signal_funcs", D9_TASK_SIGNAL, D9__READY_SIGNAL },
	{ "g_io_watch_funcs", D9_TASK_IO, D9__READY_FD },
	{ "g_unix_fd_source_funcs", D9_TASK_IO, D9__READY_FD },
};
#define N_EXPORTED (sizeof(exported) / sizeof(exported[0]))

/* Their dispatch functions: what a stub's kind counts from 1 on.  Known before anything is hooked. */
static _Atomic(void *) exported_dispatch[N_EXPORTED];

/* Both addresses of each: a program may own a copy, which libglib then uses. */
static GSourceFuncs *patched[2 * N_EXPORTED];
static unsigned n_patched;

/* ---- kinds ---- */

static uint32_t number_of(const void *dispatch)
{
	for (uint32_t i = 0; i < N_EXPORTED; i++) {
		if (atomic_load_explicit(&exported_dispatch[i], memory_order_relaxed) == dispatch)
			return i + 1;
	}
	return 0;
}

enum d9__glib_ready d9__glib_table_ready_of(struct d9__stub *stub)
{
	if (stub->kind)
		return exported[stub->kind - 1].ready;
	return atomic_load_explicit(&stub->word, memory_order_relaxed) & WORD_DESCRIPTORS
		       ? D9__READY_FD
		       : D9__READY_UNKNOWN;
}

uint16_t d9__glib_table_kind_of(struct d9__stub *stub)
{
	return stub->kind ? exported[stub->kind - 1].kind : D9_TASK_CUSTOM;
}

/* ---- tables ---- */

static void *word_at(void *member)
{
	return __atomic_load_n((void **)member, __ATOMIC_RELAXED);
}

struct d9__stub *d9__glib_table_stub_of(const GSourceFuncs *funcs)
{
	return d9__stubs_find(&d9__glib_dispatches, word_at((void *)&funcs->dispatch));
}

void *d9__glib_table_dispatch_of(const GSourceFuncs *funcs)
{
	return d9__stubs_unwrap(&d9__glib_dispatches, word_at((void *)&funcs->dispatch));
}

void d9__glib_table_note_descriptors(const GSourceFuncs *funcs)
{
	struct d9__stub *stub = d9__glib_table_stub_of(funcs);

	if (stub)
		atomic_store_explicit(&stub->word, WORD_DESCRIPTORS, memory_order_relaxed);
}

enum patched { PATCHED, PATCHED_BEFORE, NO_STUB, NOT_WRITABLE };

static enum patched patch_member(struct d9__stubs *pool, void *member, uint32_t kind, bool locked)
{
	void *function = word_at(member), *stub;

	if (!function || d9__stubs_find(pool, function))
		return PATCHED_BEFORE;
	stub = d9__stubs_wrap(pool, function, NULL, kind);
	if (stub == function)
		return NO_STUB;
	return d9__word_store(member, (uintptr_t)stub, !locked) ? NOT_WRITABLE : PATCHED;
}

/* GLib's own function stays as it is. */
static void patch_unless_of_glib(struct d9__stubs *pool, void *member, bool locked)
{
	if (!d9__images_contain(&d9__glib_images, word_at(member)))
		patch_member(pool, member, 0, locked);
}

/* Tables that cannot be written to: to find that out takes some system calls, and is not done again. */
static _Atomic(const GSourceFuncs *) given_up[64];

#define GIVEN_UP_MAX (sizeof(given_up) / sizeof(given_up[0]))

static bool is_given_up(const GSourceFuncs *funcs)
{
	const GSourceFuncs *other;

	for (size_t i = 0; i < GIVEN_UP_MAX; i++) {
		other = atomic_load_explicit(&given_up[i], memory_order_relaxed);
		if (!other || other == funcs)
			return other != NULL;
	}
	return false;
}

static void give_up(const GSourceFuncs *funcs)
{
	const GSourceFuncs *none = NULL;

	for (size_t i = 0; i < GIVEN_UP_MAX; i++, none = NULL) {
		if (atomic_compare_exchange_strong_explicit(&given_up[i], &none, funcs,
							    memory_order_relaxed,
							    memory_order_relaxed))
			return;
	}
}

static void tell_unseen(enum patched how)
{
	bool full = how == NO_STUB;

	atomic_fetch_add_explicit(full ? &d9__glib_stubs_full : &d9__glib_unpatchable, 1,
				  memory_order_relaxed);
	d9__glib_capability_degrade("poll", "partial",
			 full ? "more distinct functions than stubs"
			      : "a table of functions cannot be written to");
}

void d9__glib_table_patch(const GSourceFuncs *funcs, bool locked)
{
	void *dispatch = word_at((void *)&funcs->dispatch);
	enum patched how;

	if (!dispatch || d9__stubs_find(&d9__glib_dispatches, dispatch) || is_given_up(funcs))
		return;
	how = patch_member(&d9__glib_dispatches, (void *)&funcs->dispatch, number_of(dispatch),
			   locked);
	/* Under a lock a protected page is left to the next call that comes by. */
	if (how == NO_STUB || (how == NOT_WRITABLE && !locked))
		tell_unseen(how);
	if (how == NOT_WRITABLE && !locked)
		give_up(funcs);
	if (how != PATCHED)
		return;
	if (patch_member(&d9__glib_finalizers, (void *)&funcs->finalize, 0, locked) == NO_STUB)
		d9__glib_capability_degrade("task_end", "destroy", "more distinct finalizers than stubs");
	patch_unless_of_glib(&d9__glib_prepares, (void *)&funcs->prepare, locked);
	patch_unless_of_glib(&d9__glib_checks, (void *)&funcs->check, locked);
	atomic_fetch_add_explicit(&d9__glib_tables, 1, memory_order_relaxed);
}

static GSourceFuncs *table_in_scope(unsigned i)
{
	return dlsym(RTLD_DEFAULT, exported[i].name);
}

static GSourceFuncs *own_table(unsigned i)
{
	return d9__images_resolve(&d9__glib_images, exported[i].name);
}

void d9__glib_table_find_exported(void)
{
	for (unsigned i = 0; i < N_EXPORTED; i++) {
		GSourceFuncs *funcs = own_table(i);

		if (!funcs)
			funcs = table_in_scope(i);
		if (funcs)
			atomic_store_explicit(&exported_dispatch[i], d9__glib_table_dispatch_of(funcs),
					      memory_order_relaxed);
	}
}

static bool patch_named(GSourceFuncs *funcs)
{
	d9__glib_table_patch(funcs, false);
	if (!d9__glib_table_stub_of(funcs))
		return false;
	patched[n_patched++] = funcs;
	return true;
}

bool d9__glib_table_patch_exported(void)
{
	bool all = true;

	for (unsigned i = 0; i < N_EXPORTED; i++) {
		GSourceFuncs *own = own_table(i), *in_scope = table_in_scope(i);

		if (own)
			all = patch_named(own) && all;
		if (in_scope && in_scope != own)
			all = patch_named(in_scope) && all;
	}
	return all;
}

void d9__glib_table_unpatch(void)
{
	while (n_patched > 0) {
		GSourceFuncs *funcs = patched[--n_patched];

		d9__word_store((uintptr_t *)(void *)&funcs->dispatch,
			       (uintptr_t)d9__glib_table_dispatch_of(funcs), true);
		d9__word_store((uintptr_t *)(void *)&funcs->finalize,
			       (uintptr_t)d9__stubs_unwrap(&d9__glib_finalizers,
							   word_at((void *)&funcs->finalize)),
			       true);
	}
}

/* ---- late discovery ---- */

typedef void (*get_fn)(gpointer data, GSource *source, GSourceFunc *callback, gpointer *arg);

/* Stored before GLib can call ours. */
static _Atomic(get_fn) real_get;

static inline void get_really(gpointer data, GSource *source, GSourceFunc *callback, gpointer *arg)
{
	atomic_load_explicit(&real_get, memory_order_relaxed)(data, source, callback, arg);
}

static __attribute__((noinline)) void patch_and_get(gpointer data, GSource *source,
						    GSourceFunc *callback, gpointer *arg)
{
	d9__glib_table_patch(source->source_funcs, true);
	get_really(data, source, callback, arg);
}

/* Runs with the context's lock, before every dispatch that has a callback. */
static void hook_get(gpointer data, GSource *source, GSourceFunc *callback, gpointer *arg)
{
	if (__builtin_expect(d9__stubs_hold(&d9__glib_dispatches,
					    word_at((void *)&source->source_funcs->dispatch)),
			     1))
		get_really(data, source, callback, arg);
	else
		patch_and_get(data, source, callback, arg);
}

void d9__glib_table_patch_get(GSource *source)
{
	GSourceCallbackFuncs *funcs = source->callback_funcs;

	if (!funcs || funcs->get == hook_get)
		return;
	atomic_store_explicit(&real_get, funcs->get, memory_order_relaxed);
	d9__word_store((uintptr_t *)(void *)&funcs->get, (uintptr_t)hook_get, true);
}
