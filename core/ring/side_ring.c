/* SPDX-License-Identifier: Apache-2.0 */
/*
 * |head| and |tail| count bytes since the beginning; the place is the count modulo the capacity.
 * A record never crosses the end: a padding record fills what is left there.  Everything between
 * |head| and |tail| + capacity is zero, so a record that was reserved but not finished has length
 * word 0 and stops the consumer.
 */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "ring/chunk.h"
#include "ring/side_ring.h"
#include "ring/slot.h"

#define DATA_AT  128u
#define CAPACITY (D9__CHUNK_SIZE - DATA_AT)
#define PADDING  UINT32_C(0x80000000)

struct side {
	struct d9__chunk_header header;
	_Atomic(uint64_t) head; /* reserved; producers */
	_Atomic(uint64_t) tail; /* consumed; flush thread */
};

struct record {
	_Atomic(uint32_t) size; /* of all of it; 0 until finished */
	uint32_t type_id;
	uint64_t ns;
	uint32_t len;   /* of the payload */
	uint32_t outer; /* slot->side_open while this one is being made */
};

static_assert(sizeof(struct side) <= DATA_AT, "positions fit before the data");
static_assert(CAPACITY % 8 == 0 && sizeof(struct record) % 8 == 0, "records stay aligned");

static struct record *record_at(struct side *side, uint64_t pos)
{
	return (struct record *)(void *)((uint8_t *)side + DATA_AT + pos % CAPACITY);
}

static struct side *side_of(const struct d9__slot *slot)
{
	uint32_t chunk = atomic_load_explicit(&slot->side, memory_order_acquire);

	return chunk ? (struct side *)(void *)d9__chunk_at(chunk - 1) : NULL;
}

/* A handler may come between grab and store: then its ring is used and ours goes back. */
static struct side *side_new(struct d9__slot *slot)
{
	uint32_t none = 0, chunk = d9__chunk_grab();
	struct side *side;

	if (!chunk)
		return side_of(slot);
	side = (struct side *)(void *)d9__chunk_at(chunk - 1);
	memset((uint8_t *)side + D9__CHUNK_HEADER, 0, D9__CHUNK_SIZE - D9__CHUNK_HEADER);
	side->header.slot = (uint16_t)d9__slot_index(slot);
	/* release: pairs with the acquire in side_of() */
	if (!atomic_compare_exchange_strong_explicit(&slot->side, &none, chunk,
						     memory_order_release, memory_order_relaxed)) {
		atomic_store_explicit(&side->header.word, D9__CHUNK_FREE, memory_order_release);
		d9__queue_push(d9__ring.free, chunk - 1);
	}
	return side_of(slot);
}

/* Claim |size| bytes in one piece; 0 and the position, or -1 if there is no room. */
static int reserve(struct side *side, uint32_t size, uint64_t *pos)
{
	uint64_t head = atomic_load_explicit(&side->head, memory_order_relaxed);
	uint32_t pad;

	do {
		/* acquire: what the consumer gave back is zero */
		uint64_t tail = atomic_load_explicit(&side->tail, memory_order_acquire);
		uint64_t left = CAPACITY - head % CAPACITY;

		pad = left < size ? (uint32_t)left : 0;
		if (head + pad + size - tail > CAPACITY)
			return -1;
	} while (!atomic_compare_exchange_weak_explicit(&side->head, &head, head + pad + size,
							memory_order_relaxed,
							memory_order_relaxed));
	if (pad)
		atomic_store_explicit(&record_at(side, head)->size, PADDING | pad,
				      memory_order_release);
	*pos = head + pad;
	return 0;
}

bool d9__side_make(struct d9__slot *slot)
{
	return side_of(slot) || side_new(slot);
}

/* Bytes of a record with |payload|. */
static uint32_t size_of(uint32_t payload)
{
	return (uint32_t)sizeof(struct record) + ((payload + 7) & ~7u);
}

/* A record with room for |max| bytes, at |*pos|; NULL: lost and counted. */
static struct record *claim(struct d9__slot *slot, uint32_t type_id, uint64_t ns, uint32_t max, uint64_t *pos)
{
	struct side *side = side_of(slot);
	struct record *record;

	if (max > D9__SIDE_PAYLOAD_MAX) {
		d9__loss_add((int)d9__slot_index(slot), D9__LOSS_TOO_BIG, 1, ns, ns);
		return NULL;
	}
	if (!side)
		side = side_new(slot);
	if (!side || reserve(side, size_of(max), pos) != 0) {
		d9__loss_add((int)d9__slot_index(slot), D9__LOSS_SIDE_RING, 1, ns, ns);
		return NULL;
	}
	record = record_at(side, *pos);
	record->type_id = type_id;
	record->ns = ns;
	return record;
}

bool d9__side_put(struct d9__slot *slot, uint32_t type_id, uint64_t ns, const void *head, uint32_t head_len,
		  const void *body, uint32_t body_len)
{
	uint32_t len = head_len + body_len;
	uint64_t pos;
	struct record *record = claim(slot, type_id, ns, len, &pos);

	if (!record)
		return false;
	memcpy(record + 1, head, head_len);
	if (body_len)
		memcpy((uint8_t *)(record + 1) + head_len, body, body_len);
	record->len = len;
	/* release: pairs with the acquire in d9__side_take() */
	atomic_store_explicit(&record->size, size_of(len), memory_order_release);
	return true;
}

uint8_t *d9__side_begin(struct d9__slot *slot, uint32_t type_id, uint64_t ns, uint32_t max)
{
	uint64_t pos;
	struct record *record = claim(slot, type_id, ns, max, &pos);

	if (!record)
		return NULL;
	record->len = size_of(max);
	/* Handlers nest like brackets: one that comes here restores what it found. */
	record->outer = slot->side_open;
	atomic_signal_fence(memory_order_seq_cst);
	slot->side_open = (uint32_t)(pos % CAPACITY);
	return (uint8_t *)(record + 1);
}

void d9__side_end(struct d9__slot *slot, const uint8_t *end)
{
	struct record *record = record_at(side_of(slot), slot->side_open);
	uint32_t size = record->len;

	slot->side_open = record->outer;
	atomic_signal_fence(memory_order_seq_cst);
	record->len = (uint32_t)(end - (const uint8_t *)(record + 1));
	/* release: pairs with the acquire in d9__side_take() */
	atomic_store_explicit(&record->size, size, memory_order_release);
}

/* Zero what was consumed, then give it back (release: pairs with reserve()). */
static void consume(struct side *side, uint64_t tail, uint32_t size)
{
	struct record *record = record_at(side, tail);

	atomic_store_explicit(&record->size, 0, memory_order_relaxed);
	memset((uint8_t *)record + sizeof(record->size), 0, size - sizeof(record->size));
	atomic_store_explicit(&side->tail, tail + size, memory_order_release);
}

/* |size| at |pos| stays inside; of our own ring that goes without saying, of a dead one not. */
static bool is_sound(uint64_t pos, uint32_t size)
{
	uint64_t left = CAPACITY - pos % CAPACITY;

	return size % 8 == 0 && size <= left && size >= sizeof(uint64_t);
}

static int take(struct side *side, struct d9__side_record *out)
{
	while (side) {
		uint64_t tail = atomic_load_explicit(&side->tail, memory_order_relaxed);
		struct record *record = record_at(side, tail);
		uint32_t size = tail % 8 ? 0 : atomic_load_explicit(&record->size,
								    memory_order_acquire);

		if (!size || !is_sound(tail, size & ~PADDING))
			return 0;
		if (!(size & PADDING) &&
		    (size < sizeof(*record) || record->len > size - sizeof(*record) ||
		     record->len > sizeof(out->payload)))
			return 0;
		if (size & PADDING) {
			consume(side, tail, size & ~PADDING);
			continue;
		}
		out->type_id = record->type_id;
		out->ns = record->ns;
		out->len = record->len;
		memcpy(out->payload, record + 1, record->len);
		consume(side, tail, size);
		return 1;
	}
	return 0;
}

int d9__side_take(uint32_t slot, struct d9__side_record *out)
{
	return take(side_of(&d9__ring.slots[slot]), out);
}

int d9__side_take_from(uint8_t *chunk, struct d9__side_record *out)
{
	return take((struct side *)(void *)chunk, out);
}
