/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of times and counts, which are uint64_t and must not fall below 0. */

#pragma once

#include <stdint.h>

/* Return the smaller of |a| and |b|. */
static inline uint64_t d9__u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Return the larger of |a| and |b|. */
static inline uint64_t d9__u64_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Return |a| - |b|, or 0 where |b| is larger. */
static inline uint64_t d9__u64_minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}
