/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task cache: the tasks that one thread has polled, by key.  Each key has two places.  Owner thread
 * and its signal handlers.  All zeros is an empty one, of which no page was touched.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "loop/tasks.h"
#include "ring/emit_inl.h"

#define D9__CACHED_BITS 10 /* 64 KiB, for the tasks of a busy loop */

/*
 * A task that this thread has polled, and how the next poll of it is spelled if it comes from the
 * same loop with the same callsite, in a chunk that knows the callsite's name.
 */
struct d9__cached_task {
	uint64_t key;
	struct d9_loop *loop; /* NULL: not known so well; what stands next to it is empty then */
	const struct d9_callsite *callsite;
	struct d9__task *task; /* NULL: no task is here */
	struct d9__emit_task emit; /* its id, when it was put here */
	uint32_t name;		   /* handle */
	uint32_t stamp; /* of the chunk whose wire id of the name |emit| spells; 0: none */
};

_Static_assert(sizeof(struct d9__cached_task) == 64, "one line for each");

struct d9__task_cache {
	_Alignas(64) struct d9__cached_task places[1u << D9__CACHED_BITS];
};

/* Put |task| in its place.  Known are its key and number alone. */
struct d9__cached_task *d9__task_cache_put(struct d9__task_cache *cache, uint32_t library,
					   uint64_t key, struct d9__task *task);

/* The first place of |key|, as an offset: an index would have to be multiplied. */
static inline size_t d9__task_cache_offset(uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);

	return hash >> (64 - 6 - D9__CACHED_BITS) & (sizeof(struct d9__task_cache) - 64);
}

static inline struct d9__cached_task *d9__task_cache_at(struct d9__task_cache *cache, size_t offset)
{
	return (struct d9__cached_task *)((uint8_t *)cache + offset);
}

/* The other place of a key. */
static inline size_t d9__task_cache_other(size_t offset)
{
	return offset ^ sizeof(struct d9__cached_task);
}

/* Where |key| is, or NULL. */
static inline __attribute__((always_inline)) struct d9__cached_task *
d9__task_cache_get(struct d9__task_cache *cache, uint64_t key)
{
	size_t offset = d9__task_cache_offset(key);
	struct d9__cached_task *cached = d9__task_cache_at(cache, offset);

	if (__builtin_expect(cached->key != key, 0)) {
		cached = d9__task_cache_at(cache, d9__task_cache_other(offset));
		if (cached->key != key)
			return NULL;
	}
	__asm__("" : "+r"(cached)); /* one pointer, not base and offset, stays in a register */
	if (!cached)
		__builtin_unreachable();
	return cached;
}

/* True if the task that is |cached| for a key still exists, and is |library|'s. */
static inline bool d9__cached_task_is(const struct d9__cached_task *cached, uint32_t library)
{
	return cached->task && cached->emit.library == library &&
	       d9__task_is(cached->task, cached->emit.id);
}
