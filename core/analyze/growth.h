/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and descriptors of the process, told once a second, and the callbacks whose calls go with their growth. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/callbacks.h"

#define D9__STATE_POINTS 64

enum d9__held {
	D9__HELD_MEMORY, /* resident, in bytes */
	D9__HELD_DESCRIPTORS,
	D9__HELD_TASKS, /* of loops: connections, for the most part */
	D9__HELD
};

/* Sums over the times between two samples: how well calls of one callback go with growth. */
struct d9__goes_with {
	uint64_t calls, first_calls; /* until the newest sample, the first one */
	double square, product[D9__HELD];
};

/* All zero: nothing is told. */
struct d9__growth_state {
	uint64_t samples, first_ns, last_ns;
	uint64_t first[D9__HELD], last[D9__HELD], most[D9__HELD];
	struct d9__state_point {
		uint64_t ns, held[D9__HELD];
	} points[D9__STATE_POINTS]; /* one in |stride| samples; the newest sample is |last| */
	size_t n_points;
	uint64_t stride;
	double square[D9__HELD];
	struct d9__goes_with *with; /* of the callbacks that came first */
	size_t n_with;
};

void d9__growth_release(struct d9__growth_state *state);

/* 0 or -ENOMEM. */
int d9__growth_add(struct d9__growth_state *state, const struct d9__callbacks *callbacks, uint64_t ns,
		   const uint64_t held[D9__HELD]);

/*
 * A straight line through what was held, in a trace that is long enough for one: how much more each
 * second; and what part of all differences it explains, 0 to 1.
 */
struct d9__trend {
	double per_s, r2;
	uint64_t grown; /* by the line, in the whole time */
};

/* Whether |what| grew along a line that goes on in the second half of a minute and more. */
bool d9__growth_is_linear(const struct d9__growth_state *state, enum d9__held what,
			  struct d9__trend *out);

/* Whether |what| goes with |other|, which grows too: then how much of it for each. */
bool d9__growth_follows(const struct d9__growth_state *state, enum d9__held what,
			enum d9__held other, double *each);

/* Whether |what| grew all through the trace. */
bool d9__growth_is_steady(const struct d9__growth_state *state, enum d9__held what);

/* The callback whose calls go best with the growth of |what|, and how many there were; NULL: none does. */
const struct d9__callback *d9__growth_goes_with(const struct d9__growth_state *state,
						const struct d9__callbacks *callbacks, enum d9__held what,
						uint64_t *calls);
