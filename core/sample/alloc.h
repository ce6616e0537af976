/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alloc: samples of allocations, for hooks that stand between the program and its allocator.
 *
 * Each thread counts down by the bytes it allocates; where that reaches 0 the allocation is sampled: its stack is walked by
 * the unwind tables, and an AllocEvent goes into the thread's own chunk.  What is sampled can be followed to its end, see
 * alloc_live.h.
 *
 * A hook:
 *
 *	void *malloc(size_t size)
 *	{
 *		void *block;
 *
 *		if (d9__alloc_pass(size))
 *			return real_malloc(size);
 *		block = real_malloc(size);
 *		d9__alloc_sample(block, size, __builtin_return_address(0));
 *		return block;
 *	}
 *
 *	void free(void *block)
 *	{
 *		if (d9__alloc_maybe_live(block))
 *			d9__alloc_freed(block);
 *		real_free(block);
 *	}
 *
 * All functions keep errno.  They allocate nothing but, once per thread, through the hooks themselves, which see that
 * they are inside.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/export.h>

#include "sample/alloc_live.h"

/* The state of a thread.  All zero is valid: its first allocation is looked at. */
struct d9__alloc_thread {
	uint64_t left;	 /* bytes until the next sample */
	uint64_t rate;	 /* with which |left| was drawn; 0: never */
	uint64_t random; /* 0: not begun */
	uintptr_t stack_low, stack_high; /* both 0: not known */
	uint32_t tid;	 /* of its latest event */
	uint32_t paused;
	volatile uint8_t inside; /* enum in alloc.c: what this thread is doing for us; a handler may see it */
	volatile uint8_t probing; /* 1: the next sample only sets it to 2; see d9__alloc_probe_begin() */
};

extern D9_API D9_TLS __thread struct d9__alloc_thread d9__alloc_self;

/* Whether |size| bytes may pass without a look: what every allocation costs. */
static inline bool d9__alloc_pass(size_t size)
{
	/* Read once: a handler that allocates here, where it must not, is not counted, and does no harm. */
	uint64_t left = *(volatile uint64_t *)&d9__alloc_self.left;

	/* Unsigned: no size is so large that it passes. */
	if (__builtin_expect(left <= size, 0))
		return false;
	d9__alloc_self.left = left - size;
	return true;
}

/*
 * |block| (NULL: the allocation failed) of |size| bytes was allocated for |caller|, the address that the hook
 * returns to: a sample, if it is due.
 */
D9_API void d9__alloc_sample(void *block, size_t size, const void *caller);

/* |block|, which may be live, is about to be freed. */
D9_API void d9__alloc_freed(const void *block);

/*
 * Tell of a realloc() in steps: take |block| out before the allocator may move it; false: it was not live.  Then,
 * if nothing happened to it, put it back, else it is gone.
 */
D9_API bool d9__alloc_take(const void *block, struct d9__alloc_block *out);
D9_API void d9__alloc_put_back(const struct d9__alloc_block *block);
D9_API void d9__alloc_gone(const struct d9__alloc_block *block);

/* Does a function end in hooks?  Begin; call it; the answer is whether an allocation was seen since. */
static inline void d9__alloc_probe_begin(void)
{
	d9__alloc_self.left = 0;
	d9__alloc_self.probing = 1;
}

static inline bool d9__alloc_probe_end(void)
{
	bool seen = d9__alloc_self.probing == 2;

	d9__alloc_self.probing = 0;
	return seen;
}

/*
 * The hooks in the module that |code| belongs to see all allocations from now on; or, if |reason| is not NULL, a static
 * text, they do not, because of that.  In a constructor: the calling thread's stack is looked up.
 */
D9_API void d9__alloc_attach(const void *code, const char *reason);

/*
 * Sample from the first allocation on, before there is a loop; the first sample starts the process's recorder from the
 * environment.
 * Nothing is left of it if nothing is sampled and there never is a loop.  In a constructor, after d9__alloc_attach().
 */
D9_API void d9__alloc_open_early(void);

/*
 * In a constructor, before any other handler of ours is registered: those of a child that come behind this one may free
 * what they like; before it, locks may be held for ever, and the gate says so.
 */
void d9__alloc_hold_over_forks(void);

/* From now on recorders sample as d9__sampling says, or tell why not.  Idempotent. */
void d9__alloc_start(void);
