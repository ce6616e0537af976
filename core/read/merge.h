/* SPDX-License-Identifier: Apache-2.0 */
/* Merge: many runs of events, each in order -> one time order.  No files, no events: only keys. */

#pragma once

#include <stddef.h>
#include <stdint.h>

/* A run and the time of its next event. */
struct d9__merge_item {
	uint64_t time_ns;
	uint64_t order; /* decides between equal times: lower first; distinct */
	void *run;
};

/* A heap.  All zero is empty. */
struct d9__merge {
	struct d9__merge_item *items;
	size_t n, capacity;
};

/* 0 or -ENOMEM. */
int d9__merge_push(struct d9__merge *merge, struct d9__merge_item item);

/* The earliest item, or NULL. */
static inline struct d9__merge_item *d9__merge_top(struct d9__merge *merge)
{
	return merge->n ? &merge->items[0] : NULL;
}

void d9__merge_sift(struct d9__merge *merge);

/* The time of the earliest item has grown: put it where it belongs. */
static inline void d9__merge_settle(struct d9__merge *merge)
{
	const struct d9__merge_item *items = merge->items;

	/* It often stays: loops sleep while others work. */
	if (merge->n < 2 || (items[0].time_ns < items[1].time_ns &&
			     (merge->n < 3 || items[0].time_ns < items[2].time_ns)))
		return;
	d9__merge_sift(merge);
}

/* Take the earliest item away. */
void d9__merge_pop(struct d9__merge *merge);

void d9__merge_release(struct d9__merge *merge);

/* An event of a batch that is not in time order. */
struct d9__index_entry {
	uint64_t time_ns;
	uint64_t offset; /* perhaps with D9__INDEX_ENTERS; or D9__INDEX_WAKE */
};

#define D9__INDEX_ENTERS (UINT64_C(1) << 63) /* the call that it tells begins */
#define D9__INDEX_WAKE	 (UINT64_C(1) << 62) /* a wake, and its number */

/* Sort by time, stably; fast if nearly sorted.  |scratch| has room for |n|. */
void d9__index_sort(struct d9__index_entry *entries, size_t n, struct d9__index_entry *scratch);
