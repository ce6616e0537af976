/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/logs.h"

#include <errno.h>
#include <stdatomic.h>

#include "glib/capabilities.h"
#include "glib/log_handlers.h"
#include "glib/real.h"
#include "loop/adapter.h"

struct d9__glib_logging d9__glib_logging;

#define ENTRY(type, name, params)                                                                  \
	D9__GOT_HOOK(name, d9__hook_##name, &d9__glib_logging.name, D9__GOT_IN_OTHERS),

static const struct d9__got_hook hooks[] = { D9__GLIB_LOGGING(ENTRY) };

static struct d9__got_table table = {
	.library = "glib",
	.images = &d9__glib_images,
	.hooks = hooks,
	.n_hooks = sizeof(hooks) / sizeof(hooks[0]),
	.reach = D9__GOT_ANY,
	.skip = d9__glib_skipped,
};

static _Atomic(bool) taken;

#define RESOLVE(type, name, params)                                                                \
	*(void **)&d9__glib_logging.name = d9__images_resolve(&d9__glib_images, #name);
#define IS_THERE(type, name, params) &&d9__glib_logging.name

/* Before anything is patched: a hook may run at once. */
static bool resolve(void)
{
	D9__GLIB_LOGGING(RESOLVE)
	*(void **)&d9__glib_logging.g_log_default_handler =
		d9__images_resolve(&d9__glib_images, "g_log_default_handler");
	return d9__glib_logging.g_log_default_handler D9__GLIB_LOGGING(IS_THERE);
}

static void take(void)
{
	if (!resolve() || d9__got_install(&table))
		d9__glib_capability_degrade("log", "off", "GLib's logging could not be patched");
	else if (!d9__glib_log_take_default())
		d9__glib_capability_degrade("log", "partial",
				 "a default log handler older than the recording was left alone");
	else
		d9__capability_set(&d9__glib_capabilities, "log", "all");
}

void d9__glib_logs_look(void)
{
	int saved = errno;

	if (!atomic_load_explicit(&taken, memory_order_relaxed) && d9__logs_bridged() &&
	    !atomic_exchange_explicit(&taken, true, memory_order_relaxed))
		take();
	errno = saved;
}
