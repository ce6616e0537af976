/* SPDX-License-Identifier: Apache-2.0 */
/* Hot: where the calls of a callback were found by stack samples, on the CPU or off it. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/callbacks.h"
#include "analyze/samples.h"

/* Fewer samples say nothing: no share is told of them. */
#define D9__HOT_FEW 3

struct d9__hot {
	struct d9__table stacks; /* struct hot_stack by the stack's number; owned */
	uint64_t on, off;
};

/* One sample with |stack| in a call of |callback|.  0 or -ENOMEM. */
int d9__hot_add(struct d9__callback *callback, const struct d9__stack *stack, bool off_cpu);

void d9__hot_free(struct d9__hot *hot);

/* A function of the program, and how often a call of the callback was there, or in what it had called. */
struct d9__spot {
	const struct d9__stack *stack; /* the most frequent with this spot */
	size_t frame;		       /* of that stack */
	uint64_t n, stack_n;
};

/*
 * The functions in which |callback| was found most often, in the program's own file or else in its own module where it
 * was there at all, else the innermost; most often first.  At most |max|; how many.  Stacks must have names.
 */
size_t d9__hot_spots(const struct d9__callback *callback, bool off_cpu, struct d9__spot *out, size_t max);

/*
 * The innermost frame of |stack|, which has names, that lies in the program's own file and inside the callback, else in
 * |callback|'s module; 0 if none does.
 */
size_t d9__hot_own_frame(const struct d9__callback *callback, const struct d9__stack *stack);

/* Whether |stack|, which may have names, lies in a loop library that |callback| has called. */
bool d9__hot_calls_loop(const struct d9__callback *callback, const struct d9__stack *stack);

/* The innermost frame of |stack|, which has names, that is no work of the recorder's; n - 1 if all
 * are. */
size_t d9__hot_leaf(const struct d9__stack *stack);

/*
 * "socket (expand_files, expand_fdtable, synchronize_rcu)" into |buf|: where a thread left the CPU
 * with |stack|, and how far the kernel had come; "" without names.  Returns |buf|.
 */
const char *d9__hot_left_cpu(const struct d9__stack *stack, char *buf, size_t size);

/* The outermost frame of the program inside the callback whose stack it is, which its library called; NULL: none is known. */
const struct d9__frame_name *d9__hot_entry(const struct d9__stack *stack);

/* The next of |hot|'s stacks, and how often a call was there on the CPU; NULL: no more.  |*place| begins with 0. */
const struct d9__stack *d9__hot_next(const struct d9__hot *hot, size_t *place, uint64_t *on);

/*
 * The function outside of the program, as programs call it ("write"), that the program's innermost
 * function had called in |stack|, or the module of one without a name; NULL: none.
 */
const char *d9__hot_called_in(const struct d9__callback *callback, const struct d9__stack *stack);

/* The one that |callback| was in, on the CPU, by most of all its samples; NULL: there is none, or
 * too few samples. */
const char *d9__hot_called(const struct d9__callback *callback);

/*
 * "83 % in render_row (svc.c:88, in memcpy), 10 % in ...", in new memory; NULL: too few samples, or
 * no memory.  The function that the program's own had called is told if most of its samples were
 * there.
 */
char *d9__hot_describe(const struct d9__callback *callback, bool off_cpu);

/* As much of the samples on the CPU that |function| was in, of itself or what it had called. */
char *d9__hot_describe_inside(const struct d9__callback *callback, const char *function);
