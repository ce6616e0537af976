/* SPDX-License-Identifier: Apache-2.0 */
/* Record what libev loops do. */

#ifndef DIAL9_LIBEV_H
#define DIAL9_LIBEV_H

#include <stddef.h>

#include <dial9/error.h>
#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One call after the loop was made:
 *
 *	struct ev_loop *loop = EV_DEFAULT;
 *	d9_ev_loop_attach(loop);
 *
 * Every callback that runs on |loop| is then one poll of the trace, every wait of the loop one
 * park.  No header of libev is needed here.  Link -ldial9-libev before or after -lev.
 *
 * Programs that were not built for it are recorded by `dial9 record -- CMD`.
 */

struct ev_loop;

/**
 * Record |loop| of the shared library libev.so.4.
 *
 * |loop| behaves as before: same callbacks, same order, same arguments.  Its release and acquire
 * callbacks, and one that invokes pending watchers, may be set before or after.  Starts the
 * process's recorder from the DIAL9_* variables if none runs.  What could not be hooked is named in
 * the trace, under the metadata keys loop.libev.*.  Attaching twice is the same as once.
 *
 * @param loop  borrowed; may be destroyed with ev_loop_destroy() at any time
 *
 * @return 0, also when recording is switched off; or, with nothing touched and the program
 *         running on unrecorded,
 *         -EINVAL   |loop| is NULL
 *         -ENOENT   there is no libev.so.4 in this process
 *         -ENOTSUP  |loop| is not a loop of that library, or it cannot be told
 *         -ENOSPC   more loops than the recorder holds
 *         -ENOMEM   out of memory
 *
 * Threads: any that may use |loop|.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_ev_loop_attach(struct ev_loop *loop);

/**
 * d9_ev_loop_attach(), and call the lane of |loop| |name|.
 *
 * @param name  copied; shared by loops of the same family; NULL: the name of the thread that runs
 *              the loop.  Ignored if |loop| is attached already.
 *
 * @return as d9_ev_loop_attach()
 *
 * Threads: any that may use |loop|.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_ev_loop_attach_named(struct ev_loop *loop, const char *name);

/**
 * Say in one line what is recorded of libev in this process, for the program's own log.
 *
 * The text is that of the metadata key loop.libev.capabilities: key=value, separated by commas.
 * It is empty before the first attach.
 *
 * @param out  receives at most |size| bytes including the terminator; may be NULL if |size| is 0
 *
 * @return the length of the whole text, as snprintf()
 *
 * Threads: any.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_ev_loop_capabilities(char *out, size_t size);

/* With EV_API_STATIC they are known in one file only. */
#ifndef EV_API_STATIC
/**
 * Record |loop| of a libev that the program compiles into itself, by <dial9/ev-embed.h>, which
 * defines this function: neither libev.so.4 nor libdial9-libev is needed then.
 *
 * @param loop  borrowed; may be destroyed with ev_loop_destroy() at any time.  NULL with
 *              EV_MULTIPLICITY 0, where ev_default_loop() has to come first
 *
 * @return 0, also when recording is switched off; -EINVAL: |loop| is not initialised; -ENOSPC,
 *         -ENOMEM as d9_ev_loop_attach()
 *
 * Threads: the one that may use |loop|.  Not async-signal-safe.
 * Since: 0.1
 */
int d9_ev_embed_attach(struct ev_loop *loop);

/**
 * d9_ev_embed_attach(), and call the lane of |loop| |name|, as d9_ev_loop_attach_named().
 *
 * Since: 0.1
 */
int d9_ev_embed_attach_named(struct ev_loop *loop, const char *name);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_LIBEV_H */
