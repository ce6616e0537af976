/* SPDX-License-Identifier: Apache-2.0 */
/* Record what GLib main contexts do. */

#ifndef DIAL9_GLIB_H
#define DIAL9_GLIB_H

#include <stddef.h>

#include <dial9/error.h>
#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One call, before or while the loop runs:
 *
 *	d9_g_main_context_attach(NULL);
 *	g_main_loop_run(loop);
 *
 * Every dispatch of a source of that context is then one poll of the trace, every wait one park.
 * No header of GLib is needed here, nothing is linked against it, and any GLib from 2.56 on that
 * is a shared library will do.  Link before or after -lglib-2.0.
 *
 * Programs that were not built for it are recorded by `dial9 record -- CMD`.
 */

struct _GMainContext; /* GMainContext */

/**
 * Record |context|, with the sources that it has already.
 *
 * It behaves as before: same sources, same order, same arguments, same poll function as far as
 * the program can see.  Starts the process's recorder from the DIAL9_* variables if none runs.
 * Functions that could not be hooked are named in the trace, under the metadata keys loop.glib.*.  Attaching
 * twice is the same as once.  One source id of |context| is used up.
 *
 * @param context  borrowed; may be freed at any time; NULL: the default context
 *
 * @return 0, also when recording is switched off; or, with nothing touched and the program
 *         running on unrecorded,
 *         -ENOENT   there is no shared libglib-2.0.so.0 in this process
 *         -ENOTSUP  this GLib is older than 2.56, or laid out like none we know
 *         -EPERM    the kernel refused to make a page writable
 *         -ENOSPC   more loops than the recorder holds
 *         -ENOMEM   out of memory
 *
 * Threads: any.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_g_main_context_attach(struct _GMainContext *context);

/**
 * d9_g_main_context_attach(), and call the lane of |context| |name|.
 *
 * @param name  copied; shared by loops of the same family; NULL: "default" for the default
 *              context, else the name of the thread that runs the loop
 *
 * @return as d9_g_main_context_attach()
 *
 * Threads: any.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_g_main_context_attach_named(struct _GMainContext *context, const char *name);

/**
 * Say in one line what is recorded of GLib in this process, for the program's own log.
 *
 * The text is that of the metadata key loop.glib.capabilities: key=value, separated by commas.
 * It is empty before the first attach.
 *
 * @param out  receives at most |size| bytes including the terminator; may be NULL if |size| is 0
 *
 * @return the length of the whole text, as snprintf()
 *
 * Threads: any.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_g_main_context_capabilities(char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_GLIB_H */
