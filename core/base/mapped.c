/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/mapped.h"
#include "base/sandbox.h"
#include "base/thread.h"

static _Atomic(bool) is_limited;

/* Behind a filter of system calls one of these would end the program; the flush thread has none. */
static bool may_call(void)
{
	return !d9__sandbox_is_shut() || d9__thread_is_flush();
}

/* Free if |low| is 0; taken and given back by its low end. */
static struct piece {
	_Atomic(uintptr_t) low;
	_Atomic(size_t) bytes;
} pieces[D9__MAPPED_MAX];

static void enter(uintptr_t low, size_t bytes)
{
	for (unsigned i = 0; i < D9__MAPPED_MAX; i++) {
		uintptr_t none = 0;

		if (atomic_load_explicit(&pieces[i].low, memory_order_relaxed) ||
		    !atomic_compare_exchange_strong(&pieces[i].low, &none, low))
			continue;
		atomic_store(&pieces[i].bytes, bytes);
		return;
	}
}

static void leave(uintptr_t low)
{
	for (unsigned i = 0; i < D9__MAPPED_MAX; i++)
		if (atomic_load_explicit(&pieces[i].low, memory_order_relaxed) == low) {
			atomic_store(&pieces[i].bytes, 0);
			atomic_store(&pieces[i].low, 0);
			return;
		}
}

void d9__mapped_limit(void)
{
	atomic_store_explicit(&is_limited, true, memory_order_relaxed);
}

void d9__mapped_unlock(const void *memory, size_t bytes)
{
	if (atomic_load_explicit(&is_limited, memory_order_relaxed))
		munlock(memory, bytes);
}

void *d9__map(size_t bytes)
{
	void *memory = MAP_FAILED;

	if (may_call())
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	d9__mapped_unlock(memory, bytes);
	enter((uintptr_t)memory, bytes);
	return memory;
}

void *d9__remap(void *memory, size_t bytes, size_t to)
{
	void *moved;

	if (!may_call())
		return NULL;
	/* Before: another thread's may come to lie there. */
	leave((uintptr_t)memory);
	moved = mremap(memory, bytes, to, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED) {
		enter((uintptr_t)memory, bytes);
		return NULL;
	}
	d9__mapped_unlock(moved, to);
	enter((uintptr_t)moved, to);
	return moved;
}

void d9__unmap(void *memory, size_t bytes)
{
	if (!may_call())
		return;
	leave((uintptr_t)memory);
	munmap(memory, bytes);
}

void d9__mapped_each(void (*fn)(void *arg, const void *memory, size_t bytes), void *arg)
{
	for (unsigned i = 0; i < D9__MAPPED_MAX; i++) {
		uintptr_t low = atomic_load(&pieces[i].low);
		size_t bytes = atomic_load(&pieces[i].bytes);

		if (low && bytes)
			fn(arg, (const void *)low, bytes);
	}
}
