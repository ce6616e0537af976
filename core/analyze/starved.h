/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starved: events that are ready in a loop's queue, round after round, and are not called, because
 * others of a higher priority are ready again each time.  No event tells of them until they are
 * called, but the queue's length does.
 */

#pragma once

#include <stdint.h>

struct d9__callback;
struct d9__traced_task;

/* All zero at first. */
struct d9__starved {
	/* The longest such time: so many rounds ended with |waiting| events and more in the queue;
	 * |by|: most of the calls. */
	uint64_t from_ns, to_ns, rounds, calls, waiting;
	const struct d9__callback *by;

	/* State: the time since the queue was empty at the end of a round. */
	struct d9__starving {
		uint64_t from_ns, to_ns, rounds, calls;
		unsigned least, most; /* in the queue, at the end of rounds, and ever */
		unsigned tasks;	      /* that were called */
		unsigned queue;	      /* at the latest call */
		const struct d9__callback *candidate; /* for most of the calls, by majority vote */
		uint64_t votes;
	} now;
};

/* |task| is called at |ns|, with |queue| events in the queue, itself among them. */
void d9__starved_call(struct d9__starved *starved, struct d9__traced_task *task, uint64_t ns,
		      unsigned queue);

/* Nothing follows. */
void d9__starved_finish(struct d9__starved *starved);
