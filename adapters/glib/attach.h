/* SPDX-License-Identifier: Apache-2.0 */
/* What the preload library needs of the GLib adapter, and what its parts need of each other. */

#pragma once

#include <stdbool.h>

#include <dial9/glib.h>

struct _GMainContext;
struct _GMainLoop;
struct _GSource;
struct _GSourceFuncs;

/*
 * Linked, the library does nothing before the first attach: a daemon that closes all descriptors
 * at its start would close a context's.
 */

/* From now on every context is recorded; patches GLib if it is mapped. */
D9_API void d9__glib_record_all(void);

/*
 * Patch what was mapped since the last look; cheap if nothing was.  Whether libglib is mapped and
 * can be recorded.  Not under a lock of GLib.
 */
D9_API bool d9__glib_refresh(void);

/* The program is about to forbid itself system calls: nothing of a GLib that is mapped will be recorded. */
D9_API void d9__glib_forbid(void);

/* Whether |address| is code of libglib or of this adapter. */
D9_API bool d9__glib_owns(const void *address);

/* The hooks, for calls that came by a name that the preload library exports. */
D9_API struct _GMainContext *d9__hook_g_main_context_default(void);
D9_API struct _GMainContext *d9__hook_g_main_context_new(void);
D9_API struct _GMainContext *d9__hook_g_main_context_new_with_flags(unsigned flags);
D9_API struct _GMainLoop *d9__hook_g_main_loop_new(struct _GMainContext *context, int running);
D9_API struct _GSource *d9__hook_g_source_new(struct _GSourceFuncs *funcs, unsigned size);
D9_API unsigned d9__hook_g_source_attach(struct _GSource *source, struct _GMainContext *context);

/* Is |address| code of ours? */
bool d9__glib_is_ours(const void *address);

/* GLib's table of idle sources, as the program sees it. */
extern struct _GSourceFuncs *d9__glib_idle_funcs;
