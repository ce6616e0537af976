/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live set: the sampled allocations that are not freed yet.
 *
 * Every free() of the program asks whether its block is one of them, and nearly none is: one bit of a table, found by a
 * hash of the address, says so.  Only where the bit is set, a lock is taken and the block looked for.
 *
 * There is room for 65,536, in 64 parts of 1,024; where a part is full, its oldest makes room.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/export.h>

#define D9__ALLOC_BITS 19 /* of a hash: 64 KiB of bits */

/* A sampled allocation. */
struct d9__alloc_block {
	uint64_t address, size;
	uint64_t alloc_ns; /* the time of its AllocEvent */
};

#define D9__ALLOC_WORDS (1u << (D9__ALLOC_BITS - 6))

/* Bit |hash| is set if some live block has that hash.  Written under the lock of the hash's part. */
struct d9__alloc_seen {
	_Atomic(uint64_t) words[D9__ALLOC_WORDS];
};

extern D9_API struct d9__alloc_seen d9__alloc_seen;

static inline uint32_t d9__alloc_hash(uint64_t address)
{
	return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - D9__ALLOC_BITS));
}

/* Whether |block| may be a live one.  What every free() costs. */
static inline bool d9__alloc_maybe_live(const void *block)
{
	uint32_t hash = d9__alloc_hash((uintptr_t)block);

	/* relaxed: who frees a block has been given it, with whatever was written before */
	return __builtin_expect(
		(atomic_load_explicit(&d9__alloc_seen.words[hash >> 6], memory_order_relaxed) >> (hash & 63)) & 1, 0);
}

/* Make room for the set.  Idempotent.  0 or -ENOMEM.  One thread at a time. */
int d9__alloc_live_init(void);

/* The block that d9__alloc_live_add() evicted for it. */
enum d9__live_added {
	D9__LIVE_ADDED,
	D9__LIVE_EVICTED, /* the oldest of its part */
	D9__LIVE_REFUSED, /* it itself: there is no room yet, or |may_wait| is false and the lock was held */
};

/*
 * |may_wait|: false where a lock may never be given back, as in a copy of the process made without atfork handlers.
 * Not in a handler that may have interrupted any of these.
 */
enum d9__live_added d9__alloc_live_add(const struct d9__alloc_block *block, bool may_wait);

/* Take the block at |address| out.  False: it is not there, or its lock was held. */
bool d9__alloc_live_take(uint64_t address, struct d9__alloc_block *out, bool may_wait);

/* In a forked child: what the parent sampled is not in this process's trace.  The only thread. */
void d9__alloc_live_forget_in_child(void);
