/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Side ring: records of a slot that a signal handler made while the slot was being written.
 *
 * One chunk of the ring file per slot, taken at the first such event.  Producers are the owner
 * thread and the handlers that interrupt it, nested to any depth; the consumer is the flush
 * thread.  A record's length word is stored last, so the consumer stops at a record that is not
 * complete, and clears what it took.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__slot;

#define D9__SIDE_PAYLOAD_MAX 1072u /* a stack of 128 frames, and what it is of */

/* One event: its fields in wire form.  It uses no pooled names. */
struct d9__side_record {
	uint32_t type_id;
	uint32_t len;
	uint64_t ns;
	uint8_t payload[D9__SIDE_PAYLOAD_MAX];
};

/*
 * Reserve room for |max| bytes of fields.  NULL: no ring or no room; counted as `side_ring` (or
 * `too_big`).  Async-signal-safe, nests.
 */
uint8_t *d9__side_begin(struct d9__slot *slot, uint32_t type_id, uint64_t ns, uint32_t max);

/* Make the side ring of |slot| now and not at its first record; whether it has one. */
bool d9__side_make(struct d9__slot *slot);

/*
 * Add a whole record, of |head| and |body|.  False: no ring or no room, counted.  Async-signal-safe, and any thread
 * may: not only the owner of |slot|.
 */
bool d9__side_put(struct d9__slot *slot, uint32_t type_id, uint64_t ns, const void *head, uint32_t head_len,
		  const void *body, uint32_t body_len);

/* The fields of the record begun last end at |end|. */
void d9__side_end(struct d9__slot *slot, const uint8_t *end);

/* Flush thread: the oldest record of slot |slot|.  1 and |*record|, 0 if none is complete. */
int d9__side_take(uint32_t slot, struct d9__side_record *record);

/* Take the oldest record from a private copy of the chunk that held a side ring. */
int d9__side_take_from(uint8_t *chunk, struct d9__side_record *record);
