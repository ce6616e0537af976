/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place stacks: call stacks that are remembered by where in the program they were taken.
 *
 * Taking a stack costs 1 to 5 us, so one is taken at the first call from a place, and of later calls of one in 64,
 * chosen at random: a place is a return address, how deep the stack is there, and the callback that runs, which two
 * call paths may share.  Stacks are kept for ever, each different one once; when there is no room for another, calls
 * go without.
 */

#ifndef D9_SAMPLE_PLACE_STACKS_H
#define D9_SAMPLE_PLACE_STACKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__PLACE_BITS	 12
#define D9__PLACE_FRAMES 100 /* kept of each stack, innermost first */

struct d9__place {
	const void *function; /* that is being called: the innermost frame of the stack */
	const void *caller;   /* return address of that call */
	uintptr_t depth;      /* of the stack there; only compared */
	uintptr_t low, high;  /* bounds of the thread's stack; both 0: not known */
	uint32_t callback;
};

/* Never changes. */
struct d9__place_stack {
	uint64_t hash;
	uint32_t n;
	bool truncated; /* outer frames may be missing */
	uint64_t pcs[];
};

/* In each word the upper 48 bits of a place's hash and the handle of its latest stack.  d9__place_stack() only. */
extern _Atomic(uint64_t) d9__places[1u << D9__PLACE_BITS];

/* The slow half: take the stack of the call that is under way, and remember it under |hash|.  Keeps errno. */
uint32_t d9__place_capture(const struct d9__place *place, uint64_t hash);

static inline uint64_t d9__place_hash(const struct d9__place *place)
{
	uint64_t hash = (uint64_t)(uintptr_t)place->caller * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ place->depth ^ (uint64_t)place->callback << 32) * UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 32;
}

/*
 * Handle of the stack of the call |place|, which is under way on this thread; 0: there is none.  |random| decides
 * whether a known place is looked at again.  Never waits, allocates nothing, takes no lock of the loader's; any lock
 * may be held.
 */
static inline uint32_t d9__place_stack(const struct d9__place *place, uint64_t random)
{
	uint64_t hash = d9__place_hash(place);
	uint64_t word = atomic_load_explicit(&d9__places[hash & ((1u << D9__PLACE_BITS) - 1)], memory_order_acquire);

	if (__builtin_expect(word >> 16 == hash >> 16 && random >> 58, 1))
		return word & 0xffff;
	return d9__place_capture(place, hash);
}

/* The stack of |handle|, which is not 0. */
const struct d9__place_stack *d9__place_stack_of(uint32_t handle);

/* Calls that went without a stack: there was no room, or another thread was taking one at that moment. */
uint64_t d9__place_misses(void);

/* In a forked child: the thread that was taking a stack may be gone. */
void d9__place_stacks_fork_child(void);

#endif /* D9_SAMPLE_PLACE_STACKS_H */
