/* SPDX-License-Identifier: Apache-2.0 */
/* Exports that make contexts and sources, for a GLib that is loaded later. */
#include "config.h"

#include <stdbool.h>
#include <stddef.h>

#include "glib/attach.h"
#include "glib/loops.h"
#include "glib/sources.h"
#include "hook/first_call.h"
#include "preload/glib.h"
#include "preload/start.h"

/* One export: the function that the call means, and the adapter's hook by default. */
#define EXPORT(type, name, params, ...)                                                            \
	static struct d9__first_call on_##name =                                                      \
		D9__TRIGGER(#name, d9__glib_refresh, d9__glib_owns);                               \
                                                                                                   \
	type name params                                                                           \
	{                                                                                          \
		bool nobody;                                                                       \
		type(*target) params =                                                             \
			d9__first_call_target(&on_##name, __builtin_return_address(0), &nobody); \
                                                                                                   \
		if (nobody)                                                                        \
			return 0;                                                                  \
		return target ? target(__VA_ARGS__) : d9__hook_##name(__VA_ARGS__);                \
	}

EXPORT(struct _GMainContext *, g_main_context_default, (void))
EXPORT(struct _GMainContext *, g_main_context_new, (void))
EXPORT(struct _GMainContext *, g_main_context_new_with_flags, (unsigned flags), flags)
EXPORT(struct _GMainLoop *, g_main_loop_new, (struct _GMainContext *context, int is_running),
       context, is_running)
EXPORT(struct _GSource *, g_source_new, (struct _GSourceFuncs *funcs, unsigned size), funcs, size)
EXPORT(unsigned, g_source_attach, (struct _GSource *source, struct _GMainContext *context), source,
       context)

int g_module_symbol(struct _GModule *module, const char *name, void **symbol)
{
	static struct d9__first_call trigger =
		D9__TRIGGER("g_module_symbol", d9__glib_refresh, d9__glib_owns);
	int (*target)(struct _GModule *, const char *, void **) = NULL;
	bool nobody;

	/* libsoup asks in its constructor: too early for a self-test. */
	if (atomic_load_explicit(&d9__preload_started, memory_order_relaxed))
		target = d9__first_call_target(&trigger, __builtin_return_address(0), &nobody);
	/* There is no hook of it: what the call means otherwise is the next one. */
	if (!target)
		target = d9__module_next_definition(&trigger, trigger.name);
	return target ? target(module, name, symbol) : 0;
}
