/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ring/queue.h"

void d9__queue_push(struct d9__queue *queue, uint32_t chunk)
{
	uint32_t limit = atomic_load_explicit(&queue->limit, memory_order_relaxed), ticket;

	while (limit <= chunk &&
	       !atomic_compare_exchange_weak_explicit(&queue->limit, &limit, chunk + 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
	do /* 0 means that nothing waits */
		ticket = atomic_fetch_add_explicit(&queue->newest, 1, memory_order_relaxed) + 1;
	while (!ticket);
	atomic_fetch_add_explicit(&queue->count, 1, memory_order_relaxed);
	/* release: pairs with the acquire in queue_oldest() and the exchange in d9__queue_pop() */
	atomic_store_explicit(&queue->ticket[chunk], ticket, memory_order_release);
}

/* The least ticket that waits and whose it is; |best| if none is less.  Tickets wrap around. */
static uint32_t queue_oldest(const struct d9__queue *queue, uint32_t best, uint32_t *chunk)
{
	uint32_t limit = atomic_load_explicit(&queue->limit, memory_order_relaxed);

	for (uint32_t i = 0; i < limit; i++) {
		uint32_t ticket = atomic_load_explicit(&queue->ticket[i], memory_order_acquire);

		if (ticket && (!best || (int32_t)(ticket - best) < 0)) {
			best = ticket;
			*chunk = i;
		}
	}
	return best;
}

uint32_t d9__queue_pop(struct d9__queue *queue, uint32_t *chunk)
{
	uint32_t best = queue_oldest(queue, 0, chunk);

	while (best) {
		/*
		 * Again: an older one of the same slot may have come in behind the first look,
		 * and the one found after it.  Having seen that one we see the older now.
		 */
		uint32_t older = queue_oldest(queue, best, chunk), expected = older;

		if (older == best &&
		    atomic_compare_exchange_strong_explicit(&queue->ticket[*chunk], &expected, 0,
							    memory_order_acquire,
							    memory_order_relaxed)) {
			atomic_fetch_sub_explicit(&queue->count, 1, memory_order_relaxed);
			return older;
		}
		best = older != best ? older : queue_oldest(queue, 0, chunk);
	}
	return 0;
}

bool d9__queue_pop_any(struct d9__queue *queue, uint32_t *chunk)
{
	uint32_t limit = atomic_load_explicit(&queue->limit, memory_order_relaxed);

	for (uint32_t i = 0; i < limit; i++) {
		uint32_t ticket = atomic_load_explicit(&queue->ticket[i], memory_order_relaxed);

		if (ticket && atomic_compare_exchange_strong_explicit(&queue->ticket[i], &ticket, 0,
								      memory_order_acquire,
								      memory_order_relaxed)) {
			atomic_fetch_sub_explicit(&queue->count, 1, memory_order_relaxed);
			*chunk = i;
			return true;
		}
	}
	return false;
}

uint32_t d9__queue_count(const struct d9__queue *queue)
{
	return atomic_load_explicit(&queue->count, memory_order_relaxed);
}

bool d9__queue_waits(const struct d9__queue *queue)
{
	uint32_t chunk;

	return queue_oldest(queue, 0, &chunk) != 0;
}

bool d9__queue_take(struct d9__queue *queue, uint32_t chunk, uint32_t ticket)
{
	if (!atomic_compare_exchange_strong_explicit(&queue->ticket[chunk], &ticket, 0,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	atomic_fetch_sub_explicit(&queue->count, 1, memory_order_relaxed);
	return true;
}

void d9__queue_put_back(struct d9__queue *queue, uint32_t chunk, uint32_t ticket)
{
	atomic_fetch_add_explicit(&queue->count, 1, memory_order_relaxed);
	/* release: the taker's reads of the chunk are over before a thread recycles it */
	atomic_store_explicit(&queue->ticket[chunk], ticket, memory_order_release);
}
