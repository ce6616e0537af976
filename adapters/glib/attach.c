/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/attach.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "glib/calibrate.h"
#include "glib/capabilities.h"
#include "glib/contexts.h"
#include "glib/dispatch.h"
#include "glib/logs.h"
#include "glib/real.h"
#include "glib/scan.h"
#include "glib/tables.h"
#include "glib/waits.h"
#include "loop/adapter.h"

#define OLDEST 2056000u /* 2.56.0 */

static struct d9__module_range own;

bool d9__glib_is_ours(const void *address)
{
	return (uintptr_t)address - own.low < own.high - own.low;
}

/* ---- once per process ---- */

/* Protects the initialisation; never taken by a hook. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(bool) ready;
static int refused; /* for good */
static const char *reason; /* for -ENOTSUP; constant once that is set */

static unsigned version_of(void)
{
	const guint *major = d9__images_resolve(&d9__glib_images, "glib_major_version");
	const guint *minor = d9__images_resolve(&d9__glib_images, "glib_minor_version");

	return major && minor ? *major * 1000000 + *minor * 1000 : 0;
}

static int patch_and_test_locked(void)
{
	int err = d9__glib_calibrate_check_layout();

	/* Once hooks are in place other threads' calls may reach those tables first. */
	d9__glib_table_find_exported();
	reason = "its sources are not laid out as declared";
	if (!err) {
		reason = "its dispatches do not reach the hooks";
		err = d9__got_install(&d9__glib_table);
	}
	if (err)
		return err;
	err = d9__glib_calibrate_self_test();
	if (err)
		d9__got_restore(&d9__glib_table);
	return err;
}

static int initialise_locked(void)
{
	int err;

	if (d9__images_refresh(&d9__glib_images) == 0)
		return -ENOENT;
	reason = "it is older than 2.56";
	if (version_of() < OLDEST)
		return -ENOTSUP;
	reason = "functions that everything needs are missing in it";
	if (!d9__glib_resolve() || !d9__module_range_of((void *)d9__glib_refresh, &own))
		return -ENOTSUP;
	d9__glib_contexts_init();
	d9__glib_waits_init();
	d9__glib_thread()->calibrating = true;
	err = patch_and_test_locked();
	d9__glib_thread()->calibrating = false;
	return err;
}

/* 0 once GLib is patched.  A GLib that is not mapped may come later. */
static int initialise(void)
{
	int saved = errno, err;
	bool found_out = false;

	/* acquire: pairs with the release below */
	if (atomic_load_explicit(&ready, memory_order_acquire))
		return 0;
	if (d9__sandbox_is_shut())
		return -EPERM;
	pthread_mutex_lock(&lock);
	err = refused;
	if (!err && !atomic_load_explicit(&ready, memory_order_relaxed)) {
		err = initialise_locked();
		found_out = err && err != -ENOENT;
		if (found_out)
			refused = err;
		if (!err)
			atomic_store_explicit(&ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	if (found_out) {
		d9__glib_capability_set_version();
		d9__capability_refuse(&d9__glib_capabilities, err, reason,
				      atomic_load_explicit(&d9__glib_all, memory_order_relaxed));
	}
	if (!err)
		d9__glib_logs_look();
	errno = saved;
	return err;
}

/* ---- attach ---- */

int d9_g_main_context_attach_named(GMainContext *context, const char *name)
{
	struct d9__glib_context *record;
	int saved = errno, err = initialise();

	if (!err) {
		GMainContext *main_context = d9__glib.g_main_context_default();

		if (!context)
			context = main_context;
		d9__glib_context_note_default(main_context);
		err = d9__glib_context_register(context, name, -1, &record);
	}
	if (!err) {
		d9__glib_wait_adopt_poll(record, context);
		d9__glib_scan(record, context);
		d9__glib_logs_look();
		d9__capabilities_publish(&d9__glib_capabilities);
		d9__blocking_start();
	}
	errno = saved;
	return err;
}

int d9_g_main_context_attach(GMainContext *context)
{
	return d9_g_main_context_attach_named(context, NULL);
}

int d9_g_main_context_capabilities(char *out, size_t size)
{
	return (int)d9__capabilities_text(&d9__glib_capabilities, out, size);
}

/* ---- for the preload library ---- */

void d9__glib_record_all(void)
{
	atomic_store_explicit(&d9__glib_all, true, memory_order_relaxed);
	atomic_store_explicit(&d9__glib_waiting, true, memory_order_relaxed);
	initialise();
}

bool d9__glib_refresh(void)
{
	if (initialise())
		return false;
	d9__got_rescan();
	return true;
}

void d9__glib_forbid(void)
{
	if (d9__glib_refresh())
		d9__capability_refuse(&d9__glib_capabilities, -EACCES, reason,
				      atomic_load_explicit(&d9__glib_all, memory_order_relaxed));
}

bool d9__glib_owns(const void *address)
{
	return d9__images_contain(&d9__glib_images, address) || d9__glib_is_ours(address);
}
