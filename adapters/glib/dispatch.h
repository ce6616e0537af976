/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch: from GLib through our stubs to a source's own functions. */

#pragma once

#include <stdint.h>

#include "glib/real.h"
#include "hook/stubs.h"

struct d9__glib_context;
struct d9__glib_thread;

/* The stubs for dispatch() and finalize() functions. */
extern struct d9__stubs d9__glib_dispatches, d9__glib_finalizers;

/* The loop has waited, or looked: what it runs next belongs to a new round. */
void d9__glib_new_round(struct d9__glib_context *record, struct d9__glib_thread *thread);

/* Where a context holds its pending sources; 0: not found. */
extern uint32_t d9__glib_pending_at;

/* The dispatches that the self-test saw. */
struct d9__glib_seen {
	GSource *sources[4];
	unsigned n, depth;
};
extern struct d9__glib_seen d9__glib_seen;
