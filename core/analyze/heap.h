/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap: who allocated how much, and what was never freed, estimated from samples of allocations.
 *
 * An allocation of |size| bytes is sampled with a probability of 1 - exp(-size / rate), so each sample stands for as many
 * allocations as that is less than one.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/samples.h"
#include "base/table.h"

#define D9__HEAP_RATE 524288 /* where nothing tells: bytes between samples, on average, as the original's recorder has it */

/* Allocations, estimated. */
struct d9__heap_sum {
	double bytes, count;
	uint64_t samples;
};

/* Return the allocations and bytes that one sample of |size| bytes stands for, if taken every |rate| bytes. */
struct d9__heap_sum d9__heap_weigh(uint64_t size, uint64_t rate);

#define D9__HEAP_FRAMES 128 /* kept of each call chain, innermost first */
#define D9__HEAP_PARTS 3 /* of the time in which allocations were sampled */

struct d9__callback;
struct d9__worker;

/* An allocation that was sampled. */
struct d9__heap_alloc {
	uint64_t ns, size;
	uint64_t address; /* 0: its end is not followed */
	uint64_t rate;	  /* with which it was sampled; 0: the event does not tell */
	const uint64_t *addresses; /* its call chain, the innermost first */
	size_t n;
	const struct d9__callback *callback; /* that ran; NULL: none */
	const struct d9__worker *worker;     /* NULL: another thread */
};

/* Samples with one call chain in one callback. */
struct d9__heap_stack {
	size_t number; /* in the order of their first samples */
	uint64_t ns;   /* of the first */
	const struct d9__callback *callback;
	const struct d9__worker *worker;
	struct d9__heap_sum allocated, live;
	struct d9__frame_name *names; /* of the frames, all of which are calls; owned; NULL: they have no names yet */
	size_t n;
	uint64_t addresses[];
};

/* All zero is empty. */
struct d9__heap {
	uint64_t rate; /* of the latest sample, or as the metadata have it; 0: not told */
	struct d9__heap_sum allocated, live;
	uint64_t frees;	 /* of allocations that the trace has */
	uint64_t evicted; /* allocations that were followed no further, as there were too many */
	bool followed;	 /* the trace has frees: what is left is live */
	uint64_t first_ns, last_ns; /* of samples and frees */
	struct d9__table stacks; /* struct d9__heap_stack by hash; owned */
	struct d9__heap_stack *others; /* stands for all beyond the budget; NULL: there are none */
	struct d9__table blocks; /* the live ones by address; owned */
};

void d9__heap_release(struct d9__heap *heap);

/* An AllocEvent.  0 or -ENOMEM. */
int d9__heap_alloc(struct d9__heap *heap, const struct d9__heap_alloc *alloc);

/* A FreeEvent of what was allocated at |alloc_ns|. */
void d9__heap_free(struct d9__heap *heap, uint64_t ns, uint64_t address, uint64_t alloc_ns);

/* Where the program asks for memory: its innermost function in a stack, and the line. */
struct d9__heap_site {
	const struct d9__heap_stack *stack; /* the one with the most bytes */
	size_t frame;			    /* of that */
	double stack_bytes;
	struct d9__heap_sum allocated, live;
	double live_parts[D9__HEAP_PARTS]; /* bytes of |live|, by when they were allocated */
};

/*
 * All sites, in new memory (free() it), most live bytes first, then most allocated; NULL: there are none, or no memory
 * (|*n| is 0 or not).  |program| is how the program's file is called, or NULL.
 */
struct d9__heap_site *d9__heap_sites(const struct d9__heap *heap, const char *program, size_t *n);

/* The allocations in the calls of one callback. */
struct d9__heap_caller {
	const struct d9__callback *callback;
	size_t first; /* number of its first stack */
	struct d9__heap_sum allocated;
};

/* All callbacks in which something was allocated, most bytes first.  As d9__heap_sites(). */
struct d9__heap_caller *d9__heap_callers(const struct d9__heap *heap, size_t *n);

/* Whether what is live of |site| was allocated all along, and is enough to tell. */
bool d9__heap_site_grows(const struct d9__heap *heap, const struct d9__heap_site *site);

/* "leaky (t.c:7)", or what is known of it. */
struct d9__heap_name {
	char text[512];
} d9__heap_site_name(const struct d9__heap_site *site);

/* "leaky < work < main", at most |max| frames from the site outwards. */
struct d9__heap_name d9__heap_site_path(const struct d9__heap_site *site, size_t max);
