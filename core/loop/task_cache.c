/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/task_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/varint.h"

static uint32_t mask_of(uint32_t n)
{
	return (n - 1) * (uint32_t)sizeof(struct d9__cached_task);
}

static uint32_t entries_of(const struct d9__task_cache *cache)
{
	return cache->mask / (uint32_t)sizeof(struct d9__cached_task) + 1;
}

static void clear(struct d9__cached_task *entries, uint32_t n)
{
	memset(entries, 0, n * sizeof(*entries));
	for (uint32_t i = 0; i < n; i++)
		entries[i].emit.library = D9__LIBRARY_NONE;
}

void d9__task_cache_init(struct d9__task_cache *cache)
{
	cache->entries = cache->first;
	cache->mask = mask_of(1u << D9__CACHED_BITS);
	cache->missed = 0;
	clear(cache->first, 1u << D9__CACHED_BITS);
}

void d9__task_cache_free(struct d9__task_cache *cache)
{
	if (cache->entries != cache->first)
		free(cache->entries);
}

/* Where |key| is, or the first of its places, whose task moves over to the other. */
static struct d9__cached_task *make_place(struct d9__task_cache *cache, uint64_t key)
{
	struct d9__cached_task *first = d9__task_cache_place(cache, key);
	struct d9__cached_task *other = d9__task_cache_other(first);

	if (first->key == key || first->emit.library == D9__LIBRARY_NONE)
		return first;
	if (other->key == key)
		return other;
	*other = *first;
	return first;
}

struct d9__cached_task *d9__task_cache_put(struct d9__task_cache *cache, uint32_t library,
					   uint64_t key, struct d9__task *task)
{
	struct d9__cached_task *cached = make_place(cache, key);
	uint64_t id = atomic_load_explicit(&task->id, memory_order_relaxed);

	*cached = (struct d9__cached_task) { .key = key, .task = task };
	cached->emit.id = id;
	cached->emit.id_len =
		(uint8_t)(d9__varint_put(cached->emit.wire, id) - cached->emit.wire);
	cached->emit.library = (uint8_t)library;
	return cached;
}

void d9__task_cache_grow(struct d9__task_cache *cache)
{
	struct d9__cached_task *old = cache->entries, *entries = NULL;
	uint32_t n = entries_of(cache) * 4;
	int saved = errno;

	cache->missed = 0;
	if (n <= 1u << D9__CACHED_MAX_BITS)
		entries = aligned_alloc(2 * sizeof(*entries), n * sizeof(*entries));
	errno = saved;
	if (!entries)
		return;
	/* Empty: polls bring their tasks again.  The entries first: a signal handler stays in them. */
	clear(entries, n);
	cache->entries = entries;
	atomic_signal_fence(memory_order_seq_cst);
	cache->mask = mask_of(n);
	if (old != cache->first)
		free(old);
}
