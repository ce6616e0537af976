/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task cache: the tasks that one thread has polled, by key.  Each key has two places; the table
 * grows when tasks that come back find that others have driven them out.  Owner thread and its signal handlers.
 */

#ifndef D9_LOOP_TASK_CACHE_H
#define D9_LOOP_TASK_CACHE_H

#include <stdint.h>

#include <dial9/loop.h>

#include "loop/tasks.h"
#include "record/emit_inl.h"

#define D9__CACHED_BITS	    8
#define D9__CACHED_MAX_BITS 16 /* 4 MiB, for a loop with that many watchers */

/*
 * A task that this thread has polled, and how the next poll of it is spelled if it comes from the
 * same loop with the same callsite, in a chunk that knows the callsite's name.
 */
struct d9__cached_task {
	uint64_t key;
	struct d9_loop *loop; /* NULL: not known so well; what stands next to it is empty then */
	const struct d9_callsite *callsite;
	struct d9__task *task;
	struct d9__emit_task emit; /* its id, when it was put here; no library: empty */
	uint32_t name;		   /* handle */
	uint32_t named; /* its word in the slot's table of names, as |emit| spells it */
};

_Static_assert(sizeof(struct d9__cached_task) == 64, "one line for each, and places without a product");

#define D9__LIBRARY_NONE UINT8_MAX

struct d9__task_cache {
	struct d9__cached_task *entries; /* at a multiple of two entries */
	uint32_t mask;			 /* of a hash, which leaves the offset of an entry */
	uint32_t missed;		 /* tasks that came back to it, since it has this size */
	_Alignas(128) struct d9__cached_task first[1u << D9__CACHED_BITS];
};

void d9__task_cache_init(struct d9__task_cache *cache);
void d9__task_cache_free(struct d9__task_cache *cache);

/*
 * More room, since tasks drive one another out.  Without memory it stays as
 * it is.  Not from signal handlers, nor while a lock of the loop library is held.  Keeps errno.
 */
void d9__task_cache_grow(struct d9__task_cache *cache);

/* |task| was not there.  Counts it if it was polled before: a larger cache would have kept it. */
static inline void d9__task_cache_miss(struct d9__task_cache *cache, const struct d9__task *task)
{
	cache->missed += atomic_load_explicit(&task->polled_ns, memory_order_relaxed) != 0;
}

/* Put |task| in its place.  Known are its key and number alone. */
struct d9__cached_task *d9__task_cache_put(struct d9__task_cache *cache, uint32_t library,
					   uint64_t key, struct d9__task *task);

/* Is it time for d9__task_cache_grow()? */
static inline bool d9__task_cache_is_tight(const struct d9__task_cache *cache)
{
	return __builtin_expect(cache->missed >> 4 > cache->mask >> 12, 0) != 0;
}

/* The first of the two places for |key|. */
static inline struct d9__cached_task *d9__task_cache_place(const struct d9__task_cache *cache,
							   uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);

	return (struct d9__cached_task *)((uint8_t *)cache->entries +
					  (hash >> 42 & cache->mask));
}

static inline struct d9__cached_task *d9__task_cache_other(struct d9__cached_task *place)
{
	return (struct d9__cached_task *)((uintptr_t)place ^ sizeof(*place));
}

/* Where |key| is, or some other task. */
static inline struct d9__cached_task *d9__task_cache_find(struct d9__task_cache *cache,
							  uint64_t key)
{
	struct d9__cached_task *cached = d9__task_cache_place(cache, key);

	return __builtin_expect(cached->key == key, 1) ? cached : d9__task_cache_other(cached);
}

static inline bool d9__cached_task_is(const struct d9__cached_task *cached, uint32_t library,
				      uint64_t key)
{
	return cached->key == key && cached->emit.library == library &&
	       d9__task_is(cached->task, cached->emit.id);
}

#endif /* D9_LOOP_TASK_CACHE_H */
