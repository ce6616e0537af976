/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the adapter that report polls and wakes share. */

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "libev/records.h"

/* Callbacks of libev's own that were run, and places of events that had been cleared. */
extern _Atomic(uint32_t) d9__libev_internal, d9__libev_cancelled;

/* From the bits that a watcher is called with: enum d9_task_kind, enum d9_wake_reason. */
uint16_t d9__libev_kind(int events);
uint16_t d9__libev_reason(int events);

/* A watcher with another callback is another task. */
static inline uint64_t d9__libev_identity(const void *callback)
{
	return (uint64_t)(uintptr_t)callback | UINT64_C(1) << 63;
}

/*
 * Since when |w|, whose call is |poll|, is ready, and why, where libev's own feeding and stopping is
 * not seen.
 */
void d9__libev_tell_ready(struct d9__libev_record *record, struct d9__libev_watcher *known,
			  const struct ev_watcher *w, int events, struct d9_poll *poll);

/*
 * When |timer|, which libev feeds now, was due, in ns of CLOCK_MONOTONIC; 0: unknown.  |known| has
 * what was kept when libev stopped it, or is NULL.
 */
uint64_t d9__libev_timer_due_ns(const ev_timer *timer, const struct d9__libev_watcher *known);

/* When |periodic|, which libev feeds now, was due. */
uint64_t d9__libev_periodic_due_ns(const ev_periodic *periodic);
