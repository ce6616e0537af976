/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums: how much of everything that an analysis adds up there is so far, as if the trace ended at
 * one moment.  The difference of two tells of the time between them, while the analysis goes on.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/analysis.h"

/* Of one loop.  What |time| has of longest and newest times is of all that was analysed. */
struct d9__loop_sums {
	struct d9__loop_time time;
	struct d9__account account;
	uint64_t looked_ns, cpu_ns;
	uint64_t library_ns; /* of cpu_ns, in its library without a callback, as the recorder saw */
	struct d9__told_time outside; /* in which calls it blocked between rounds */
	bool held_outside;	      /* and callbacks waited for that */
	bool cpu_seen;
};

/* Of one callback on one loop. */
struct d9__call_sums {
	const struct d9__callback *callback;
	size_t worker; /* its number */
	struct d9__callback_on on;
};

/* The prepare() or check() of one callback's sources. */
struct d9__source_sums {
	const struct d9__callback *callback;
	enum d9__outside_phase phase;
	size_t worker; /* its number */
	uint64_t calls, ns;
};

/* All zero is empty. */
struct d9__sums {
	struct d9__loop_sums *loops; /* by number of the worker */
	size_t n_loops;
	struct d9__call_sums *calls; /* by number of the callback, then of the worker */
	size_t n_calls;
	struct d9__source_sums *sources;
	size_t n_sources;
	/* Of the whole process: its threads ready without a CPU, as far as it is known, and of that
	 * what loops told; its CPU time, and how often a thread of it went to sleep. */
	bool runqueue_known;
	uint64_t runqueue_ns, ready_ns, cpu_ns, sleeps;
};

/*
 * Fill |sums|, which is empty.  Waits and calls that go on count up to |until_ns|, which is no
 * earlier than any event; 0: the analysis is finished, and nothing goes on.  0 or -ENOMEM.
 */
int d9__sums_take(struct d9__sums *sums, const struct d9__analysis *a, uint64_t until_ns);

/* Take |before|, of an earlier moment of the same analysis, out of |sums|. */
void d9__sums_subtract(struct d9__sums *sums, const struct d9__sums *before);

void d9__sums_release(struct d9__sums *sums);
