/* SPDX-License-Identifier: Apache-2.0 */
/* How often each value occurred: log-linear buckets, for quantiles of durations. */

#pragma once

#include <stdint.h>

/*
 * Each power of two is cut into 128 equal buckets; values below 128 have one bucket each.  A
 * quantile is the middle of the bucket in which the nearest-rank value lies, so it is off by at
 * most 1/256 of itself.  count, sum, min and max are exact.
 */
#define D9__HISTOGRAM_SUB_BITS 7
#define D9__HISTOGRAM_SUBS     (1 << D9__HISTOGRAM_SUB_BITS)
#define D9__HISTOGRAM_OCTAVES  (64 - D9__HISTOGRAM_SUB_BITS + 1)

/* The error of quantiles that reports state: 1/256, rounded up. */
#define D9__HISTOGRAM_ERROR 0.004

/* All zero is an empty histogram. */
struct d9__histogram {
	uint64_t count, sum, min, max;
	uint64_t *octaves[D9__HISTOGRAM_OCTAVES]; /* buckets, allocated at the first value in them */
};

void d9__histogram_release(struct d9__histogram *h);

/* 0 or -ENOMEM. */
int d9__histogram_add(struct d9__histogram *h, uint64_t value);

/* Add all of |from| to |h|.  0 or -ENOMEM, then with a part of |from| added. */
int d9__histogram_merge(struct d9__histogram *h, const struct d9__histogram *from);

/*
 * Take out all of |from|, which was added to |h| before.  min and max stay exact where their buckets still have
 * values, else they become the middle of the first or last bucket that has.
 */
void d9__histogram_subtract(struct d9__histogram *h, const struct d9__histogram *from);

/* Nearest rank: the smallest value that at least |q| (0 to 1) of all values do not exceed. */
uint64_t d9__histogram_quantile(const struct d9__histogram *h, double q);

/* Number of values above |limit|; those in the bucket of |limit| count as not above. */
uint64_t d9__histogram_above(const struct d9__histogram *h, uint64_t limit);

/* Their sum, off by at most 1/256 of itself. */
uint64_t d9__histogram_sum_above(const struct d9__histogram *h, uint64_t limit);
