/* SPDX-License-Identifier: Apache-2.0 */
/* Pool: interned byte strings by id; texts and call stacks alike. */

#pragma once

#include <stddef.h>
#include <stdint.h>

/* One entry.  |generation| tells live entries from those of earlier batches. */
struct d9__pool_entry {
	const void *data; /* borrowed */
	uint32_t n;       /* bytes of a text, addresses of a stack */
	uint32_t id;
	uint32_t generation;
};

/* All zero is an empty pool. */
struct d9__pool {
	struct d9__pool_entry *entries; /* open addressing; a power of two, at most half full */
	uint32_t capacity, used;
	uint32_t generation; /* entries of another one are free */
};

struct d9__pool_entry *d9__pool_find_slow(const struct d9__pool *pool, uint32_t id);

/* The entry |id|, or NULL.  Inline for ids that count from 0, as recorders give them. */
static inline struct d9__pool_entry *d9__pool_find(const struct d9__pool *pool, uint32_t id)
{
	if (__builtin_expect(id < pool->capacity, 1)) {
		struct d9__pool_entry *entry = &pool->entries[id];

		if (__builtin_expect(entry->id == id && entry->generation == pool->generation, 1))
			return entry;
	}
	return d9__pool_find_slow(pool, id);
}

/*
 * Define |id|.  The first definition of an id wins: readers that look back from a later event
 * and readers that go in file order then agree.  0, -ENOMEM, or -EFBIG if the table would grow
 * over |max_bytes|.
 */
int d9__pool_add(struct d9__pool *pool, uint32_t id, const void *data, uint32_t n,
		 uint64_t max_bytes);

/* Forget all entries, in constant time. */
void d9__pool_reset(struct d9__pool *pool);

void d9__pool_release(struct d9__pool *pool);
