/* SPDX-License-Identifier: Apache-2.0 */
/* Alloc gap: how many bytes to let pass before the next allocation is sampled. */

#pragma once

#include <stdint.h>

/* The next number of SplitMix64. */
static inline uint64_t d9__alloc_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/*
 * A gap of an exponential distribution with the mean |rate|, in whole bytes.  An allocation of |size| bytes is sampled if
 * the gap that is left is not above |size|, hence with a probability of 1 - exp(-size / rate), exactly; one of 0 bytes
 * never.  For a |rate| of 1 the gap is 0: everything is sampled.
 */
uint64_t d9__alloc_gap(uint64_t *state, uint64_t rate);
