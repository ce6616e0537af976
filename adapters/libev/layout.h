/* SPDX-License-Identifier: Apache-2.0 */
/* Private offsets of the running libev, found and tested once per process. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libev/real.h"

#define D9__LIBEV_OWNERS_MAX 16
#define D9__LIBEV_OWNERS_IN  0x140 /* bytes of a loop that are searched for them */

struct d9__libev_layout {
	bool known; /* all offsets were found, and our drain behaves as libev's */
	bool slots; /* those of the callbacks were found */
	bool feeds; /* libev's own calls of ev_feed_event() reach us */
	bool monotonic; /* timers count in CLOCK_MONOTONIC */
	/* Per priority: pending watchers, how many; and the priority that is drained now. */
	uint16_t arrays, counts, priority;
	uint16_t dummy; /* what takes the place of a watcher whose event was cleared */
	uint16_t release, acquire, invoke; /* the callbacks */
	uint16_t owners[D9__LIBEV_OWNERS_MAX]; /* words that point into libev's code */
	uint16_t n_owners;
	uint16_t checked; /* bytes of a loop up to the last offset */
	const char *reason; /* if not |known| */
};

/* Constant once d9__libev_layout_calibrate() has returned. */
extern struct d9__libev_layout d9__libev_layout;

/* Facts that hooks saw in the program and in the scratch loop.  Set by hooks, never back. */
struct d9__libev_seen {
	bool feed;	/* libev's own call of ev_feed_event() */
	bool allocator; /* the program brings its own: the size of a loop cannot be asked for */
};
extern struct d9__libev_seen d9__libev_seen;

/* One pending event, as libev has it. */
struct d9__libev_pending {
	struct ev_watcher *watcher;
	int events;
};

/*
 * Find the layout, once per process.  |early|: no code of the program has run yet, so the allocator
 * is malloc().  Not under a lock of the program.
 */
void d9__libev_layout_calibrate(bool early);

/* True if |loop| is one of this libev.  Reads it safely.  Only with |known|. */
bool d9__libev_layout_is_loop(const struct ev_loop *loop);

static inline void *d9__libev_member(const struct ev_loop *loop, uint16_t offset)
{
	return (char *)(uintptr_t)loop + offset;
}

static inline d9__libev_loop_fn d9__libev_slot(const struct ev_loop *loop, uint16_t offset)
{
	return *(d9__libev_loop_fn *)d9__libev_member(loop, offset);
}
