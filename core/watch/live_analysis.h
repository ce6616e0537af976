/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live analysis: what a report would say of a running process, an interval at a time, by the code
 * that makes reports.
 */

#pragma once

#include <stdint.h>

#include "analyze/sums.h"
#include "watch/live.h"
#include "watch/live_order.h"
#include "watch/recorders.h"

struct d9__live_analysis {
	struct d9__analysis analysis; /* of all since the beginning */
	struct d9__sums interval;     /* of the newest interval */
	uint64_t from_ns, until_ns;   /* which is this */
	uint64_t events;	      /* in it */

	/* Called, if it is set, for each event, behind the analysis.  0 or -ENOMEM. */
	int (*on_event)(void *context, const struct d9_event *event);
	void *context;

	/* State. */
	const struct d9__recorder_seen *recorder;
	struct d9__live live;
	struct d9__live_order order;
	struct d9__sums before; /* until |until_ns| */
	uint64_t since_ns;
	bool adopted; /* loops that were there at |since_ns| */
	int err;
};

/*
 * |live| is all zero.  Begin with events from |since_ns| on; |recorder| is borrowed, and was looked
 * at.  0 or -ENOMEM.
 */
int d9__live_analysis_begin(struct d9__live_analysis *live,
			    const struct d9__recorder_seen *recorder, uint64_t since_ns);

/* Take in what came since the last call, after a look at the recorder.  0 or -errno. */
int d9__live_analysis_read(struct d9__live_analysis *live);

/* An interval ends, with the newest event that was taken in: fill |interval|.  0 or -ENOMEM. */
int d9__live_analysis_cut(struct d9__live_analysis *live);

/* One that was not begun has nothing to end. */
void d9__live_analysis_end(struct d9__live_analysis *live);
