/* SPDX-License-Identifier: Apache-2.0 */
/* Stack: of the calling thread, from the caller of a wrapper on.  By the unwind tables: no lock, async-signal-safe. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__block_room;

struct d9__block_stack {
	const uint64_t *pcs; /* the function that was called, then return addresses, the innermost first */
	uint32_t n;	     /* 2 at least */
	bool truncated;	     /* outer frames may be missing */
	struct d9__block_room *room;
	uint64_t few[2];
};

/*
 * |real| was called, by a wrapper that returns to |caller|.  What |stack| says is good until it is released, and that
 * must come soon: a few are there for all threads.
 */
void d9__block_stack_take(struct d9__block_stack *stack, const void *real, const void *caller);

void d9__block_stack_release(struct d9__block_stack *stack);

/* In a forked child: other threads' are free. */
void d9__block_stacks_fork_child(void);
