/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the GLib adapter for the preload library, and for the adapter's other files. */

#pragma once

#include <stdbool.h>

#include <dial9/glib.h>

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

/* Is |address| code of ours? */
bool d9__glib_is_ours(const void *address);

/* GLib's table of idle sources, as the program sees it. */
extern struct _GSourceFuncs *d9__glib_idle_funcs;
