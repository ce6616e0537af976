/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The author of a trace chooses the ids.  Those that count from 0 stand where their number says, and
 * so do small ones, such as the types of programs, which count from 256;
 * others are mixed before use, and a run of occupied entries longer than PROBE_MAX makes the table
 * grow: no choice of ids makes a search long, the worst runs into the memory limit instead.
 */
#include "config.h"

#include "format/pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

#define CAPACITY_MIN 64
#define PROBE_MAX    64
#define DIRECT_MAX   1024 /* ids below get a table in which they stand where their number says */

static uint32_t mix(uint32_t id)
{
	id ^= id >> 16;
	id *= UINT32_C(0x85ebca6b);
	id ^= id >> 13;
	id *= UINT32_C(0xc2b2ae35);
	return id ^ id >> 16;
}

/* The entry of |id|, or the free one where it belongs; NULL after PROBE_MAX occupied ones. */
static struct d9__pool_entry *probe(const struct d9__pool *pool, uint32_t id)
{
	uint32_t mask = pool->capacity - 1, at = id < pool->capacity ? id : mix(id);

	for (unsigned i = 0; i < PROBE_MAX; i++) {
		struct d9__pool_entry *entry = &pool->entries[(at + i) & mask];

		if (entry->generation != pool->generation || entry->id == id)
			return entry;
	}
	return NULL;
}

static bool move_all(struct d9__pool *to, const struct d9__pool *from)
{
	for (uint32_t i = 0; i < from->capacity; i++) {
		const struct d9__pool_entry *entry = &from->entries[i];
		struct d9__pool_entry *place;

		if (entry->generation != from->generation)
			continue;
		place = probe(to, entry->id);
		if (!place)
			return false;
		*place = *entry;
		place->generation = to->generation;
	}
	return true;
}

static int grow(struct d9__pool *pool, uint64_t max_bytes)
{
	uint32_t capacity = pool->capacity ? pool->capacity : CAPACITY_MIN / 2;
	struct d9__pool bigger = { .used = pool->used, .generation = 1 };

	do {
		d9__free(bigger.entries);
		if (capacity > UINT32_MAX / 2)
			return -EFBIG;
		capacity *= 2;
		if (capacity > CAPACITY_MIN &&
		    (uint64_t)capacity * sizeof(*bigger.entries) > max_bytes)
			return -EFBIG;
		bigger.capacity = capacity;
		bigger.entries = d9__calloc(capacity, sizeof(*bigger.entries));
		if (!bigger.entries)
			return -ENOMEM;
	} while (!move_all(&bigger, pool));
	d9__free(pool->entries);
	*pool = bigger;
	return 0;
}

struct d9__pool_entry *d9__pool_find_slow(const struct d9__pool *pool, uint32_t id)
{
	struct d9__pool_entry *entry;

	if (!pool->used)
		return NULL;
	entry = probe(pool, id);
	return entry && entry->generation == pool->generation ? entry : NULL;
}

int d9__pool_add(struct d9__pool *pool, uint32_t id, const void *data, uint32_t n,
		 uint64_t max_bytes)
{
	struct d9__pool_entry *entry = NULL;

	if (pool->used < pool->capacity / 2 && (id < pool->capacity || id >= DIRECT_MAX))
		entry = probe(pool, id);
	while (!entry) {
		int err = grow(pool, max_bytes);

		if (err)
			return err;
		entry = probe(pool, id);
	}
	if (entry->generation == pool->generation)
		return 0;
	*entry = (struct d9__pool_entry) {
		.data = data, .n = n, .id = id, .generation = pool->generation
	};
	pool->used++;
	return 0;
}

void d9__pool_reset(struct d9__pool *pool)
{
	pool->used = 0;
	if (pool->capacity && ++pool->generation == 0) {
		/* Wrapped: entries of the first generation would come alive again. */
		memset(pool->entries, 0, pool->capacity * sizeof(*pool->entries));
		pool->generation = 1;
	}
}

void d9__pool_release(struct d9__pool *pool)
{
	d9__free(pool->entries);
	*pool = (struct d9__pool) { 0 };
}
