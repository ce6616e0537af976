/* SPDX-License-Identifier: Apache-2.0 */
/* Which of many ranges of addresses hold one, also where they overlap. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__interval {
	uint64_t start, end; /* the first byte behind */
	uint64_t last_end;   /* of all in its part of the tree */
	size_t number;	     /* among those it was built of */
};

/* All zero is empty. */
struct d9__intervals {
	struct d9__interval *items; /* sorted by start; the middle one is the root, and so on in both halves */
	size_t n;
};

/*
 * Make it of |n| ranges, whose starts and ends stand every |step| bytes from |starts| and |ends| on.
 * O(n log n).  0 or -ENOMEM, then it is as before.
 */
int d9__intervals_build(struct d9__intervals *intervals, const uint64_t *starts, const uint64_t *ends, size_t step,
			size_t n);

/*
 * The numbers of those that hold |address|, in the order of their starts, |max| at the most; how many.
 * O(log n + found).
 */
size_t d9__intervals_find(const struct d9__intervals *intervals, uint64_t address, size_t *numbers, size_t max);

void d9__intervals_release(struct d9__intervals *intervals);
