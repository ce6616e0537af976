/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/arena.h"

#include <stdlib.h>

#include "base/heap.h"

#define BLOCK_BYTES 4096
#define KEEP_BYTES  ((size_t)1 << 20) /* a larger block is not kept for the next round */
#define ALIGN       8

struct d9__arena_block {
	struct d9__arena_block *older;
	size_t len;
	_Alignas(ALIGN) uint8_t bytes[];
};

static void use(struct d9__arena *arena, struct d9__arena_block *block)
{
	arena->blocks = block;
	arena->next = block->bytes;
	arena->end = block->bytes + block->len;
}

static int grow(struct d9__arena *arena, size_t len)
{
	/* Doubling keeps the number of blocks, and of calls, logarithmic. */
	size_t want = arena->blocks ? arena->blocks->len * 2 : BLOCK_BYTES;
	struct d9__arena_block *block;

	if (want > KEEP_BYTES)
		want = KEEP_BYTES;
	if (want < len)
		want = len;
	block = d9__malloc(sizeof(*block) + want);
	if (!block)
		return -1;
	block->older = arena->blocks;
	block->len = want;
	use(arena, block);
	return 0;
}

void *d9__arena_alloc(struct d9__arena *arena, size_t len)
{
	void *piece;

	if (len > SIZE_MAX / 2)
		return NULL;
	len = (len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (len > (size_t)(arena->end - arena->next) && grow(arena, len) != 0)
		return NULL;
	if (!arena->blocks && grow(arena, len) != 0)
		return NULL;
	piece = arena->next;
	arena->next += len;
	arena->given_bytes += len;
	return piece;
}

static void free_blocks(struct d9__arena_block *block)
{
	while (block) {
		struct d9__arena_block *older = block->older;

		d9__free(block);
		block = older;
	}
}

void d9__arena_reset(struct d9__arena *arena)
{
	struct d9__arena_block *block = arena->blocks;

	if (!arena->given_bytes)
		return;
	arena->given_bytes = 0;
	if (block->len > KEEP_BYTES) {
		d9__arena_release(arena);
		return;
	}
	free_blocks(block->older);
	block->older = NULL;
	use(arena, block);
}

void d9__arena_release(struct d9__arena *arena)
{
	free_blocks(arena->blocks);
	*arena = (struct d9__arena) { 0 };
}
