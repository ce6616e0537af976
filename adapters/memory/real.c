/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d9__real begins with functions that look all others up and then do what they were called for; so hooks need not ask
 * whether that was done.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "memory/real.h"

#define ALIGNMENT   16u

/* ---- the arena ---- */

_Alignas(ALIGNMENT) uint8_t d9__arena[D9__ARENA_BYTES];
static _Atomic(size_t) arena_used;

/* Zeroed; its size stands before it.  |alignment| is a power of two. */
static void *arena_take(size_t size, size_t alignment)
{
	size_t room, used;
	uintptr_t at;

	if (alignment < ALIGNMENT)
		alignment = ALIGNMENT;
	if (size > D9__ARENA_BYTES || alignment > D9__ARENA_BYTES) {
		errno = ENOMEM;
		return NULL;
	}
	room = ALIGNMENT + alignment + ((size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
	used = atomic_fetch_add_explicit(&arena_used, room, memory_order_relaxed);
	if (used > D9__ARENA_BYTES || room > D9__ARENA_BYTES - used) {
		errno = ENOMEM;
		return NULL;
	}
	at = ((uintptr_t)d9__arena + used + ALIGNMENT + alignment - 1) & ~(alignment - 1);
	memcpy((void *)(at - sizeof(size)), &size, sizeof(size));
	return (void *)at;
}

size_t d9__arena_size(const void *block)
{
	size_t size;

	memcpy(&size, (const uint8_t *)block - sizeof(size), sizeof(size));
	return size;
}

/* ---- before the real functions are known ---- */

enum { UNKNOWN, SEARCHING, KNOWN };
static _Atomic(int) state;

/* False: a thread is looking them up, perhaps this one. */
static bool known(void)
{
	d9__real_find();
	return atomic_load_explicit(&state, memory_order_acquire) == KNOWN;
}

static void *early_malloc(size_t size)
{
	return known() ? d9__real.malloc(size) : arena_take(size, 1);
}

static void *early_calloc(size_t n, size_t size)
{
	if (known())
		return d9__real.calloc(n, size);
	return arena_take(__builtin_mul_overflow(n, size, &size) ? SIZE_MAX : size, 1);
}

static void *early_realloc(void *block, size_t size)
{
	void *moved;

	if (known())
		return d9__real.realloc(block, size);
	moved = arena_take(size, 1);
	if (moved && block)
		memcpy(moved, block, d9__arena_size(block) < size ? d9__arena_size(block) : size);
	return moved;
}

static void *early_reallocarray(void *block, size_t n, size_t size)
{
	if (known())
		return d9__real.reallocarray(block, n, size);
	return early_realloc(block, __builtin_mul_overflow(n, size, &size) ? SIZE_MAX : size);
}

static void early_free(void *block)
{
	if (known())
		d9__real.free(block);
}

static int early_posix_memalign(void **out, size_t alignment, size_t size)
{
	int saved = errno;

	if (known())
		return d9__real.posix_memalign(out, alignment, size);
	*out = arena_take(size, alignment);
	errno = saved;
	return *out ? 0 : ENOMEM;
}

static void *early_aligned_alloc(size_t alignment, size_t size)
{
	return known() ? d9__real.aligned_alloc(alignment, size) : arena_take(size, alignment);
}

static void *early_memalign(size_t alignment, size_t size)
{
	return known() ? d9__real.memalign(alignment, size) : arena_take(size, alignment);
}

static void *early_valloc(size_t size)
{
	return known() ? d9__real.valloc(size) : arena_take(size, 4096);
}

static void *early_pvalloc(size_t size)
{
	return known() ? d9__real.pvalloc(size) : arena_take(size, 4096);
}

struct d9__memory_real d9__real = {
#define D9__EARLY(name, result, parameters) .name = early_##name,
	D9__MEMORY_FUNCTIONS(D9__EARLY)
#undef D9__EARLY
};

/* ---- looking up ---- */

void d9__real_find(void)
{
	struct d9__memory_real real = d9__real;
	int unknown = UNKNOWN, saved = errno;
	void *found;

	if (!atomic_compare_exchange_strong_explicit(&state, &unknown, SEARCHING, memory_order_acquire,
						     memory_order_relaxed))
		return;
#define D9__FIND(name, result, parameters)                                        \
	found = dlsym(RTLD_NEXT, #name);                                          \
	memcpy(&real.name, &found, sizeof(found));
	D9__MEMORY_FUNCTIONS(D9__FIND)
#undef D9__FIND
	/* Not before all are known: what the arena gave is not for the real free(). */
	d9__real = real;
	atomic_store_explicit(&state, KNOWN, memory_order_release);
	errno = saved;
}
