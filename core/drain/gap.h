/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gap: keeps polls and parks of each worker alternating in the file where events were lost, by
 * writing the missing ends and beginnings at the edges of the gap.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/chunk.h"
#include "ring/slot.h"
#include "segment/builder.h"
#include "segment/walk.h"

#define D9__BRIDGE_WORKERS D9__SLOT_COUNT /* their ids are below */

/* In which state the file leaves a worker. */
struct d9__gap_worker {
	enum d9__worker_state state; /* UNKNOWN: nothing in the file yet */
	uint32_t tid;
	uint64_t task;
	uint64_t last_ns;
	uint64_t cpu_ns; /* thread CPU time of its last park or unpark, as far as it was decoded */
};

/* Flush thread only. */
struct d9__gap {
	struct d9__gap_worker worker[D9__BRIDGE_WORKERS];
};

/* The first events behind a gap, as far as the flush thread knows them. */
struct d9__gap_edge {
	uint64_t to_ns;  /* time of the first event behind it */
	uint64_t cpu_ns; /* of the first park or unpark behind it, 0 if none */
	uint32_t tid;    /* 0: not known any more */
};

/* A whole chunk was written: it ends in |exit| at |last_ns|.  |tid| may be 0: not known. */
void d9__gap_wrote(struct d9__gap *gaps, const struct d9__entry_state *exit, uint32_t tid,
		      uint64_t last_ns);

/* An event was written; for prefixes, whose end state no header tells. */
void d9__gap_wrote_event(struct d9__gap *gaps, const struct d9__wire_frame *frame);

/*
 * Add to |out| what leads from the state in which the file leaves the worker to |entry|, where the
 * events behind the gap begin.  An open poll ends at the gap's beginning even if the same task is
 * polled behind it, because it is not known what happened between.
 */
void d9__gap_close(struct d9__gap *gaps, const struct d9__entry_state *entry,
		    const struct d9__gap_edge *gap, struct d9__builder *out);
