/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/task_cache.h"

#include "format/varint.h"

/* Where |key| is, or the first of its places, whose task moves over to the other. */
static struct d9__cached_task *make_place(struct d9__task_cache *cache, uint64_t key)
{
	size_t offset = d9__task_cache_offset(key);
	struct d9__cached_task *first = d9__task_cache_at(cache, offset);
	struct d9__cached_task *other = d9__task_cache_at(cache, d9__task_cache_other(offset));

	if (first->key == key || !first->task)
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
	cached->emit.start_len =
		(uint8_t)(D9__EMIT_PLAIN_HEAD_LEN + 5 +
			  (d9__varint_put(cached->emit.wire, id) - cached->emit.wire));
	cached->emit.library = (uint8_t)library;
	return cached;
}
