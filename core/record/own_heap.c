/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of libdial9, over pages of its own: see base/heap.h.
 *
 * Before each block lies its size.  Small blocks have one of a few sizes, are cut from regions, and when they are freed wait in
 * the list of their size; they are never given back to the kernel.  A large one is a mapping by itself.
 *
 * No thread ever waits here.  One at a time is in the lists; another one that finds it there, also in a signal handler, takes a
 * mapping for the block, or leaves a freed one at |returned| for the next thread.  So a thread of the program never waits for one of
 * lower priority, and a raw clone() of the process, in which no thread leaves the lists any more, works on with mappings.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/mapped.h"
#include "ring/clock.h"

#define REGION_BYTES ((size_t)128 << 10)
#define SMALLEST     ((size_t)32)
#define LARGEST      ((size_t)32 << 10)
#define SIZES	     21 /* SMALLEST, 1.5 times that, twice that, ..., LARGEST */
#define PAGE	     ((size_t)4096)

/* Before the bytes of a block, which are aligned as malloc()'s. */
struct head {
	_Alignas(16) size_t bytes; /* with this head */
	bool mapped;
};

struct free_block {
	struct head head;
	struct free_block *next;
};

static struct {
	_Atomic(bool) entered;
	struct free_block *list[SIZES];
	char *next, *end; /* what is left of the region */
	_Atomic(struct free_block *) returned;
} heap;

/* valgrind would see neither overruns nor leaks here. */
static bool is_watched(void)
{
	return d9__clock_under_valgrind();
}

static bool enter(void)
{
	return !atomic_exchange_explicit(&heap.entered, true, memory_order_acquire);
}

static void leave(void)
{
	atomic_store_explicit(&heap.entered, false, memory_order_release);
}

void d9__heap_fork_child(void)
{
	if (atomic_load_explicit(&heap.entered, memory_order_relaxed)) {
		/* Another thread was in the middle of a change.  What waits in the lists is lost. */
		memset(heap.list, 0, sizeof(heap.list));
		heap.next = heap.end = NULL;
		atomic_store_explicit(&heap.returned, NULL, memory_order_relaxed);
	}
	leave();
}

/* ---- sizes ---- */

static size_t size_at(unsigned i)
{
	return (i % 2 ? SMALLEST + SMALLEST / 2 : SMALLEST) << i / 2;
}

/* The first size that holds |bytes|, at most LARGEST. */
static unsigned place_of(size_t bytes)
{
	unsigned i = 0;

	while (size_at(i) < bytes)
		i++;
	return i;
}

static struct head *head_of(void *block)
{
	return (struct head *)block - 1;
}

/* ---- mappings ---- */

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

static struct head *new_mapping(size_t bytes)
{
	struct head *head = d9__map(bytes = whole_pages(bytes));

	if (head)
		*head = (struct head) { .bytes = bytes, .mapped = true };
	return head;
}

static void *resize_mapping(struct head *head, size_t bytes)
{
	bytes = whole_pages(bytes);
	if (bytes != head->bytes) {
		head = d9__remap(head, head->bytes, bytes);
		if (!head)
			return NULL;
		head->bytes = bytes;
	}
	return head + 1;
}

/* ---- lists; between enter() and leave() ---- */

static void put(struct free_block *block)
{
	unsigned i = place_of(block->head.bytes);

	block->next = heap.list[i];
	heap.list[i] = block;
}

static void put_returned(void)
{
	struct free_block *block = atomic_exchange_explicit(&heap.returned, NULL, memory_order_acquire);

	while (block) {
		struct free_block *next = block->next;

		put(block);
		block = next;
	}
}

/* The rest of a region is at most LARGEST, and lost.  NULL: there is no memory. */
static struct head *cut(size_t bytes)
{
	struct head *head;

	if ((size_t)(heap.end - heap.next) < bytes) {
		char *region = d9__map(REGION_BYTES);

		if (!region)
			return NULL;
		heap.next = region;
		heap.end = region + REGION_BYTES;
	}
	head = (struct head *)(void *)heap.next;
	heap.next += bytes;
	*head = (struct head) { .bytes = bytes };
	return head;
}

static struct head *take(unsigned i)
{
	struct free_block *block = heap.list[i];

	if (!block)
		return cut(size_at(i));
	heap.list[i] = block->next;
	return &block->head;
}

/* ---- the functions ---- */

void *d9__malloc(size_t size)
{
	struct head *head;
	size_t bytes;

	if (is_watched())
		return malloc(size);
	if (size > PTRDIFF_MAX - PAGE) {
		errno = ENOMEM;
		return NULL;
	}
	bytes = size + sizeof(*head);
	if (bytes > LARGEST || !enter()) {
		head = new_mapping(bytes);
	} else {
		put_returned();
		head = take(place_of(bytes));
		leave();
	}
	return head ? head + 1 : NULL;
}

void *d9__calloc(size_t n, size_t size)
{
	size_t bytes;
	void *block;

	if (is_watched())
		return calloc(n, size);
	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	block = d9__malloc(bytes);
	if (block && !head_of(block)->mapped)
		memset(block, 0, bytes);
	return block;
}

void d9__free(void *block)
{
	int saved = errno;

	if (is_watched()) {
		free(block);
	} else if (block && head_of(block)->mapped) {
		d9__unmap(head_of(block), head_of(block)->bytes);
	} else if (block) {
		struct free_block *freed = (struct free_block *)(void *)head_of(block);

		if (enter()) {
			put(freed);
			leave();
		} else {
			freed->next = atomic_load_explicit(&heap.returned, memory_order_relaxed);
			while (!atomic_compare_exchange_weak_explicit(&heap.returned, &freed->next, freed, memory_order_release,
								      memory_order_relaxed))
				continue;
		}
	}
	errno = saved;
}

void *d9__realloc(void *block, size_t size)
{
	size_t room;
	void *moved;

	if (is_watched())
		return realloc(block, size);
	if (!block)
		return d9__malloc(size);
	room = head_of(block)->bytes - sizeof(struct head);
	if (head_of(block)->mapped && size + sizeof(struct head) > LARGEST && size <= PTRDIFF_MAX - PAGE)
		return resize_mapping(head_of(block), size + sizeof(struct head));
	if (size <= room && !head_of(block)->mapped)
		return block;
	moved = d9__malloc(size);
	if (moved) {
		memcpy(moved, block, size < room ? size : room);
		d9__free(block);
	}
	return moved;
}
