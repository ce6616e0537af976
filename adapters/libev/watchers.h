/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers: what they are to the trace, and when their time was due. */

#pragma once

#include <stdint.h>

#include <dial9/loop.h>

#include "libev/records.h"

/* From the bits that a watcher is called with: enum d9_task_kind, enum d9_wake_reason. */
uint16_t d9__libev_watcher_kind(int events);
uint16_t d9__libev_watcher_reason(int events);

/* A watcher with another callback is another task. */
static inline uint64_t d9__libev_identity(const void *callback)
{
	return (uint64_t)(uintptr_t)callback | UINT64_C(1) << 63;
}

/*
 * When |timer|, which libev feeds now, was due, in ns of CLOCK_MONOTONIC; 0: unknown.  |known| has
 * what was kept when libev stopped it, or is NULL.
 */
uint64_t d9__libev_watcher_timer_due_ns(const ev_timer *timer, const struct d9__libev_watcher *known);

/* When |periodic|, which libev feeds now, was due. */
uint64_t d9__libev_watcher_periodic_due_ns(const ev_periodic *periodic);
