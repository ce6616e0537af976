/* SPDX-License-Identifier: Apache-2.0 */
/* Duration steps: how long calls took, in four classes for each power of two, as summaries of
 * segments tell it. */

#pragma once

#include <stdint.h>

/* Step 4 * k + q holds values from 2^k * (1 + q/4) on. */
#define D9__DURATION_STEPS 256

/*
 * 2^k * (1 + |eighths|/8), k being that of |step|: 2 * (step % 4) eighths are where the step
 * begins, one more is its middle, two more its end.  The end of the last step is no number of 64
 * bits, and 0.
 */
static inline uint64_t d9__duration_at(unsigned step, unsigned eighths)
{
	uint64_t sum = 8 + eighths;
	unsigned power = step / 4;

	return power < 3 ? (sum << power) / 8 : sum << (power - 3);
}
