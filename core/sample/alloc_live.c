/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part has the blocks with the same first 6 bits of their hashes: their bits are in words of d9__alloc_seen that no
 * other part writes, and so are the heads of their chains.  Numbers of entries count from 1; 0 is none.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/mapped.h"
#include "sample/alloc_live.h"

#define PARTS	   64
#define ENTRIES	   1024 /* of a part */
#define CHAIN_BITS 10	/* of a part's chains: on average one entry each when it is full */
#define CHAINS	   (1u << CHAIN_BITS)

struct entry {
	struct d9__alloc_block block;
	uint16_t next;	       /* of the chain, or free */
	uint16_t older, newer; /* by age, in the part */
};

/* Under |lock|. */
struct part {
	pthread_mutex_t lock;
	uint16_t oldest, newest;
	uint16_t free;	/* given back */
	uint16_t fresh; /* ever used */
	uint16_t chains[CHAINS];
	struct entry entries[ENTRIES];
};

struct d9__alloc_seen d9__alloc_seen;

static _Atomic(struct part *) parts; /* stored last (release); never freed */

static void begin(struct part *part)
{
	part->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	part->oldest = part->newest = part->free = part->fresh = 0;
	memset(part->chains, 0, sizeof(part->chains));
}

int d9__alloc_live_init(void)
{
	struct part *fresh;

	if (atomic_load_explicit(&parts, memory_order_relaxed))
		return 0;
	/* Of pages: those of entries that are never used are never touched. */
	fresh = d9__map(PARTS * sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	for (unsigned i = 0; i < PARTS; i++)
		begin(&fresh[i]);
	atomic_store_explicit(&parts, fresh, memory_order_release);
	return 0;
}

/* The part of |hash|, locked; NULL: there is none, or it may not be waited for. */
static struct part *lock_part(uint32_t hash, bool may_wait)
{
	struct part *all = atomic_load_explicit(&parts, memory_order_acquire);
	struct part *part = all ? &all[hash >> (D9__ALLOC_BITS - 6)] : NULL;

	if (!part || (may_wait ? pthread_mutex_lock(&part->lock) : pthread_mutex_trylock(&part->lock)))
		return NULL;
	return part;
}

static uint16_t *chain_of(struct part *part, uint32_t hash)
{
	return &part->chains[hash >> (D9__ALLOC_BITS - 6 - CHAIN_BITS) & (CHAINS - 1)];
}

static struct entry *entry_at(struct part *part, uint16_t number)
{
	return &part->entries[number - 1];
}

static void set_bit(uint32_t hash, bool on)
{
	_Atomic(uint64_t) *word = &d9__alloc_seen.words[hash >> 6];
	uint64_t bit = UINT64_C(1) << (hash & 63), bits = atomic_load_explicit(word, memory_order_relaxed);

	atomic_store_explicit(word, on ? bits | bit : bits & ~bit, memory_order_relaxed);
}

/* ---- under a part's lock ---- */

static void unlink_age(struct part *part, const struct entry *entry)
{
	if (entry->older)
		entry_at(part, entry->older)->newer = entry->newer;
	else
		part->oldest = entry->newer;
	if (entry->newer)
		entry_at(part, entry->newer)->older = entry->older;
	else
		part->newest = entry->older;
}

static bool any_with(struct part *part, uint32_t hash)
{
	for (uint16_t i = *chain_of(part, hash); i; i = entry_at(part, i)->next)
		if (d9__alloc_hash(entry_at(part, i)->block.address) == hash)
			return true;
	return false;
}

static bool remove_block(struct part *part, uint64_t address, struct d9__alloc_block *out)
{
	uint32_t hash = d9__alloc_hash(address);
	uint16_t *place = chain_of(part, hash);

	while (*place && entry_at(part, *place)->block.address != address)
		place = &entry_at(part, *place)->next;
	if (!*place)
		return false;

	uint16_t number = *place;
	struct entry *entry = entry_at(part, number);

	*out = entry->block;
	*place = entry->next;
	unlink_age(part, entry);
	entry->next = part->free;
	part->free = number;
	if (!any_with(part, hash))
		set_bit(hash, false);
	return true;
}

/* A free entry; 0: there is none. */
static uint16_t free_entry(struct part *part)
{
	uint16_t number = part->free;

	if (number)
		part->free = entry_at(part, number)->next;
	else if (part->fresh < ENTRIES)
		number = ++part->fresh;
	return number;
}

static void put_block(struct part *part, uint16_t number, const struct d9__alloc_block *block)
{
	uint32_t hash = d9__alloc_hash(block->address);
	uint16_t *chain = chain_of(part, hash);
	struct entry *entry = entry_at(part, number);

	*entry = (struct entry){ .block = *block, .next = *chain, .older = part->newest };
	*chain = number;
	if (part->newest)
		entry_at(part, part->newest)->newer = number;
	else
		part->oldest = number;
	part->newest = number;
	set_bit(hash, true);
}

/* ---- the set ---- */

enum d9__live_added d9__alloc_live_add(const struct d9__alloc_block *block, bool may_wait)
{
	struct part *part = lock_part(d9__alloc_hash(block->address), may_wait);
	enum d9__live_added added = D9__LIVE_ADDED;
	struct d9__alloc_block old;
	uint16_t number;

	if (!part)
		return D9__LIVE_REFUSED;
	/* Nobody saw how an earlier block at this address was freed. */
	remove_block(part, block->address, &old);
	number = free_entry(part);
	if (!number) {
		remove_block(part, entry_at(part, part->oldest)->block.address, &old);
		number = free_entry(part);
		added = D9__LIVE_EVICTED;
	}
	put_block(part, number, block);
	pthread_mutex_unlock(&part->lock);
	return added;
}

bool d9__alloc_live_take(uint64_t address, struct d9__alloc_block *out, bool may_wait)
{
	struct part *part = lock_part(d9__alloc_hash(address), may_wait);
	bool found;

	if (!part)
		return false;
	found = remove_block(part, address, out);
	pthread_mutex_unlock(&part->lock);
	return found;
}

void d9__alloc_live_forget_in_child(void)
{
	struct part *all = atomic_load_explicit(&parts, memory_order_relaxed);

	for (unsigned i = 0; all && i < PARTS; i++)
		if (all[i].fresh)
			begin(&all[i]);
		else
			all[i].lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	for (unsigned i = 0; all && i < D9__ALLOC_WORDS; i++)
		if (atomic_load_explicit(&d9__alloc_seen.words[i], memory_order_relaxed))
			atomic_store_explicit(&d9__alloc_seen.words[i], 0, memory_order_relaxed);
}
