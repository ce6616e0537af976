/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the allocator, seen on their way: what they return, and what errno is then, is the allocator's.
 *
 * This file is compiled without built-in functions, as the compiler knows what malloc() means.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/options.h"
#include "memory/hooks.h"
#include "memory/real.h"
#include "sample/alloc.h"

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
	void *block;

	if (d9__alloc_pass(size))
		return d9__real.malloc(size);
	block = d9__real.malloc(size);
	d9__alloc_sample(block, size, CALLER);
	return block;
}

void *calloc(size_t n, size_t size)
{
	void *block;
	size_t bytes;

	if (!__builtin_mul_overflow(n, size, &bytes) && d9__alloc_pass(bytes))
		return d9__real.calloc(n, size);
	block = d9__real.calloc(n, size);
	d9__alloc_sample(block, bytes, CALLER);
	return block;
}

void free(void *block)
{
	if (d9__arena_has(block))
		return;
	if (d9__alloc_maybe_live(block))
		d9__alloc_freed(block);
	d9__real.free(block);
}

/* ---- whose allocator it is ---- */

/*
 * NULL: the program's calls come here.  As it is linked (-Bsymbolic), RTLD_DEFAULT begins with this library.  One call
 * tells, as the address does not: in a program that is not position-independent and takes the address of malloc(), that
 * address is an entry of its own PLT.
 */
static const char *obstacle(void)
{
	void *program = dlopen(NULL, RTLD_LAZY), *block;
	void *(*allocate)(size_t) = program ? (void *(*)(size_t))dlsym(program, "malloc") : NULL;
	void (*release)(void *) = program ? (void (*)(void *))dlsym(program, "free") : NULL;
	bool comes_here = false;

	if (allocate && release) {
		d9__alloc_probe_begin();
		block = allocate(1);
		comes_here = d9__alloc_probe_end();
		release(block);
	}
	if (program)
		dlclose(program);
	if (comes_here)
		return NULL;
	return "off: another allocator comes before libdial9-memory: one in the program itself, or one that is loaded first";
}

/* Asked for by a call that is made before our constructor, too. */
static bool is_foreign(void)
{
	static _Atomic(int) known; /* 1: it is ours */
	int saved = errno, state = atomic_load_explicit(&known, memory_order_relaxed);

	if (!state) {
		state = obstacle() ? 2 : 1;
		atomic_store_explicit(&known, state, memory_order_relaxed);
		errno = saved;
	}
	return state == 2;
}

/* ---- realloc: a free and an allocation ---- */

static void *leave_arena(void *block, size_t size)
{
	void *moved = d9__real.malloc(size);
	size_t old = d9__arena_size(block);

	if (moved)
		memcpy(moved, block, old < size ? old : size);
	return moved;
}

static void *resize(void *block, size_t size)
{
	struct d9__alloc_block old;
	void *moved;

	if (d9__arena_has(block))
		return leave_arena(block, size);
	if (!block || !d9__alloc_maybe_live(block) || !d9__alloc_take(block, &old))
		return d9__real.realloc(block, size);
	moved = d9__real.realloc(block, size);
	/* Where it fails, nothing has happened; of 0 bytes it frees, or gives a new block. */
	if (!moved && size)
		d9__alloc_put_back(&old);
	else
		d9__alloc_gone(&old);
	return moved;
}

void *realloc(void *block, size_t size)
{
	void *moved = resize(block, size);

	if (!d9__alloc_pass(size))
		d9__alloc_sample(moved, size, CALLER);
	return moved;
}

/*
 * Of an allocator that has none libc's serves, which asks for the program's realloc() by its name; where that is not ours it is
 * not the next one either.
 */
void *reallocarray(void *block, size_t n, size_t size)
{
	size_t bytes;
	void *moved;

	if (__builtin_mul_overflow(n, size, &bytes) || is_foreign())
		return d9__real.reallocarray(block, n, size);
	moved = resize(block, bytes);
	if (!d9__alloc_pass(bytes))
		d9__alloc_sample(moved, bytes, CALLER);
	return moved;
}

/* ---- aligned blocks ---- */

int posix_memalign(void **out, size_t alignment, size_t size)
{
	int result = d9__real.posix_memalign(out, alignment, size);

	if (!result && !d9__alloc_pass(size))
		d9__alloc_sample(*out, size, CALLER);
	return result;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	void *block = d9__real.aligned_alloc(alignment, size);

	if (!d9__alloc_pass(size))
		d9__alloc_sample(block, size, CALLER);
	return block;
}

void *memalign(size_t alignment, size_t size)
{
	void *block = d9__real.memalign(alignment, size);

	if (!d9__alloc_pass(size))
		d9__alloc_sample(block, size, CALLER);
	return block;
}

void *valloc(size_t size)
{
	void *block = d9__real.valloc(size);

	if (!d9__alloc_pass(size))
		d9__alloc_sample(block, size, CALLER);
	return block;
}

void *pvalloc(size_t size)
{
	void *block = d9__real.pvalloc(size);

	if (!d9__alloc_pass(size))
		d9__alloc_sample(block, size, CALLER);
	return block;
}

/* ---- the beginning ---- */

static __attribute__((constructor)) void start(void)
{
	int saved_errno = errno;

	d9__real_find();
	d9__alloc_attach((const void *)(uintptr_t)start, obstacle());
	if (d9__options_early_memory())
		d9__alloc_open_early();
	errno = saved_errno;
}
