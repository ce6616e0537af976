/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunk: 64 KiB of the ring that one slot fills with one batch of the wire format.
 *
 *     FREE --open--> OPEN --seal--> SEALED --pop--> TAKEN --release--> FREE
 *                                     | <--put back---+
 *                                     +--overrun--> OPEN (of another slot), or LOST while pinned
 *
 * In flight mode overrun is what chunks are there for: see d9__chunk_set_recycling().
 *
 * Producers are the slots' owners.  The consumer is the flush thread, alone.
 */

#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_file.h"
#include "ring/slot.h"

#define D9__CHUNK_HEADER 64u
#define D9__BATCH_MAX    (D9__CHUNK_SIZE - D9__CHUNK_HEADER)

enum d9__chunk_state {
	D9__CHUNK_FREE,
	D9__CHUNK_OPEN,
	D9__CHUNK_SEALED,
	D9__CHUNK_TAKEN,
	D9__CHUNK_LOST, /* overrun while pinned: the flush thread frees it when it unpins */
	D9__CHUNK_SIDE, /* holds a side ring, for ever */
};

/* The state of the worker at one end of a batch. */
struct d9__entry_state {
	uint64_t task;
	uint32_t worker; /* D9__WORKER_NONE if no event named one */
	enum d9__worker_state state;
};

struct d9__chunk_header {
	/* {serial 32, unused 16, pin 8, state 8}; all changes but opening are read-modify-write. */
	_Atomic(uint64_t) word;
	/* Written by the owner while OPEN; final once SEALED. */
	uint16_t slot;
	uint8_t entry_state, exit_state; /* enum d9__worker_state */
	uint16_t entry_worker, exit_worker;
	uint32_t bytes, events; /* final; 0 while OPEN: see the slot's published word */
	_Atomic(uint32_t) taken_bytes, taken_events; /* by the flush thread */
	_Atomic(uint64_t) first_ns; /* least time of its events; 0 = none yet */
	_Atomic(uint64_t) last_ns;  /* final once SEALED */
	uint64_t entry_task, exit_task;
};

static_assert(sizeof(struct d9__chunk_header) == D9__CHUNK_HEADER, "recovery knows this size");

/* A chunk, or the published part of one, in the hands of the flush thread. */
struct d9__batch {
	const uint8_t *bytes; /* begins with the header and preamble; valid until released */
	uint32_t len;         /* published: bytes[0, len) are whole frames */
	uint32_t events;      /* in bytes[0, len) */
	/*
	 * bytes[0, taken_bytes) were taken before.  If not 0, what remains is a continuation: it
	 * needs preamble, pool and schema frames of the taken part, and a reset to its last time.
	 */
	uint32_t taken_bytes, taken_events;
	uint32_t chunk;  /* number */
	uint32_t ticket; /* of a full one: its place in the order of |full| */
	uint32_t slot;   /* index */
	uint32_t serial; /* of this slot; a gap means lost chunks, which d9__loss_take() counts */
	uint32_t tid;    /* of the slot's newest owner */
	uint64_t first_ns, last_ns; /* 0 if it has no event; |last_ns| of a prefix is 0: unknown */
	struct d9__entry_state entry, exit; /* |exit| of a prefix is UNKNOWN */
};

/*
 * The oldest full chunk.  1 and |*batch|, or 0 if none waits.  It stays the caller's until
 * d9__chunk_release(), its bytes written or counted as lost by then, or d9__chunk_put_back(), as if it had
 * not been popped.
 */
int d9__chunk_pop_full(struct d9__batch *batch);
void d9__chunk_release(const struct d9__batch *batch);
void d9__chunk_put_back(const struct d9__batch *batch);

/*
 * Whether slot |slot| has an open chunk with something to take in it.  1: |*batch| describes
 * and pins it, to be ended by d9__chunk_unpin().  0: no open chunk, nothing new in it, or it was
 * sealed meanwhile (then it comes through d9__chunk_pop_full()).
 *
 * I4: unless batch->serial follows the last one written of this slot (or is the one whose prefix
 * was written), the queue |full| has to be drained first; then unpin with 0 and come back.
 */
int d9__chunk_pin_open(uint32_t slot, struct d9__batch *batch);

/* End the pin.  |taken|: bytes [0, batch->len) are written; the next taker continues there. */
void d9__chunk_unpin(const struct d9__batch *batch, bool taken);

/* A full chunk that cannot be recycled, because its ticket is here and not in the queue. */
struct d9__chunk_hold {
	uint32_t chunk, ticket;
};

/*
 * For dumps: take the full chunks that hold anything at or after |from_ns| out of the queue without
 * emptying them, oldest first, to behind the |n_held| of |held|, which were sealed before and which
 * has room for D9__CHUNKS_MAX more.  Of the oldest as many stay behind as threads need to have |spare|
 * chunks left.  Returns how many are held now.
 */
uint32_t d9__chunk_hold(struct d9__chunk_hold *held, uint32_t n_held, uint64_t from_ns,
			uint32_t spare);

/* Describe the batch of a held chunk. */
void d9__chunk_held_batch(const struct d9__chunk_hold *held, struct d9__batch *batch);

/* Put it back where it was in the order of |full|. */
void d9__chunk_let_go(const struct d9__chunk_hold *held);

/* Return how many chunks wait in |full| and |free| now; exact only while no thread pushes or pops. */
uint32_t d9__chunk_full_count(void);
uint32_t d9__chunk_free_count(void);

/* Whether a chunk waits in |full|, where a thread that is stopped while it pushes one does not count. */
bool d9__chunk_full_waits(void);

/* Whether any chunk is sealed and not taken: in |full|, or in the hands of a thread that is about to push it. */
bool d9__chunk_any_sealed(void);

/*
 * Wake the flush thread: called by a recording thread that seals a chunk while |full| holds half of
 * the ring, or opens one of the last free ones of a ring that may grow.  Must be async-signal-safe,
 * must not block and must keep errno.  NULL: no function.
 */
void d9__chunk_set_waker(void (*wake)(void));

/*
 * Flight mode: what threads overwrite because no chunk is free was meant to go.  It is counted in
 * the ring's control words, not as lost, and the flush thread is not woken for it.
 */
void d9__chunk_set_recycling(bool on);

/* How many chunks were ever sealed; wraps around. */
uint32_t d9__chunk_sealed_count(void);

/* ---- producers: slot.c, emit ---- */

/*
 * Make room for |bytes| more in |slot|'s open chunk; if there is not, seal it and open another.
 * False: no chunk could be had, or |bytes| exceeds what fits any; the caller counts the loss.
 */
bool d9__chunk_room(struct d9__slot *slot, uint32_t bytes);

/* Seal the open chunk, if there is one, and hand it over. */
void d9__chunk_seal(struct d9__slot *slot);

/*
 * A free chunk for another use (a side ring), in state SIDE; number + 1, or 0.  While chunks are
 * recycled, the oldest full one if none is free.  Lock-free.
 */
uint32_t d9__chunk_grab(void);

static inline struct d9__chunk_header *d9__chunk_at(uint32_t chunk)
{
	return (struct d9__chunk_header *)(void *)(d9__ring.base + D9__RING_CHUNKS_AT +
						   (size_t)chunk * D9__CHUNK_SIZE);
}
