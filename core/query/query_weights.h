/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time that samples stand for, in the rows of samples and of calls: known at the end. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/timeline.h"
#include "query/query_rows.h"

/* A sample on the CPU. */
struct d9__query_weighed {
	const struct d9__weight *weight; /* of its stratum; NULL: none */
	uint64_t ns;
	uint64_t poll, run; /* that it is in; 0: none */
	int64_t sample; /* its row; 0: it has none */
};

/* All zero is empty; |items| is owned. */
struct d9__query_weights {
	struct d9__query_weighed *items; /* in order of time */
	size_t n;
};

/* Remember |sample| if it has a row in |rows|, or its poll or run has.  0 or -ENOMEM. */
int d9__query_weights_add(struct d9__query_weights *weights, const struct d9__query_rows *rows,
			  const struct d9__query_weighed *sample);

/* |worker| (NULL: none) had left its loop from |from_ns| to |to_ns|. */
void d9__query_weights_between(struct d9__query_weights *weights, const struct d9__worker *worker,
			       uint64_t from_ns, uint64_t to_ns);

/* Write all of them; errors stay in |rows|.  |period_ns| 0: the trace does not tell a time. */
void d9__query_weights_put(const struct d9__query_weights *weights, struct d9__query_rows *rows,
			   uint64_t period_ns);
