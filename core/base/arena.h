/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: memory that is given out piece by piece and taken back all at once. */

#pragma once

#include <stddef.h>
#include <stdint.h>

struct d9__arena_block;

/* All zero is an empty arena. */
struct d9__arena {
	struct d9__arena_block *blocks; /* newest first; pieces come from it */
	uint8_t *next, *end;            /* of the newest block */
	size_t given_bytes;             /* since the last reset */
};

/* |len| bytes, aligned for 64-bit integers and pointers; NULL if out of memory. */
void *d9__arena_alloc(struct d9__arena *arena, size_t len);

/* Take everything back; one block is kept for the next round. */
void d9__arena_reset(struct d9__arena *arena);

void d9__arena_release(struct d9__arena *arena);
