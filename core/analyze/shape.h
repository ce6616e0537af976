/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the lengths of calls go on over the trace: slow only at first, longer and longer, or in a rhythm.  All of
 * it is about what calls took themselves, without what the kernel ran in their middle.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__callback;
struct d9__stall;

#define D9__SHAPE_POINTS 32

/* Of one callback: its calls by number, a few for each point, twice as many when there are too many points. */
struct d9__shape {
	uint64_t stride; /* calls for each point */
	uint64_t calls;  /* the number of the newest, plus one */
	struct d9__shape_point {
		uint64_t calls, ns, max_ns;
	} points[D9__SHAPE_POINTS];
};

/* The call of number |number| (the first is 0) of |callback| took |ns|.  0 or -ENOMEM. */
int d9__shape_add(struct d9__callback *callback, uint64_t number, uint64_t ns);

/* Slow at first, never again. */
struct d9__cold {
	uint64_t first_calls, slowest_ns;           /* of the first calls */
	uint64_t later_calls, later_ns, later_max_ns; /* of all others: number, mean, longest */
};

bool d9__shape_is_cold(const struct d9__shape *shape, struct d9__cold *cold);

/* Each call longer than the last, more or less. */
struct d9__growth {
	uint64_t calls, from_ns, to_ns; /* what calls of the first and of the last eighth took */
};

bool d9__shape_grows(const struct d9__shape *shape, struct d9__growth *growth);

/* A long call, for the rhythm of all of them. */
struct d9__pause {
	uint64_t start_ns, ns, number; /* number: which call of its callback */
	uint64_t worker, task;
	const struct d9__callback *callback;
	bool stands_out; /* set by d9__rhythms_find(): most calls of the callback are much shorter */
};

#define D9__PAUSES_MAX 1024

/* The newest ones.  All zero is empty. */
struct d9__pauses {
	struct d9__pause *items; /* a ring of D9__PAUSES_MAX */
	uint64_t n;              /* ever added */
};

void d9__pauses_release(struct d9__pauses *pauses);

/* |stall| is over; it was call |number| of its callback.  0 or -ENOMEM. */
int d9__pauses_add(struct d9__pauses *pauses, const struct d9__stall *stall, uint64_t number);

#define D9__RHYTHM_CALLBACKS 4

/* Pauses of a worker that come again and again after the same time. */
struct d9__rhythm {
	uint64_t worker, task, first_ns, longest_at_ns;
	uint64_t times, period_ns, pause_ns, longest_ns; /* pause_ns: the mean */
	uint64_t each_calls; /* one callback, and after so many calls of it each time; else 0 */
	const struct d9__callback *callbacks[D9__RHYTHM_CALLBACKS];
	uint64_t callback_ns[D9__RHYTHM_CALLBACKS];
	size_t n_callbacks; /* those that were seen first */
	bool stands_out;    /* most calls of these callbacks are much shorter */
};

/*
 * The rhythms in |pauses| in new memory, |*n| of them; a callback is in one at most.  NULL: there is none, or
 * |*n| is not 0: out of memory.
 */
struct d9__rhythm *d9__rhythms_find(const struct d9__pauses *pauses, size_t *n);

/* The rhythm that |callback| is part of, or NULL. */
const struct d9__rhythm *d9__rhythm_of(const struct d9__rhythm *rhythms, size_t n,
				       const struct d9__callback *callback);
