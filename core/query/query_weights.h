/* SPDX-License-Identifier: Apache-2.0 */
/* The time that samples stand for, in the rows of samples and of calls: known at the end. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/timeline.h"
#include "query/query_rows.h"

/* A sample, on the CPU unless it has |off_time|. */
struct d9__query_weighed {
	const struct d9__weight *weight; /* of its stratum; NULL: none */
	uint64_t ns;
	uint64_t poll, run; /* that it is in; 0: none */
	int64_t sample; /* its row; 0: it has none */
	struct d9__off_time *off_time; /* owned; NULL: it is on the CPU */
};

/* All zero is empty; |items| is owned. */
struct d9__query_weights {
	struct d9__query_weighed *items; /* in order of time */
	size_t n;
};

/* Remember |sample| if it has a row in |rows|, or its poll or run has.  0 or -ENOMEM. */
int d9__query_weights_add(struct d9__query_weights *weights, const struct d9__query_rows *rows,
			  const struct d9__query_weighed *sample);

/* Remember the sample in row |sample|, since which |absence| lasts.  0 or -ENOMEM. */
int d9__query_weights_add_off(struct d9__query_weights *weights, const struct d9__query_rows *rows,
			      struct d9__absence *absence, int64_t sample);

void d9__query_weights_release(struct d9__query_weights *weights);

/* |worker| (NULL: none) had left its loop from |from_ns| to |to_ns|. */
void d9__query_weights_between(struct d9__query_weights *weights, const struct d9__worker *worker,
			       uint64_t from_ns, uint64_t to_ns);

/*
 * Write all of them; errors stay in |rows|.  |period_ns| 0: the trace does not tell the time of
 * those on the CPU.  |switch_share| is of the time that has switches.
 */
void d9__query_weights_put(const struct d9__query_weights *weights, struct d9__query_rows *rows,
			   uint64_t period_ns, double switch_share);
