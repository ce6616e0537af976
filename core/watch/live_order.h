/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live order: copies of events that came thread by thread, to be told in the order of their times,
 * as a reader tells those of a trace.
 */

#pragma once

#include <stddef.h>

#include <dial9/reader.h>

#include "base/arena.h"
#include "read/merge.h"

/* All zero is empty. */
struct d9__live_order {
	struct d9__arena arena; /* what the events point to */
	struct d9_event *events;
	struct d9__index_entry *index; /* offset: which event */
	size_t n, capacity, index_capacity;
};

/* Keep a copy of |event|, without its lists and maps.  0 or -ENOMEM. */
int d9__live_order_add(struct d9__live_order *order, const struct d9_event *event);

/* Tell |fn| of all that was added, until it does not return 0, and forget it.  0, -ENOMEM, or what
 * |fn| returned. */
int d9__live_order_tell(struct d9__live_order *order,
			int (*fn)(void *arg, const struct d9_event *event), void *arg);

/* Bytes that wait to be told. */
size_t d9__live_order_bytes(const struct d9__live_order *order);

void d9__live_order_release(struct d9__live_order *order);
