/* SPDX-License-Identifier: Apache-2.0 */
/* A number over the whole trace in bounded memory, for questions about growth. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define D9__CURVE_POINTS 64

/* Equal time steps from the first value on; they double when the curve is full.  All zero: empty. */
struct d9__growth_curve {
	uint64_t start_ns, step_ns;
	unsigned n;
	int64_t points[D9__CURVE_POINTS]; /* the last value in each step */
};

/* The number is |value| from |ns| on.  Times do not decrease. */
void d9__growth_curve_set(struct d9__growth_curve *curve, uint64_t ns, int64_t value);

/*
 * Whether the number grew all through: it never fell far below what it had been, rose in each
 * quarter up to |end_ns|, and ended above |factor| times where its first quarter ended.
 */
bool d9__growth_curve_grows(const struct d9__growth_curve *curve, uint64_t end_ns, int64_t factor);
