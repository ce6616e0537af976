/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/span_stack.h"

/* Pages that are never used take no memory. */
struct d9__span_stack d9__span_stack_all[D9__SLOT_COUNT];

#define BLOCK 256u /* ids that a thread takes at a time */

static _Atomic(uint64_t) blocks;

static inline uint32_t count(const struct d9__span_stack *entered)
{
	return d9__span_stack_count(entered);
}

static uint64_t id_of(const struct d9__stacked_span *item)
{
	return atomic_load_explicit(&item->id, memory_order_relaxed);
}

static void set_id(struct d9__stacked_span *item, uint64_t id)
{
	atomic_store_explicit(&item->id, id, memory_order_relaxed);
}

static bool is_entered(const struct d9__stacked_span *item)
{
	return id_of(item) && id_of(item) != D9__ENTERED_LEFT;
}

static void set_count(struct d9__span_stack *entered, uint32_t n)
{
	/* A handler that runs in between finds either all of a change or none. */
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&entered->n, n, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

void d9__span_stack_start_over(struct d9__span_stack *entered, uint64_t owner)
{
	for (uint32_t i = 0; i < D9__ENTERED_MAX; i++)
		set_id(&entered->items[i], 0);
	set_count(entered, 0);
	entered->owner = owner;
}

uint64_t d9__span_stack_new_id(struct d9__span_stack *entered)
{
	uint64_t id = atomic_fetch_add_explicit(&entered->next_id, 1, memory_order_relaxed);

	if (__builtin_expect(id % BLOCK == 0, 0)) {
		/* A handler may take a block of its own meanwhile: both are unique. */
		id = (atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed) + 1) * BLOCK + 1;
		atomic_store_explicit(&entered->next_id, id + 1, memory_order_relaxed);
	}
	return id;
}

struct d9__stacked_span *d9__span_stack_find_below(struct d9__span_stack *entered, uint64_t id)
{
	for (uint32_t i = count(entered); i--;)
		if (id_of(&entered->items[i]) == id)
			return &entered->items[i];
	return NULL;
}

/* True if the callback that |item| was entered in still runs. */
static bool is_alive(const struct d9__stacked_span *item, const struct d9__thread *thread)
{
	if (!item->frames)
		return true;
	return thread && item->frames <= thread->n_frames &&
	       thread->frames[item->frames - 1].start_ns == item->frame_ns;
}

/* Make room: what callbacks that are over have left behind goes. */
static void drop_dead(struct d9__span_stack *entered, const struct d9__thread *thread)
{
	uint32_t kept = 0, n = count(entered);

	for (uint32_t i = 0; i < n; i++) {
		struct d9__stacked_span item = entered->items[i];

		set_id(&entered->items[i], 0);
		if (is_entered(&item) && is_alive(&item, thread))
			entered->items[kept++] = item;
	}
	set_count(entered, kept);
}

/*
 * Place |n|, counted and with 0 for an id: so no handler drops it.  Until both is true a handler may use
 * the place and leave it.
 */
static struct d9__stacked_span *reserve(struct d9__span_stack *entered, uint32_t n)
{
	struct d9__stacked_span *item = &entered->items[n];

	do {
		set_id(item, 0);
		set_count(entered, n + 1);
	} while (id_of(item) != 0 || count(entered) <= n);
	return item;
}

struct d9__stacked_span *d9__span_stack_push(struct d9__span_stack *entered,
					  const struct d9__thread *thread, uint64_t id, uint64_t ns)
{
	struct d9__stacked_span *item;
	uint32_t n;

	if (__builtin_expect(count(entered) == D9__ENTERED_MAX, 0))
		drop_dead(entered, thread);
	n = count(entered);
	if (n == D9__ENTERED_MAX)
		return NULL;
	item = reserve(entered, n);
	item->enter_ns = ns;
	item->depth = 1;
	item->written = item->adapter = false;
	atomic_store_explicit(&item->told, false, memory_order_relaxed);
	item->frames = thread ? thread->n_frames : 0;
	item->frame_ns = item->frames ? thread->frames[item->frames - 1].start_ns : 0;
	atomic_signal_fence(memory_order_seq_cst);
	set_id(item, id);
	return item;
}

/*
 * Not those with 0: an enter that a handler has interrupted goes on with its place.  A handler may do
 * the same at any point here: then the count is set again to what it was, and the loop goes on.
 */
static void drop_left(struct d9__span_stack *entered)
{
	for (uint32_t n = count(entered); n && id_of(&entered->items[n - 1]) == D9__ENTERED_LEFT;
	     n = count(entered))
		set_count(entered, n - 1);
}

void d9__span_stack_pop(struct d9__span_stack *entered, struct d9__stacked_span *item)
{
	set_id(item, D9__ENTERED_LEFT);
	drop_left(entered);
}

void d9__span_stack_pop_call(struct d9__span_stack *entered, struct d9__stacked_span *item)
{
	for (struct d9__stacked_span *inner = item; inner < entered->items + count(entered); inner++)
		if (inner->adapter && is_entered(inner))
			set_id(inner, D9__ENTERED_LEFT);
	drop_left(entered);
}

uint64_t d9__span_stack_current(struct d9__span_stack *entered, const struct d9__thread *thread)
{
	for (uint32_t i = count(entered); i--;) {
		struct d9__stacked_span *item = &entered->items[i];

		if (!is_entered(item) || !is_alive(item, thread))
			continue;
		atomic_store_explicit(&item->told, true, memory_order_relaxed);
		return id_of(item);
	}
	return 0;
}
