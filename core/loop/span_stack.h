/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Span stack: the spans that each thread is inside of, the program's and the adapters' alike.
 *
 * Ids, not pointers: a span that ends without being left leaves a number behind, not a dangling
 * object.  A thread's signal handlers may enter and leave spans at any moment.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span_filter.h"
#include "loop/thread_state.h"
#include "ring/slot.h"

#define D9__ENTERED_MAX 64u /* spans inside one another; deeper ones have no children */

#define D9__ENTERED_LEFT UINT64_MAX

struct d9__stacked_span {
	_Atomic(uint64_t) id; /* 0: not filled in yet; D9__ENTERED_LEFT: left, others are above it */
	uint64_t enter_ns;
	uint64_t frame_ns; /* start of the callback it was entered in */
	uint32_t frames;   /* callbacks that were running; 0: outside of all */
	uint32_t name;	   /* handle; of an adapter's only */
	uint16_t depth;	   /* enters without exits */
	bool written;	   /* the trace has the enter */
	bool adapter;	   /* an adapter's: those nest as calls do */
	_Atomic(bool)
		told; /* of an adapter's: the trace may have its id; also set by the flush thread */
};

/* One thread's.  Owner thread only, its handlers included. */
struct d9__span_stack {
	uint64_t owner; /* who filled it: a slot goes from thread to thread */
	_Atomic(uint64_t) next_id;
	_Atomic(uint32_t) n;
	struct d9__stacked_span items[D9__ENTERED_MAX];
};

extern struct d9__span_stack d9__span_stack_all[]; /* by slot */

void d9__span_stack_start_over(struct d9__span_stack *entered, uint64_t owner);

/*
 * The one of the thread that owns |slot|.  |opening| is the gate's: what was entered before recording
 * was off is forgotten.
 */
static inline struct d9__span_stack *d9__span_stack_of(struct d9__slot *slot, uint32_t opening)
{
	struct d9__span_stack *entered = &d9__span_stack_all[d9__slot_index(slot)];
	uint32_t epoch = atomic_load_explicit(&d9__span_epoch, memory_order_relaxed);
	uint64_t owner = (uint64_t)epoch << 56 | (uint64_t)opening << 32 | d9__slot_tid(slot);

	if (__builtin_expect(entered->owner != owner, 0))
		d9__span_stack_start_over(entered, owner);
	return entered;
}

static inline uint32_t d9__span_stack_count(const struct d9__span_stack *entered)
{
	return atomic_load_explicit(&entered->n, memory_order_relaxed);
}

/* An id that no span of the process had: above 0. */
uint64_t d9__span_stack_new_id(struct d9__span_stack *entered);

struct d9__stacked_span *d9__span_stack_find_below(struct d9__span_stack *entered, uint64_t id);

/* The innermost one with |id|, or NULL. */
static inline struct d9__stacked_span *d9__span_stack_find(struct d9__span_stack *entered, uint64_t id)
{
	uint32_t n = d9__span_stack_count(entered);
	struct d9__stacked_span *top = &entered->items[n ? n - 1 : 0];

	if (__builtin_expect(n && atomic_load_explicit(&top->id, memory_order_relaxed) == id, 1))
		return top;
	return d9__span_stack_find_below(entered, id);
}

/* |thread| may be NULL.  NULL: too deep. */
struct d9__stacked_span *d9__span_stack_push(struct d9__span_stack *entered,
					  const struct d9__thread *thread, uint64_t id, uint64_t ns);

void d9__span_stack_pop(struct d9__span_stack *entered, struct d9__stacked_span *item);

/* Pop an adapter's span, and adapters' spans inside it, which a longjmp() has left. */
void d9__span_stack_pop_call(struct d9__span_stack *entered, struct d9__stacked_span *item);

/* The thread's current span, 0 if there is none; who asks may write its id. */
uint64_t d9__span_stack_current(struct d9__span_stack *entered, const struct d9__thread *thread);
