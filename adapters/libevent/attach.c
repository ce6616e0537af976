/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include <errno.h>
#include <stdatomic.h>

#include "block/blocking.h"
#include "libevent/attach.h"
#include "libevent/bases.h"
#include "libevent/fields.h"
#include "libevent/logs.h"
#include "libevent/pools.h"
#include "libevent/thread.h"
#include "record/sandbox.h"

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
		d9__libevent_refuse(err, atomic_load_explicit(&record_all, memory_order_relaxed));
	return err;
}

static int attach(struct event_base *base, const char *name, bool constructed)
{
	int err = d9__sandbox_is_shut() ? -EPERM : prepare();

	if (err)
		return err;
	d9__libevent_logs_look();
	d9__libevent_calibrate(base);
	if (!d9__libevent_is_wrapped())
		d9__libevent_degrade_poll("linked statically without the --wrap flags");
	err = d9__libevent_base_wrap(base, name, constructed);
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

/* ---- for hooks and for the preload library ---- */

void d9__libevent_constructed(struct event_base *base)
{
	int saved = errno;
	unsigned i = atomic_fetch_add_explicit(&next_recent, 1, memory_order_relaxed);

	atomic_store_explicit(&recent[i % RECENT_BASES], base, memory_order_relaxed);
	if (atomic_load_explicit(&record_all, memory_order_relaxed))
		d9__capability_loop(&d9__libevent_capabilities, attach(base, NULL, true));
	errno = saved;
}

void d9__libevent_freed(struct event_base *base)
{
	for (unsigned i = 0; i < RECENT_BASES; i++) {
		struct event_base *expected = base;

		atomic_compare_exchange_strong_explicit(&recent[i], &expected, NULL, memory_order_relaxed,
							memory_order_relaxed);
	}
}

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
		d9__libevent_refuse(-EACCES, atomic_load_explicit(&record_all, memory_order_relaxed));
}

bool d9__libevent_owns(const void *address)
{
	return d9__in_libevent(address) || d9__libevent_is_ours(address);
}
