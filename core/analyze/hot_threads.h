/* SPDX-License-Identifier: Apache-2.0 */
/* Hot threads: where each thread of the program was found by stack samples, whether it runs a loop or not. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/callbacks.h"
#include "analyze/off_time.h"
#include "analyze/samples.h"

struct d9__sample_counts {
	uint64_t on, off;
	uint64_t switches; /* of |off|, those that stand for others: |in_slice| of struct d9__sampled */
	struct d9__off_time off_time; /* of |off| */
};

struct d9__hot_thread {
	uint32_t tid;
	char name[16];			 /* the newest that a sample told; "": none did */
	const struct d9__worker *worker; /* of the newest sample; NULL: it ran no loop */
	struct d9__sample_counts counts, nowhere; /* |nowhere|: of them, without a stack, or beyond the budget for stacks */
	size_t number;			  /* in the order of their first samples */
	struct d9__table stacks;	  /* by the stack's number; owned */
	struct d9__absence absence;	  /* since its newest sample */
};

/*
 * One sample at |ns| with |stack| of the stratum |weight|; NULL: none.  Its thread, whose absence
 * is open where the sample is off the CPU; NULL: no memory.
 */
struct d9__hot_thread *d9__hot_threads_add(struct d9__table *threads,
					   const struct d9__sampled *sample, uint64_t ns,
					   const struct d9__stack *stack,
					   const struct d9__weight *weight);

/* One on-CPU sample of thread |tid| with |stack| is of the stratum |to|, not of |from|. */
void d9__hot_threads_move(struct d9__table *threads, uint32_t tid, const struct d9__stack *stack,
			  const struct d9__weight *from, const struct d9__weight *to);

/*
 * Add to |place| where samples found thread |tid| on the CPU while it had no loop.  0 or -ENOMEM.
 */
int d9__hot_threads_without_loop(const struct d9__table *threads, uint32_t tid,
				 struct d9__callback *place);

void d9__hot_threads_release(struct d9__table *threads);

/* The threads, those with most samples on the CPU first, in new memory, of which there are threads->n; NULL: no memory.
 */
struct d9__hot_thread **d9__hot_threads_sorted(const struct d9__table *threads);

/*
 * A function in which a thread was: what it had called does not count.  Where it left the CPU, the function that asked for
 * what it waited for there.
 */
struct d9__hot_function {
	const struct d9__hot_thread *thread; /* NULL: of |callback| */
	const struct d9__callback *callback; /* that no sample met; NULL: |thread| was met here */
	struct d9__frame_name frame; /* |function| NULL: its name is not known, or there is no stack */
	const char *inside; /* what |frame| had called, in another module; NULL: nothing, or its name is not known */
	uint64_t n;
	uint64_t ns; /* on the CPU, as the weights of its samples say; off it, as their times */
	uint64_t about_ns; /* of that, by estimates */
};

/*
 * Functions that threads were on the CPU in, and callbacks that no sample met, those with most time
 * first, in new memory;
 * |*n| of them.  NULL: no memory.
 */
struct d9__hot_function *d9__hot_functions_on(const struct d9__table *threads,
					      const struct d9__callbacks *callbacks,
					      uint64_t period_ns, size_t *n);

/*
 * Functions in which threads left the CPU, likewise.  The recorder told switches in |switch_share|
 * of the time: counts and times are scaled to all of it.
 */
struct d9__hot_function *d9__hot_functions_off(const struct d9__table *threads, double switch_share, size_t *n);
