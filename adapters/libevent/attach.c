/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>

#include "libevent/attach.h"
#include "libevent/bases.h"
#include "libevent/capabilities.h"
#include "libevent/dispatch.h"
#include "libevent/fields.h"
#include "libevent/logs.h"
#include "libevent/pools.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

#define RECENT_BASES 64

/* `dial9 record`: attach every base that a hooked constructor returns. */
static _Atomic(bool) record_all;

/* Bases that hooked constructors returned lately: these are bases for certain. */
static _Atomic(struct event_base *) recent[RECENT_BASES];
static _Atomic(unsigned) next_recent;

/*
 * Events set up before the first attach must carry stubs already, so patching cannot wait for it.
 * Without libevent in the process this costs a walk over the modules.
 */
static __attribute__((constructor)) void install(void)
{
	int saved = errno;

	d9__libevent_bases_init();
	d9__pools_init();
	if (!d9__libevent_is_static())
		d9__got_install(&d9__libevent_table);
	d9__libevent_logs_look();
	errno = saved;
}

static bool was_constructed(const struct event_base *base)
{
	for (unsigned i = 0; i < RECENT_BASES; i++) {
		if (atomic_load_explicit(&recent[i], memory_order_relaxed) == base)
			return true;
	}
	return false;
}

/* 0, or as d9_event_base_attach(), which of its reasons is then in the trace. */
static int prepare(void)
{
	int err = d9__libevent_is_static() ? 0 : d9__got_install(&d9__libevent_table);

	if (!err) {
		d9__libevent_resolve();
		if (!d9__real.event_base_get_method || !d9__real.event_base_loop || !d9__real.event_assign)
			err = -ENOTSUP;
	}
	if (err)
		d9__libevent_capability_refuse(err, atomic_load_explicit(&record_all, memory_order_relaxed));
	return err;
}

static int attach(struct event_base *base, const char *name, bool constructed)
{
	int err = d9__sandbox_is_shut() ? -EPERM : prepare();

	if (err)
		return err;
	d9__libevent_logs_look();
	d9__libevent_field_calibrate(base);
	if (!d9__libevent_is_wrapped())
		d9__libevent_capability_degrade_poll("linked statically without the --wrap flags");
	err = d9__libevent_base_wrap(base, name, constructed, d9__libevent_dispatch);
	d9__capabilities_publish(&d9__libevent_capabilities);
	d9__blocking_start();
	return err;
}

int d9_event_base_attach_named(struct event_base *base, const char *name)
{
	int saved = errno, err;

	if (!base)
		return -EINVAL;
	err = attach(base, name, was_constructed(base));
	errno = saved;
	return err;
}

int d9_event_base_attach(struct event_base *base)
{
	return d9_event_base_attach_named(base, NULL);
}

int d9_event_base_capabilities(char *out, size_t size)
{
	return (int)d9__capabilities_text(&d9__libevent_capabilities, out, size);
}

/* ---- constructors and destructors of bases ---- */

static void constructed(struct event_base *base)
{
	int saved = errno;
	unsigned i = atomic_fetch_add_explicit(&next_recent, 1, memory_order_relaxed);

	atomic_store_explicit(&recent[i % RECENT_BASES], base, memory_order_relaxed);
	if (atomic_load_explicit(&record_all, memory_order_relaxed))
		d9__capability_loop(&d9__libevent_capabilities, attach(base, NULL, true));
	errno = saved;
}

static void forget_freed(struct event_base *base)
{
	for (unsigned i = 0; i < RECENT_BASES; i++) {
		struct event_base *expected = base;

		atomic_compare_exchange_strong_explicit(&recent[i], &expected, NULL, memory_order_relaxed,
							memory_order_relaxed);
	}
}

/* The outermost constructor on this thread attaches what it returns, if all are to be recorded. */
struct construction {
	struct d9__libevent_scope scope;
	uint8_t outer_making;
	bool nested;
};

static void construction_begin(struct construction *construction, void *caller)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	d9__libevent_thread_scope_enter(&construction->scope, caller);
	construction->outer_making = d9__libevent_make(D9__MAKING_BASE);
	construction->nested = thread->constructing;
	thread->constructing = true;
}

static struct event_base *construction_end(struct construction *construction,
					   struct event_base *base)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	thread->constructing = construction->nested;
	if (base && !construction->nested && !thread->calibrating)
		constructed(base);
	d9__libevent_made(&construction->outer_making);
	d9__libevent_thread_scope_leave(&construction->scope);
	return base;
}

struct event_base *d9__libevent_base_new(void *caller)
{
	struct construction construction;

	construction_begin(&construction, caller);
	return construction_end(&construction, d9__real.event_base_new());
}

struct event_base *d9__libevent_base_new_config(const struct event_config *config, void *caller)
{
	struct construction construction;

	construction_begin(&construction, caller);
	return construction_end(&construction, d9__real.event_base_new_with_config(config));
}

struct event_base *d9__libevent_init(void *caller)
{
	struct construction construction;

	construction_begin(&construction, caller);
	return construction_end(&construction, d9__real.event_init());
}

struct event_base *d9__hook_event_base_new(void)
{
	return d9__libevent_base_new(__builtin_return_address(0));
}

struct event_base *d9__hook_event_base_new_with_config(const struct event_config *config)
{
	return d9__libevent_base_new_config(config, __builtin_return_address(0));
}

struct event_base *d9__hook_event_init(void)
{
	return d9__libevent_init(__builtin_return_address(0));
}

/* Finalizers that the destructor runs itself are no polls: no base is current meanwhile. */
static void free_base(struct event_base *base, void (*real)(struct event_base *))
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	struct d9__libevent_context saved = thread->now;
	struct d9_loop *loop = NULL;

	if (base) {
		forget_freed(base);
		loop = d9__libevent_base_unwrap(base);
	}
	if (saved.base && saved.base->base == NULL)
		saved = (struct d9__libevent_context) { 0 };
	thread->now = (struct d9__libevent_context) { .frame = saved.frame };
	real(base);
	thread->now = saved;
	d9_loop_unregister(loop);
}

void d9__hook_event_base_free(struct event_base *base)
{
	free_base(base, d9__real.event_base_free);
}

void d9__hook_event_base_free_nofinalize(struct event_base *base)
{
	free_base(base, d9__real.event_base_free_nofinalize);
}

/* ---- for the preload library ---- */

void d9__libevent_record_all(void)
{
	atomic_store_explicit(&record_all, true, memory_order_relaxed);
	for (unsigned i = 0; i < RECENT_BASES; i++) {
		struct event_base *base = atomic_load_explicit(&recent[i], memory_order_relaxed);

		if (base)
			d9__capability_loop(&d9__libevent_capabilities, attach(base, NULL, true));
	}
}

bool d9__libevent_refresh(void)
{
	if (!atomic_load_explicit(&d9__libevent_table.installed, memory_order_acquire))
		return d9__got_install(&d9__libevent_table) == 0;
	d9__got_rescan();
	return true;
}

void d9__libevent_forbid(void)
{
	if (d9__libevent_refresh())
		d9__libevent_capability_refuse(-EACCES, atomic_load_explicit(&record_all, memory_order_relaxed));
}

bool d9__libevent_owns(const void *address)
{
	return d9__in_libevent(address) || d9__libevent_base_is_ours(address);
}
