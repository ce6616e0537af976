/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place stacks: call stacks that are remembered by where in the program they were taken.
 *
 * Taking a stack costs 1 to 5 us, so one is taken at the first call from a place: a return address, how deep the stack
 * is there, and the callback that runs.  Call paths may share a place.  So a later call has the remembered stack only
 * if its return addresses stand where they stood in the stack; of those that do, one in 1024, chosen at random, is
 * taken again, as only the innermost D9__PLACE_CHECKED are compared.
 *
 * Stacks are kept for ever, each different one once; when there is no room for another, calls go without.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sanitized.h"

#define D9__PLACES	  4096u
#define D9__PLACE_FRAMES  100 /* kept of each stack, innermost first */
#define D9__PLACE_CHECKED 8

struct d9__stack_place {
	const void *function; /* that is being called: the innermost frame of the stack */
	const void *caller;   /* return address of that call */
	uintptr_t here;	      /* address in the stack, the same at each call from one place on one thread */
	uintptr_t low, high;  /* bounds of the stack, in which |here| is; both 0: not known */
	uint32_t callback;
};

/* Never changes. */
struct d9__place_stack {
	uint64_t hash;
	uint32_t n;
	bool truncated; /* outer frames may be missing */
	bool is_raw;	/* not all addresses are known to be of code: see d9__place_frames() */
	/* pcs[2], pcs[3], ... stood so many words above |here|. */
	uint8_t n_checked;
	uint16_t words[D9__PLACE_CHECKED];
	uint64_t pcs[];
};

/* In each word the upper 48 bits of a place's hash, and the handle of its stack; 0: there was no room for it. */
extern _Atomic(uint64_t) d9__places[D9__PLACES];

extern _Atomic(const struct d9__place_stack *) d9__place_stacks[]; /* by handle less 1 */

/* The stack of |handle|, which is not 0. */
static inline const struct d9__place_stack *d9__place_stack_of(uint32_t handle)
{
	return atomic_load_explicit(&d9__place_stacks[handle - 1], memory_order_acquire);
}

/* The slow half: look further, and take the stack if need be.  Keeps errno. */
uint32_t d9__place_search(const struct d9__stack_place *place, uint64_t hash, uint64_t random);

static inline uint64_t d9__place_hash(const struct d9__stack_place *place)
{
	uint64_t hash = (uint64_t)(uintptr_t)place->caller * UINT64_C(0x9e3779b97f4a7c15);

	uintptr_t depth = place->high ? place->high - place->here : place->here;

	hash = (hash ^ depth ^ (uint64_t)place->callback << 32) * UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 32;
}

/* A word of the stack, which sanitizers may take for free memory. */
#if D9__SANITIZED
__attribute__((no_sanitize("address", "thread"), noinline, unused)) static
#else
static inline
#endif
uintptr_t d9__place_word(const struct d9__stack_place *place, uintptr_t word)
{
	return ((const volatile uintptr_t *)place->here)[word];
}

/* That many words of the stack may be read. */
static inline uintptr_t d9__place_room(const struct d9__stack_place *place)
{
	return place->high ? (place->high - place->here) / sizeof(uintptr_t) : 0;
}

/* How many of the return addresses of |stack|, the first ones, stand in the stack of the call |place|. */
static inline uint32_t d9__place_agrees(const struct d9__stack_place *place, const struct d9__place_stack *stack)
{
	uintptr_t room = d9__place_room(place);
	uint32_t i = 0;

	while (i < stack->n_checked && stack->words[i] < room &&
	       d9__place_word(place, stack->words[i]) == stack->pcs[2 + i])
		i++;
	return i;
}

/*
 * Handle of the stack of the call |place|, which is under way on this thread; 0: there is none.  |random| decides
 * whether a known place is looked at again.  Never waits, allocates nothing, takes no lock of the loader's; any lock
 * may be held.
 */
static inline uint32_t d9__place_stack(const struct d9__stack_place *place, uint64_t random)
{
	uint64_t hash = d9__place_hash(place);
	uint64_t word = atomic_load_explicit(&d9__places[hash & (D9__PLACES - 1)], memory_order_acquire);
	const struct d9__place_stack *stack;

	if (__builtin_expect(word >> 16 == hash >> 16 && word & 0xffff && random >> 54, 1)) {
		stack = d9__place_stack_of(word & 0xffff);
		if (__builtin_expect(d9__place_agrees(place, stack) == stack->n_checked, 1))
			return word & 0xffff;
	}
	return d9__place_search(place, hash, random);
}

/* How many frames of |stack| may be told now, the innermost first.  A stack that is cut by that is so for this call only. */
uint32_t d9__place_frames(const struct d9__place_stack *stack);

/* Calls that went without a stack: there was no room, or another thread was taking one at that moment. */
uint64_t d9__place_misses(void);

/* In a forked child: the thread that was taking a stack may be gone. */
void d9__place_stacks_fork_child(void);
