/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open spans: those of the program that are created and not closed, which each segment tells at its
 * beginning.
 *
 * Each thread has places for those that it creates: a span whose place an older one still has is
 * not told.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/living_tasks.h"

#define D9__OPEN_SPANS 256u /* places of each thread: as many as it takes ids at a time */

/* Free where |id| is 0, or |epoch| an earlier one: then it is a parent process's. */
struct d9__open_span {
	_Atomic(uint64_t) id;
	_Atomic(uint64_t) start_ns, parent;
	_Atomic(uint32_t) name, origin, epoch;
};

struct d9__open_spans {
	_Atomic(bool) used;
	struct d9__open_span places[D9__OPEN_SPANS];
};

extern struct d9__open_spans d9__open_spans_all[]; /* by slot */

/*
 * |span| was created by the thread whose |spans| are, which calls; its handlers may.  Where it is
 * told from now on; NULL: it is not.
 */
static inline struct d9__open_span *d9__open_span_add(struct d9__open_spans *spans, uint32_t epoch,
						      const struct d9__living_span *span)
{
	struct d9__open_span *place = &spans->places[span->id % D9__OPEN_SPANS];

	if (atomic_load_explicit(&place->id, memory_order_acquire)) {
		if (atomic_load_explicit(&place->epoch, memory_order_relaxed) == epoch)
			return NULL;
		atomic_store_explicit(&place->id, 0, memory_order_relaxed);
	}
	/* release: tell(), if it reads one of them, then finds that the id is another */
	atomic_store_explicit(&place->start_ns, span->start_ns, memory_order_release);
	atomic_store_explicit(&place->parent, span->parent, memory_order_release);
	atomic_store_explicit(&place->name, span->name, memory_order_release);
	atomic_store_explicit(&place->origin, span->origin, memory_order_release);
	atomic_store_explicit(&place->epoch, epoch, memory_order_relaxed);
	/* release: pairs with the acquire in tell() */
	atomic_store_explicit(&place->id, span->id, memory_order_release);
	atomic_store_explicit(&spans->used, true, memory_order_relaxed);
	return place;
}

/*
 * The span |id| ends, if |place| is not NULL and still its own.  Before the time of the end is
 * taken: then none is told that ended earlier.  Any thread.
 */
static inline void d9__open_span_remove(struct d9__open_span *place, uint64_t id)
{
	/* release: the thread that takes the place next writes behind it */
	if (place && atomic_load_explicit(&place->id, memory_order_relaxed) == id)
		atomic_store_explicit(&place->id, 0, memory_order_release);
}

/* From now on segments tell them.  Any thread, any number of times. */
void d9__open_spans_start(void);
