/* SPDX-License-Identifier: Apache-2.0 */
/* Time bins: the longest call and the time in calls, over time, in at most D9__TIME_BINS pieces of
 * equal length. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#define D9__TIME_BINS 64

/* All zero is empty.  Bin i covers |width_ns| from (first + i) * width_ns on; the width is a power
 * of two. */
struct d9__time_bins {
	uint64_t width_ns, first;
	size_t n;
	struct d9__time_bin {
		uint64_t longest_ns; /* of the calls that ran in it, whole */
		uint64_t busy_ns;    /* of calls, their part in it; of all workers */
	} items[D9__TIME_BINS];
};

/* A call ran from |start_ns| to |end_ns|.  In any order. */
void d9__time_bins_add(struct d9__time_bins *bins, uint64_t start_ns, uint64_t end_ns);
