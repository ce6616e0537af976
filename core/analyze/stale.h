/* SPDX-License-Identifier: Apache-2.0 */
/* Timers that were armed by a clock which stood still, and ran before their time. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/timeline.h"
#include "base/time.h"

/* A clock that callbacks made so old is worth a warning whatever it was used for. */
#define D9__STALE_ALWAYS_NS (100 * D9__MS_NS)

/* The tasks that one callback armed so, or a program between two rounds of its loop. */
struct d9__stale_timers {
	uint64_t armed, early; /* |early|: ran, and by the callbacks' own doing before their time */

	/* One that shows it well: an old clock, and by what ran rather than by the kernel. */
	double score;
	uint64_t lag_ns; /* how old the clock was */
	uint64_t armed_ns, timeout_ns, due_ns;
	uint64_t worker, task;
	const struct d9__callback *timer;
	struct d9__between between; /* what ran since the loop had looked at the clock */
};

/* An arming that has not run yet, kept with the timer's task. */
struct d9__stale_timer {
	struct d9__stale_timers *sum; /* of the callback, or of the worker's times between rounds */
	bool between;		      /* of the latter */
	const struct d9__worker *worker;
	uint64_t armed_ns, timeout_ns, due_ns;
};

/* |worker|'s running callback, or else the program between rounds, armed |timer|, which is due at
 * |due_ns|.  0 or -ENOMEM. */
int d9__stale_armed(struct d9__worker *worker, struct d9__traced_task *timer, uint64_t ns,
		    uint64_t timeout_ns, uint64_t due_ns);

/* A call of |timer|, which was armed so and is due at |due_ns|, begins. */
void d9__stale_ran(struct d9__traced_task *timer, uint64_t due_ns);
