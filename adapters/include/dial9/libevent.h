/* SPDX-License-Identifier: Apache-2.0 */
/* Record what libevent loops do. */

#ifndef DIAL9_LIBEVENT_H
#define DIAL9_LIBEVENT_H

#include <stddef.h>

#include <dial9/error.h>
#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One call after the loop was made:
 *
 *	struct event_base *base = event_base_new();
 *	d9_event_base_attach(base);
 *
 * Every callback that runs on |base| is then one poll of the trace, every wait of the loop one
 * park.  No header of libevent is needed here, and the library does not care which libevent the
 * program brings: 2.0, 2.1 and 2.2 are told apart at run time.  Link it before or after -levent.
 *
 * Programs that were not built for it are recorded by `dial9 record -- CMD`.
 */

struct event_base;

/**
 * Record |base|, on whichever libevent the program runs.
 *
 * |base| behaves as before: same callbacks, same order, same arguments.  Starts the process's
 * recorder from the DIAL9_* variables if none runs.  What could not be hooked is named in the
 * trace, under the metadata keys loop.libevent.*.  Attaching twice is the same as once.  Called
 * from a callback of |base|, it takes effect when the loop is entered next.
 *
 * @param base  borrowed; may be freed with event_base_free() at any time
 *
 * @return 0, also when recording is switched off; or, with nothing touched and the program
 *         running on unrecorded,
 *         -EINVAL   |base| is NULL
 *         -ENOENT   there is no libevent in this process that can be hooked
 *         -ENOTSUP  this libevent is laid out like none we know
 *         -EPERM    the kernel refused to make a page writable
 *         -ENOSPC   more loops than the recorder holds
 *         -ENOMEM   out of memory
 *
 * Threads: any that may use |base|.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_event_base_attach(struct event_base *base);

/**
 * d9_event_base_attach(), and call the lane of |base| |name|.
 *
 * @param name  copied; shared by loops of the same family; NULL: the name of the thread that runs
 *              the loop.  Ignored if |base| is attached already.
 *
 * @return as d9_event_base_attach()
 *
 * Threads: any that may use |base|.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_event_base_attach_named(struct event_base *base, const char *name);

/**
 * Say in one line what is recorded of libevent in this process, for the program's own log.
 *
 * The text is that of the metadata key loop.libevent.capabilities: key=value, separated by commas.
 * It is empty before the first attach.
 *
 * @param out  receives at most |size| bytes including the terminator; may be NULL if |size| is 0
 *
 * @return the length of the whole text, as snprintf()
 *
 * Threads: any.  Not async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_event_base_capabilities(char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_LIBEVENT_H */
