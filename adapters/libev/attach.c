/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "libev/attach.h"
#include "libev/capabilities.h"
#include "libev/layout.h"
#include "libev/logs.h"
#include "libev/records.h"
#include "libev/runs.h"
#include "libev/static.h"
#include "libev/thread.h"
#include "loop/adapter.h"

#define RECENT_LOOPS 64

/* `dial9 record`: attach every loop that a hooked constructor returns. */
static _Atomic(bool) record_all;

/* Loops that hooked constructors returned lately: these are libev's for certain. */
static _Atomic(struct ev_loop *) recent[RECENT_LOOPS];
static _Atomic(unsigned) next_recent;

/* 0, or as d9_ev_loop_attach(); nothing touched then. */
static int prepare(bool early)
{
	int err;

	if (d9__libev_is_static()) {
		d9__libev_layout_calibrate(early);
		return 0;
	}
	err = d9__got_install(&d9__libev_table);
	if (err && err != -EPERM)
		return err;
	err = d9__got_resolve(&d9__libev_table);
	if (!err)
		err = d9__libev_resolve();
	if (!err)
		d9__libev_layout_calibrate(early);
	if (!err)
		d9__libev_logs_look();
	return err;
}

/*
 * Were we there before the program's own code, which may bring an allocator?  Then the program's scope
 * knows us; a library that it has loaded since it does not know, unless by RTLD_GLOBAL.
 */
static bool came_first(void)
{
#if D9__LIBEV_ARCHIVE
	return true;
#else
	void *program = dlopen(NULL, RTLD_LAZY);
	bool knows_us = program && dlsym(program, "d9_ev_loop_attach") == (void *)d9_ev_loop_attach;

	if (program)
		dlclose(program);
	return knows_us;
#endif
}

/*
 * Loops that are made before the first attach must take our drain, so patching cannot wait for it.
 * Without libev in the process this costs a walk over the modules.
 */
static __attribute__((constructor)) void install(void)
{
	int saved = errno;

	d9__libev_records_init();
	prepare(came_first());
	errno = saved;
}

static bool was_made(const struct ev_loop *loop)
{
	for (unsigned i = 0; i < RECENT_LOOPS; i++) {
		if (atomic_load_explicit(&recent[i], memory_order_relaxed) == loop)
			return true;
	}
	return false;
}

/* ---- one loop ---- */

static bool slot_is_ours(d9__libev_loop_fn slot)
{
	return slot == d9__libev_run_release || slot == d9__libev_run_acquire ||
	       slot == d9__hook_ev_invoke_pending;
}

/* What the program set before we came is called behind ours. */
static void chain(struct ev_loop *loop, struct d9__libev_record *record)
{
	const struct d9__libev_layout *layout = &d9__libev_layout;
	d9__libev_loop_fn release = d9__libev_slot(loop, layout->release);
	d9__libev_loop_fn acquire = d9__libev_slot(loop, layout->acquire);

	if (!slot_is_ours(release))
		record->release = release;
	if (!slot_is_ours(acquire))
		record->acquire = acquire;
	/* A program's own function drains by ev_invoke_pending(), which is ours by then. */
	if (d9__libev_slot(loop, layout->invoke) == d9__libev.ev_invoke_pending)
		d9__libev.ev_set_invoke_pending_cb(loop, d9__hook_ev_invoke_pending);
}

static void take_over(struct ev_loop *loop, struct d9__libev_record *record, bool made)
{
	record->batch = !d9__libev_layout.known;
	if (d9__libev_layout.slots && d9__libev_layout.known)
		chain(loop, record);
	else if (!made)
		d9__libev_capability_degrade("park", "off", "callbacks of a loop in use cannot be kept");
	if (made || d9__libev_layout.known)
		d9__libev.ev_set_loop_release_cb(loop, d9__libev_run_release, d9__libev_run_acquire);
}

static void note_refusal(void)
{
	if (!atomic_load_explicit(&d9__libev_table.counts.refused, memory_order_relaxed))
		return;
	d9__libev_capability_degrade("wake", "off", "the kernel refused to make a page writable");
	d9__libev_capability_degrade("spawn", "off", "the kernel refused to make a page writable");
}

static const char *backend_name(unsigned backend)
{
	static const char *const names[] = { "select",  "poll",    "epoll",	 "kqueue",
					     "devpoll", "port",	   "linuxaio", "io_uring" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (backend == 1u << i)
			return names[i];
	}
	return "unknown";
}

static int attach(struct ev_loop *loop, const char *name, bool made)
{
	struct d9__libev_record *record;
	bool is_new;
	int err = d9__sandbox_is_shut() ? -EPERM : prepare(false);

	if (err) {
		d9__libev_capability_refuse(err, atomic_load_explicit(&record_all, memory_order_relaxed));
		return err;
	}
	/* Without a layout nothing tells a loop from other memory. */
	if (d9__libev_layout.known ? !d9__libev_layout_is_loop(loop) : !made)
		return -ENOTSUP;
	err = d9__libev_record_add(loop, name, &record, &is_new);
	if (err || !is_new)
		return err;
	take_over(loop, record, made);
	d9__libev_capability_describe();
	note_refusal();
	d9_library_describe("libev", "backend", backend_name(d9__libev.ev_backend(loop)));
	d9__capabilities_publish(&d9__libev_capabilities);
	d9__blocking_start();
	return 0;
}

int d9_ev_loop_attach_named(struct ev_loop *loop, const char *name)
{
	int saved = errno, err;

	if (!loop)
		return -EINVAL;
	err = attach(loop, name, was_made(loop));
	errno = saved;
	return err;
}

int d9_ev_loop_attach(struct ev_loop *loop)
{
	return d9_ev_loop_attach_named(loop, NULL);
}

int d9_ev_loop_capabilities(char *out, size_t size)
{
	return (int)d9__capabilities_text(&d9__libev_capabilities, out, size);
}

/* ---- made and destroyed ---- */

static void made_by_hook(struct ev_loop *loop)
{
	int saved = errno;

	if (!was_made(loop)) {
		unsigned i = atomic_fetch_add_explicit(&next_recent, 1, memory_order_relaxed);

		atomic_store_explicit(&recent[i % RECENT_LOOPS], loop, memory_order_relaxed);
	}
	if (atomic_load_explicit(&record_all, memory_order_relaxed))
		d9__capability_loop(&d9__libev_capabilities, attach(loop, NULL, true));
	errno = saved;
}

static void forget_destroyed(struct ev_loop *loop)
{
	for (unsigned i = 0; i < RECENT_LOOPS; i++) {
		struct ev_loop *expected = loop;

		atomic_compare_exchange_strong_explicit(&recent[i], &expected, NULL, memory_order_relaxed,
							memory_order_relaxed);
	}
}

struct ev_loop *d9__libev_default_loop(unsigned flags)
{
	struct ev_loop *loop = d9__libev.ev_default_loop(flags);

	if (loop && !d9__libev_thread()->calibrating)
		made_by_hook(loop);
	return loop;
}

struct ev_loop *d9__libev_loop_new(unsigned flags)
{
	struct ev_loop *loop = d9__libev.ev_loop_new(flags);

	if (loop && !d9__libev_thread()->calibrating)
		made_by_hook(loop);
	return loop;
}

struct ev_loop *d9__hook_ev_default_loop(unsigned flags)
{
	return d9__libev_default_loop(flags);
}

struct ev_loop *d9__hook_ev_loop_new(unsigned flags)
{
	return d9__libev_loop_new(flags);
}

/* Cleanup watchers still run. */
void d9__hook_ev_loop_destroy(struct ev_loop *loop)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record =
		!loop || thread->calibrating ? NULL : d9__libev_record_of(thread, loop);

	forget_destroyed(loop);
	if (record)
		record->dying = true;
	d9__libev.ev_loop_destroy(loop);
	if (!record)
		return;
	if (thread->now.record == record)
		thread->now.record = NULL;
	d9__libev_record_retire(record);
}

/* ---- for the preload library ---- */

void d9__libev_record_all(void)
{
	atomic_store_explicit(&record_all, true, memory_order_relaxed);
	for (unsigned i = 0; i < RECENT_LOOPS; i++) {
		struct ev_loop *loop = atomic_load_explicit(&recent[i], memory_order_relaxed);

		if (loop)
			d9__capability_loop(&d9__libev_capabilities, attach(loop, NULL, true));
	}
}

bool d9__libev_refresh(void)
{
	if (!atomic_load_explicit(&d9__libev_table.installed, memory_order_acquire))
		return prepare(false) == 0;
	d9__got_rescan();
	return true;
}

void d9__libev_forbid(void)
{
	if (d9__libev_refresh())
		d9__libev_capability_refuse(-EACCES, atomic_load_explicit(&record_all, memory_order_relaxed));
}

bool d9__libev_owns(const void *address)
{
	return d9__in_libev(address) || d9__in_our_image(address);
}
