/* SPDX-License-Identifier: Apache-2.0 */
/* The names that the preload library exports, to learn of a GLib that is loaded later. */

#pragma once

#include <dial9/export.h>

/* See preload/libevent.h on adding to these. */

struct _GMainContext;
struct _GMainLoop;
struct _GModule;
struct _GSource;
struct _GSourceFuncs;

D9_API struct _GMainContext *g_main_context_default(void);
D9_API struct _GMainContext *g_main_context_new(void);
D9_API struct _GMainContext *g_main_context_new_with_flags(unsigned flags);
D9_API struct _GMainLoop *g_main_loop_new(struct _GMainContext *context, int is_running);
D9_API struct _GSource *g_source_new(struct _GSourceFuncs *funcs, unsigned size);
D9_API unsigned g_source_attach(struct _GSource *source, struct _GMainContext *context);

/*
 * Makes no loop, but through it programs in Python, Lua, ... get at all of GLib that they call, whose
 * calls of the above are not seen: GObject introspection looks functions up by their names.
 */
D9_API int g_module_symbol(struct _GModule *module, const char *name, void **symbol);
