/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bound threads: loops whose threads may run on some CPUs only, and how much of the time for which
 * they were ready without one the program's other threads had these CPUs (BoundThreadEvent).
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

struct d9__timeline;

#define D9__BOUND_THREADS    32 /* that one look of the recorder tells of */
#define D9__BOUND_CPUS	     1024
#define D9__BOUND_NEIGHBOURS 8

/* A set of CPUs, as it is written, "0" or "0-3,8", and by bits. */
struct d9__cpu_set {
	char text[32];
	unsigned n;
	uint64_t bits[D9__BOUND_CPUS / 64];
};

/* A thread that had a loop's CPUs while that was ready. */
struct d9__neighbour {
	uint32_t tid, loop_tid;
	char name[16];
	struct d9__cpu_set cpus; /* the loop's */
	uint64_t cpu_ns;	 /* that it used there in the seconds in which the loop waited */
	uint64_t ns;		 /* for which the loop waited behind it */
};

/* All zero: no thread is bound. */
struct d9__bound {
	/* Events of one look come together, at one time. */
	uint64_t look_ns;
	size_t n;
	struct d9__bound_thread {
		uint32_t tid;
		char name[16];
		struct d9__cpu_set cpus;
		uint64_t cpu_ns, wait_ns;
	} threads[D9__BOUND_THREADS];
	struct d9__neighbour neighbours[D9__BOUND_NEIGHBOURS];
	size_t n_neighbours;
};

/* |event| is a BoundThreadEvent; |timeline| knows by then which threads run loops. */
void d9__bound_add(struct d9__bound *bound, struct d9__timeline *timeline,
		   const struct d9_event *event);

/* There is no other. */
void d9__bound_finish(struct d9__bound *bound, struct d9__timeline *timeline);

/* The neighbour behind which loops waited for longest; NULL: none did. */
const struct d9__neighbour *d9__bound_worst(const struct d9__bound *bound);

/*
 * Of the time for which the loops of |timeline| were ready without a CPU, the part in which other
 * threads of the program had the CPUs that they are bound to, 0 to 1.
 */
double d9__bound_part(const struct d9__timeline *timeline);
