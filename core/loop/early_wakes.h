/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Early wakes: of tasks that the table does not know yet, by the thread that runs their loop and so
 * will poll them.  They wait here, so that a task that runs once need not come into the table at
 * all.
 *
 * As with the wakes that the table holds, the first one of a poll counts.  One that no poll took is
 * void as soon as its loop waits, because no loop waits while something is ready.  Owner thread
 * only.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loops.h"

#define D9__EARLY_BITS 8 /* 32 KiB, of which a small loop touches little */
#define D9__EARLY_WAYS 4 /* places of a key */

/* One that is older than so many waits of the thread gives way: its loop may be gone. */
#define D9__EARLY_KEEP 1000

struct d9__early_wake {
	uint64_t key;
	uint64_t ns; /* 0: none */
	uint64_t waker;
	uint32_t round; /* of its loop */
	uint16_t wait;  /* of the thread */
	uint8_t worker, reason;
};

struct d9__early_set {
	_Alignas(64) struct d9__early_wake ways[D9__EARLY_WAYS];
};

_Static_assert(sizeof(struct d9__early_set) == 128, "the places of a key take two lines");

struct d9__early_wakes {
	struct d9__early_set sets[1u << D9__EARLY_BITS];
};

static inline struct d9__early_set *d9__early_set(struct d9__early_wakes *all, uint64_t key)
{
	return &all->sets[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - D9__EARLY_BITS)];
}

/* Where |key| is or was; NULL: nowhere. */
static inline struct d9__early_wake *d9__early_find(struct d9__early_set *set, uint64_t key)
{
	for (unsigned i = 0; i < D9__EARLY_WAYS; i++)
		if (set->ways[i].key == key)
			return &set->ways[i];
	return NULL;
}

/* |at| is of the key. */
static inline bool d9__early_is(const struct d9__early_wake *at, const struct d9_loop *loop)
{
	return at->ns &&
	       at->round == atomic_load_explicit(&loop->round, memory_order_relaxed);
}

/* A free one, in the |wait|th of the thread; NULL: none. */
static inline struct d9__early_wake *d9__early_free(struct d9__early_set *set, uint16_t wait)
{
	for (unsigned i = 0; i < D9__EARLY_WAYS; i++)
		if (!set->ways[i].ns || (uint16_t)(wait - set->ways[i].wait) > D9__EARLY_KEEP)
			return &set->ways[i];
	return NULL;
}

/* The one for |key|, which is none any more; its |ns| is 0 if there was none. */
static inline struct d9__early_wake d9__early_take(struct d9__early_wakes *all, uint64_t key,
						   const struct d9_loop *loop)
{
	struct d9__early_wake *at = d9__early_find(d9__early_set(all, key), key);
	struct d9__early_wake taken = { .ns = 0 };

	if (!at)
		return taken;
	if (d9__early_is(at, loop))
		taken = *at;
	at->ns = 0;
	return taken;
}

/* The task, of whatever library, will not run. */
static inline void d9__early_forget(struct d9__early_wakes *all, uint64_t key)
{
	struct d9__early_wake *at = d9__early_find(d9__early_set(all, key), key);

	if (at)
		at->ns = 0;
}
