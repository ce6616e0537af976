/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: the state of this thread in GLib. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "glib/real.h"

struct d9__glib_context;

struct d9__glib_thread {
	/* The context that was looked up last.  NULL with |context| set: it is not recorded. */
	const GMainContext *context;
	struct d9__glib_context *record;
	uint32_t generation;

	int eventfd;     /* the latest that libglib made here */
	int captured_fd; /* what a captured write was for */
	uint8_t captured_bytes;
	bool capturing;   /* the next write is noted and not made */
	bool calibrating; /* nothing is recorded, what hooks see is noted */
	bool inside;      /* in the program's own poll function */
	bool timing;      /* the program's prepare() or check() function runs */
	bool looked;      /* for a context that this thread runs without our knowing */
	bool blocking_started; /* d9__blocking_start() was called */

	GSource *chain;  /* is being dispatched: its dispatch function may call another one */
	struct d9__glib_context *outermost; /* whose source runs, and no other around it; or NULL */
	uint64_t about;  /* key of the source that a call on its way is about; 0: none */
};

_Static_assert(sizeof(struct d9__glib_thread) <= 64, "static TLS of late libraries is scarce");

extern _Thread_local struct d9__glib_thread d9__glib_self D9_TLS;

static inline struct d9__glib_thread *d9__glib_thread(void)
{
	return &d9__glib_self;
}
