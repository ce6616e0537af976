/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of contexts. */

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "glib/real.h"

struct d9__glib_context;

/* Our poll function, where the program has one of its own. */
gint d9__glib_wait_chain_poll(GPollFD *fds, guint n, gint timeout);

/* A hook of this thread's saw the wake-up descriptor |fd| with the self-test's timeout of 0. */
struct d9__glib_waits_seen {
	int fd;
	bool polled, closed;
};
extern struct d9__glib_waits_seen d9__glib_waits_seen;

/* Waits of contexts that are not known, such as that of GLib's own thread for signals. */
extern _Atomic(uint32_t) d9__glib_polls_unbound;

/* Put our chain function in front of |record|'s poll function, if the program has its own. */
void d9__glib_wait_adopt_poll(struct d9__glib_context *record, GMainContext *context);

/* Register the types of events that may be written in a signal handler. */
void d9__glib_waits_init(void);
