/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real: the functions of the allocator that the hooks stand in front of: those that the loader would have given the
 * program without us.
 *
 * The first call of any of them looks all up.  The loader may allocate meanwhile, and so may other threads: a small static
 * arena serves them until all are known.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(function, result, parameters) */
#define D9__MEMORY_FUNCTIONS(X)                                                  \
	X(malloc, void *, (size_t))                                              \
	X(calloc, void *, (size_t, size_t))                                      \
	X(realloc, void *, (void *, size_t))                                     \
	X(reallocarray, void *, (void *, size_t, size_t))                        \
	X(free, void, (void *))                                                  \
	X(posix_memalign, int, (void **, size_t, size_t))                        \
	X(aligned_alloc, void *, (size_t, size_t))                               \
	X(memalign, void *, (size_t, size_t))                                    \
	X(valloc, void *, (size_t))                                              \
	X(pvalloc, void *, (size_t))

/* Never NULL: libc has all of them. */
struct d9__memory_real {
#define D9__MEMBER(name, result, parameters) result(*name) parameters;
	D9__MEMORY_FUNCTIONS(D9__MEMBER)
#undef D9__MEMBER
};

extern struct d9__memory_real d9__real;

/* Look them up now. */
void d9__real_find(void);

#define D9__ARENA_BYTES (64u << 10)

extern uint8_t d9__arena[D9__ARENA_BYTES];

/* Whether |block| is of the arena, which takes nothing back.  What every free() asks. */
static inline bool d9__arena_has(const void *block)
{
	return __builtin_expect((uintptr_t)block - (uintptr_t)d9__arena < D9__ARENA_BYTES, 0);
}

/* The bytes that were asked for |block|, which is of the arena. */
size_t d9__arena_size(const void *block);
