/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The word of a chunk decides between those who want it at the same time:
 *
 *     owner seals:      OPEN    -> SEALED          add, so that a pin survives
 *     flush pops:       SEALED  -> TAKEN           by number from |full|: it alone has it
 *     a thread overruns SEALED  -> OPEN            by number from |full|, if not pinned
 *                       SEALED* -> LOST*           if pinned; flush frees it at the unpin
 *     flush pins:       OPEN    -> OPEN*           fails if the serial is not the expected one
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/test_point.h"
#include "ring/chunk.h"
#include "ring/event_types.h"
#include "ring/names.h"

#define STATE_MASK UINT64_C(0xff)
#define PIN        UINT64_C(0x100)
#define FREE_LOW   4
#define FULL_WAKE  8 /* so many wait to be written: more than that at once is no cheaper */

static _Atomic(uintptr_t) waker; /* void (*)(void) */
static _Atomic(bool) recycling;

static enum d9__chunk_state state_of(uint64_t word)
{
	return (enum d9__chunk_state)(word & STATE_MASK);
}

uint32_t d9__chunk_full_count(void)
{
	return d9__ring.base ? d9__queue_count(d9__ring.full) : 0;
}

uint32_t d9__chunk_free_count(void)
{
	return d9__ring.base ? d9__queue_count(d9__ring.free) : 0;
}

bool d9__chunk_full_waits(void)
{
	return d9__queue_waits(d9__ring.full);
}

bool d9__chunk_any_sealed(void)
{
	uint32_t n = atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++)
		if (state_of(atomic_load_explicit(&d9__chunk_at(i)->word, memory_order_acquire)) ==
		    D9__CHUNK_SEALED)
			return true;
	return false;
}

uint32_t d9__chunk_sealed_count(void)
{
	return d9__ring.base ? atomic_load_explicit(&d9__ring.full->newest, memory_order_relaxed) : 0;
}

void d9__chunk_set_recycling(bool on)
{
	atomic_store_explicit(&recycling, on, memory_order_release);
}

static bool is_recycling(void)
{
	return atomic_load_explicit(&recycling, memory_order_relaxed);
}

void d9__chunk_set_waker(void (*wake)(void))
{
	atomic_store_explicit(&waker, (uintptr_t)wake, memory_order_release);
}

/* ---- producers ---- */

static struct d9__chunk_header *open_header(const struct d9__slot *slot)
{
	return (struct d9__chunk_header *)(void *)(slot->batch - D9__CHUNK_HEADER);
}

static uint32_t chunk_number(const struct d9__chunk_header *header)
{
	size_t offset = (size_t)((const uint8_t *)header - d9__ring.base);

	return (uint32_t)((offset - D9__RING_CHUNKS_AT) / D9__CHUNK_SIZE);
}

static uint32_t events_left(const struct d9__chunk_header *header)
{
	return header->events - atomic_load_explicit(&header->taken_events, memory_order_relaxed);
}

static void count_overrun(const struct d9__chunk_header *header)
{
	if (is_recycling()) {
		atomic_fetch_add_explicit(&d9__ring.control->recycled, events_left(header),
					  memory_order_relaxed);
		return;
	}
	d9__loss_add(header->slot, D9__LOSS_OVERRUN, events_left(header),
		     atomic_load_explicit(&header->first_ns, memory_order_relaxed),
		     atomic_load_explicit(&header->last_ns, memory_order_relaxed));
}

/* Take the full chunk |header|, popped by us, for ourselves.  False: flush has it pinned. */
static bool overrun(struct d9__chunk_header *header)
{
	uint64_t word = atomic_load_explicit(&header->word, memory_order_acquire);

	while (!(word & PIN)) {
		/* acquire: the owner's final words; release: what a reader pinned is not overwritten */
		if (atomic_compare_exchange_weak_explicit(&header->word, &word, D9__CHUNK_FREE,
							  memory_order_acq_rel,
							  memory_order_acquire)) {
			count_overrun(header);
			D9__TEST_POINT(OVERRUN);
			return true;
		}
	}
	/*
	 * Still pinned: the thread that unpins it frees it.  Unpinned in between: it is ours after
	 * all.
	 */
	word = atomic_fetch_add_explicit(&header->word, D9__CHUNK_LOST - D9__CHUNK_SEALED,
					 memory_order_acq_rel);
	if (word & PIN)
		return false;
	count_overrun(header);
	return true;
}

/* Enough waits to be written, or half of the ring; or the next threads find nothing, where there
 * could be more. */
static void flush_wake(void)
{
	void (*wake)(void) = (void (*)(void))atomic_load_explicit(&waker, memory_order_acquire);
	uint32_t chunks = atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed);
	bool low = d9__queue_count(d9__ring.free) < FREE_LOW && chunks < d9__ring.chunks_max;
	uint32_t full = is_recycling() ? 0 : d9__chunk_full_count();

	if (wake && (low || full >= FULL_WAKE || 2 * full >= chunks))
		wake();
}

/* The oldest full chunk, what was in it lost by this, or NULL. */
static struct d9__chunk_header *chunk_overrun(void)
{
	uint32_t chunk;

	while (d9__queue_pop(d9__ring.full, &chunk))
		if (overrun(d9__chunk_at(chunk)))
			return d9__chunk_at(chunk);
	return NULL;
}

/* A chunk to write, or NULL: a free one, else a new one, else one that is overrun; in flight mode before that. */
static struct d9__chunk_header *chunk_take(void)
{
	struct d9__chunk_header *header = NULL;
	uint32_t chunk;

	if (d9__queue_pop_any(d9__ring.free, &chunk)) {
		flush_wake();
		return d9__chunk_at(chunk);
	}
	if (is_recycling())
		header = chunk_overrun();
	if (!header && d9__ring_add_chunk(&chunk)) {
		flush_wake();
		return d9__chunk_at(chunk);
	}
	return header ? header : chunk_overrun();
}

/* Never 0, which no chunk has. */
static uint32_t new_stamp(void)
{
	static _Atomic(uint32_t) latest;
	uint32_t stamp;

	do {
		stamp = atomic_fetch_add_explicit(&latest, 1, memory_order_relaxed) + 1;
	} while (!stamp);
	return stamp;
}

static void generation_next(struct d9__slot *slot)
{
	slot->stamp = new_stamp();
	slot->generation = (uint16_t)(slot->generation + 1);
	if (slot->generation == 0) {
		d9__name_table_clear(slot->names);
		slot->generation = 1;
	}
	slot->name_count = 0;
}

static bool chunk_open(struct d9__slot *slot)
{
	struct d9__chunk_header *header = chunk_take();
	size_t len;
	const uint8_t *preamble = d9__preamble(&len);

	if (!header)
		return false;
	D9__TEST_POINT(OPEN_TAKEN);
	slot->serial++;
	header->slot = (uint16_t)d9__slot_index(slot);
	header->entry_state = slot->worker_state;
	header->entry_worker = (uint16_t)slot->worker;
	header->entry_task = d9__slot_task(slot);
	header->bytes = header->events = 0;
	atomic_store_explicit(&header->last_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&header->first_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&header->taken_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&header->taken_events, 0, memory_order_relaxed);
	atomic_store_explicit(&header->word, (uint64_t)slot->serial << 32 | D9__CHUNK_OPEN,
			      memory_order_release);
	D9__TEST_POINT(OPEN_HEADER);
	slot->batch = (uint8_t *)header + D9__CHUNK_HEADER;
	memcpy(slot->batch, preamble, len);
	slot->time_base = 0;
	generation_next(slot);
	/*
	 * The length before the name, because a kill in between then leaves a chunk that no slot
	 * names.
	 */
	atomic_store_explicit(&slot->published, len, memory_order_release);
	D9__TEST_POINT(OPEN_PREAMBLE);
	atomic_store_explicit(&slot->open, (uint64_t)slot->serial << 32 | (chunk_number(header) + 1),
			      memory_order_release);
	D9__TEST_POINT(OPEN_NAMED);
	return true;
}

void d9__chunk_seal(struct d9__slot *slot)
{
	uint64_t published = atomic_load_explicit(&slot->published, memory_order_relaxed);
	struct d9__chunk_header *header;

	if (!published)
		return;
	header = open_header(slot);
	header->bytes = (uint32_t)published;
	header->events = (uint32_t)(published >> 32);
	atomic_store_explicit(&header->last_ns,
			      slot->last_ns > slot->time_base ? slot->last_ns : slot->time_base,
			      memory_order_relaxed);
	header->exit_state = slot->worker_state;
	header->exit_worker = (uint16_t)slot->worker;
	header->exit_task = d9__slot_task(slot);
	D9__TEST_POINT(SEAL_LENGTH);
	/*
	 * release: pairs with the acquire of the thread that pops it; read-modify-write: keeps a
	 * pin
	 */
	atomic_fetch_add_explicit(&header->word, D9__CHUNK_SEALED - D9__CHUNK_OPEN,
				  memory_order_acq_rel);
	D9__TEST_POINT(SEAL_STATE);
	atomic_store_explicit(&slot->published, 0, memory_order_relaxed);
	/* release: who reads a later published word sees that |open| changed before it */
	atomic_store_explicit(&slot->open, 0, memory_order_release);
	D9__TEST_POINT(SEAL_CLOSED);
	d9__queue_push(d9__ring.full, chunk_number(header));
	D9__TEST_POINT(SEAL_QUEUED);
	flush_wake();
}

bool d9__chunk_room(struct d9__slot *slot, uint32_t bytes)
{
	uint32_t used = (uint32_t)atomic_load_explicit(&slot->published, memory_order_relaxed);
	size_t preamble_len;

	if (used && used + bytes <= D9__BATCH_MAX)
		return true;
	d9__preamble(&preamble_len);
	if (bytes > D9__BATCH_MAX - preamble_len)
		return false;
	d9__chunk_seal(slot);
	return chunk_open(slot);
}

uint32_t d9__chunk_grab(void)
{
	struct d9__chunk_header *header = NULL;
	uint32_t chunk;

	if (is_recycling())
		header = chunk_take();
	else if (d9__queue_pop_any(d9__ring.free, &chunk))
		header = d9__chunk_at(chunk);
	if (!header)
		return 0;
	atomic_store_explicit(&header->word, D9__CHUNK_SIDE, memory_order_release);
	return chunk_number(header) + 1;
}

/* ---- the flush thread ---- */

static void batch_fill(struct d9__batch *batch, const struct d9__chunk_header *header)
{
	const struct d9__slot *slot = &d9__ring.slots[header->slot];

	*batch = (struct d9__batch){
		.bytes = (const uint8_t *)header + D9__CHUNK_HEADER,
		.taken_bytes = atomic_load_explicit(&header->taken_bytes, memory_order_relaxed),
		.taken_events = atomic_load_explicit(&header->taken_events, memory_order_relaxed),
		.chunk = chunk_number(header),
		.slot = header->slot,
		.tid = d9__slot_tid(slot),
		.first_ns = atomic_load_explicit(&header->first_ns, memory_order_relaxed),
		.entry = { header->entry_task, header->entry_worker,
			   (enum d9__worker_state)header->entry_state },
		.exit = { 0, D9__WORKER_NONE, D9__WORKER_UNKNOWN },
	};
}

static void chunk_free(struct d9__chunk_header *header)
{
	/* release: our reads of it are over before another thread writes it */
	atomic_store_explicit(&header->word, D9__CHUNK_FREE, memory_order_release);
	d9__queue_push(d9__ring.free, chunk_number(header));
}

/* All of a sealed chunk; |word| is its state word. */
static void batch_fill_whole(struct d9__batch *batch, const struct d9__chunk_header *header,
			     uint64_t word)
{
	batch_fill(batch, header);
	batch->serial = (uint32_t)(word >> 32);
	batch->len = header->bytes;
	batch->events = header->events;
	batch->last_ns = atomic_load_explicit(&header->last_ns, memory_order_relaxed);
	batch->exit = (struct d9__entry_state){ header->exit_task, header->exit_worker,
						(enum d9__worker_state)header->exit_state };
}

int d9__chunk_pop_full(struct d9__batch *batch)
{
	struct d9__chunk_header *header;
	uint64_t word;
	uint32_t chunk, ticket = d9__ring.base ? d9__queue_pop(d9__ring.full, &chunk) : 0;

	if (!ticket)
		return 0;
	header = d9__chunk_at(chunk);
	word = atomic_fetch_add_explicit(&header->word, D9__CHUNK_TAKEN - D9__CHUNK_SEALED,
					 memory_order_acq_rel);
	batch_fill_whole(batch, header, word);
	batch->ticket = ticket;
	return 1;
}

void d9__chunk_release(const struct d9__batch *batch)
{
	chunk_free(d9__chunk_at(batch->chunk));
}

void d9__chunk_put_back(const struct d9__batch *batch)
{
	const struct d9__chunk_hold held = { batch->chunk, batch->ticket };

	atomic_fetch_sub_explicit(&d9__chunk_at(batch->chunk)->word, D9__CHUNK_TAKEN - D9__CHUNK_SEALED,
				  memory_order_acq_rel);
	d9__chunk_let_go(&held);
}

/* Pin the chunk that |open| names, if it still is what |open| says. */
static struct d9__chunk_header *pin(uint64_t open)
{
	uint32_t chunk = (uint32_t)open - 1;
	uint64_t word = (open >> 32 << 32) | D9__CHUNK_OPEN;
	struct d9__chunk_header *header;

	if (chunk >= atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed))
		return NULL;
	header = d9__chunk_at(chunk);
	if (!atomic_compare_exchange_strong_explicit(&header->word, &word, word | PIN,
						     memory_order_acq_rel, memory_order_relaxed))
		return NULL;
	return header;
}

int d9__chunk_pin_open(uint32_t index, struct d9__batch *batch)
{
	struct d9__slot *slot = &d9__ring.slots[index];
	uint64_t open = atomic_load_explicit(&slot->open, memory_order_acquire), published;
	struct d9__chunk_header *header = open ? pin(open) : NULL;

	if (!header)
		return 0;
	/* acquire: the bytes; and if it belongs to a later chunk, |open| has changed below */
	published = atomic_load_explicit(&slot->published, memory_order_acquire);
	batch_fill(batch, header);
	batch->serial = (uint32_t)(open >> 32);
	batch->len = (uint32_t)published;
	batch->events = (uint32_t)(published >> 32);
	if (atomic_load_explicit(&slot->open, memory_order_acquire) != open || !published ||
	    batch->events == batch->taken_events) {
		d9__chunk_unpin(batch, false);
		return 0;
	}
	return 1;
}

void d9__chunk_unpin(const struct d9__batch *batch, bool taken)
{
	struct d9__chunk_header *header = d9__chunk_at(batch->chunk);

	if (taken) {
		atomic_store_explicit(&header->taken_bytes, batch->len, memory_order_relaxed);
		atomic_store_explicit(&header->taken_events, batch->events, memory_order_relaxed);
	}
	/* release: |taken| before anybody counts what is left; acquire: the final words, if lost */
	if (state_of(atomic_fetch_and_explicit(&header->word, ~PIN, memory_order_acq_rel)) ==
	    D9__CHUNK_LOST) {
		count_overrun(header);
		chunk_free(header);
	}
}

/* ---- dumps: full chunks that stay where they are ---- */

static int by_ticket(const void *a, const void *b)
{
	const struct d9__chunk_hold *x = a, *y = b;

	return (int32_t)(x->ticket - y->ticket) < 0 ? -1 : 1;
}

/*
 * Full chunks behind |newest| (NULL: all) with anything at or after |from_ns|, oldest first;
 * |*others| counts the rest.
 */
static uint32_t list_full(struct d9__chunk_hold *list, const struct d9__chunk_hold *newest,
			  uint64_t from_ns, uint32_t *others)
{
	uint32_t limit = atomic_load_explicit(&d9__ring.full->limit, memory_order_relaxed), n = 0;

	*others = 0;
	for (uint32_t i = 0; i < limit; i++) {
		uint32_t ticket = atomic_load_explicit(&d9__ring.full->ticket[i],
						       memory_order_acquire);

		if (!ticket)
			continue;
		/* It may be recycled as we look; then taking it by this ticket fails. */
		if ((!newest || (int32_t)(ticket - newest->ticket) > 0) &&
		    atomic_load_explicit(&d9__chunk_at(i)->last_ns, memory_order_relaxed) >= from_ns)
			/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller's array */
			list[n++] = (struct d9__chunk_hold) { i, ticket };
		else
			++*others;
	}
	if (n)
		d9__sort(list, n, sizeof(*list), by_ticket);
	return n;
}

uint32_t d9__chunk_hold(struct d9__chunk_hold *held, uint32_t n_held, uint64_t from_ns,
			uint32_t spare)
{
	struct d9__chunk_hold *list = held + n_held;
	uint32_t others, n, first = 0, i;

	n = list_full(list, n_held ? list - 1 : NULL, from_ns, &others);
	others += d9__chunk_free_count();
	if (others < spare)
		first = spare - others < n ? spare - others : n;
	/* From the newest down, since threads recycle from the oldest up. */
	for (i = n; i > first && d9__queue_take(d9__ring.full, list[i - 1].chunk, list[i - 1].ticket); i--)
		continue;
	memmove(list, list + i, (n - i) * sizeof(*list));
	return n_held + n - i;
}

void d9__chunk_held_batch(const struct d9__chunk_hold *held, struct d9__batch *batch)
{
	const struct d9__chunk_header *header = d9__chunk_at(held->chunk);

	batch_fill_whole(batch, header, atomic_load_explicit(&header->word, memory_order_acquire));
}

void d9__chunk_let_go(const struct d9__chunk_hold *held)
{
	d9__queue_put_back(d9__ring.full, held->chunk, held->ticket);
}
