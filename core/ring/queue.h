/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue: chunk numbers in order of arrival, many producers to many consumers, in the shared
 * mapping.  Lock-free.
 *
 * A queue is an array of tickets, one per chunk.  To push is to draw the next ticket and store it;
 * to pop is to find the least one and exchange it for 0.  Each is one store, so a thread that is
 * preempted or killed in between holds up its own chunk and no other.  (A ring of cells is not
 * enough, because a popper preempted in its cell blocks the pusher that comes around.)  Looking at
 * all tickets takes 0.1-0.2 us for 512 chunks, once per some 6 000 events.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define D9__CHUNKS_MAX 2048 /* 128 MiB */

/*
 * A number waits if its ticket is not 0; the least ticket is the oldest.  A queue of zeros is
 * empty.
 */
struct d9__queue {
	_Alignas(64) _Atomic(uint32_t) newest; /* ticket given out last */
	_Atomic(uint32_t) count;               /* about how many wait */
	_Atomic(uint32_t) limit;               /* numbers below this were ever pushed */
	_Alignas(64) _Atomic(uint32_t) ticket[D9__CHUNKS_MAX];
};

/* Add |chunk|, which is in no queue. */
void d9__queue_push(struct d9__queue *queue, uint32_t chunk);

/* Take the oldest into |*chunk|.  Returns its ticket; 0: none waits. */
uint32_t d9__queue_pop(struct d9__queue *queue, uint32_t *chunk);

/*
 * Take the one with the least number, because free chunks are taken again while they are in the
 * cache.  False: none waits.
 */
bool d9__queue_pop_any(struct d9__queue *queue, uint32_t *chunk);

/* Take |chunk| if it still waits with |ticket|. */
bool d9__queue_take(struct d9__queue *queue, uint32_t chunk, uint32_t ticket);

/* Put |chunk| back where it was in the order: it was taken with |ticket|. */
void d9__queue_put_back(struct d9__queue *queue, uint32_t chunk, uint32_t ticket);

/* Return how many wait; exact only while no thread pushes or pops. */
uint32_t d9__queue_count(const struct d9__queue *queue);

/* True if any waits; of a thread that is stopped while it pushes one, that one does not. */
bool d9__queue_waits(const struct d9__queue *queue);
