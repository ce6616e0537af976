/* SPDX-License-Identifier: Apache-2.0 */
/* Trace segment: one segment of an open trace, and what is known about it. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "read/run_of_events.h"

/* Batches of all segments, in file order. */
struct d9__batch_list {
	struct d9__batch_ref *refs;
	size_t n;
};

/* Memory for unpacked segments between the passes, shared by all segments of a reader. */
struct d9__keep_budget {
	uint64_t left_bytes;
};

struct d9__trace_segment {
	uint32_t number;
	struct d9__input input;
	enum d9__container_kind kind;
	struct d9_segment_info info; /* its message is |message| or NULL */
	char *message;               /* owned */
	uint64_t limit_bytes;
	size_t batches_before; /* of other segments, that do not count against the limit */

	/* Second pass. */
	uint8_t *kept; /* the unpacked bytes, if they fit the budget */
	uint64_t kept_len;
	struct d9__packed_frame *frames;
	size_t n_frames;
	struct d9__store store;
	size_t open_batches; /* users of |store| */
	uint64_t store_bytes; /* that it takes, about; 0: it is closed */
	uint64_t todo;       /* batches that were not opened yet */
};

/*
 * Open |path| and look whether it is a segment.  0, an error of open(2) or read(2), -EBADMSG or
 * -EPROTONOSUPPORT; then |*why| is a line to print, owned by the caller, or NULL.
 */
int d9__trace_segment_open(struct d9__trace_segment *segment, const char *path, char **why);

/*
 * The first pass: note each batch in |batches| and fill in the segment's info.  Unpacked bytes
 * are kept while |budget| lasts.  What unpacks to more than |unpacked_max| bytes (0: no limit) ends there.  0 or -ENOMEM; damage is in the info.
 */
int d9__trace_segment_scan(struct d9__trace_segment *segment, struct d9__definitions *schemas,
			   struct d9__batch_list *batches, struct d9__keep_budget *budget, uint64_t unpacked_max);

/* Count |frame| in the info; scan does it by itself. */
void d9__trace_segment_count(struct d9__trace_segment *segment, const struct d9__frame *frame);

/* Decoding ended: put what |reader| and |container| say into the info.  0 or -ENOMEM. */
int d9__trace_segment_finish(struct d9__trace_segment *segment,
			     const struct d9__segment_reader *reader,
			     const struct d9__container *container);

/* Name what went wrong at |offset|: "PATH: offset N: WHAT".  0 or -ENOMEM. */
int d9__trace_segment_blame(struct d9__trace_segment *segment, int err, uint64_t offset,
			    const char *what);

void d9__trace_segment_release(struct d9__trace_segment *segment);

/* A source for a segment reader; |container| is its context. */
struct d9__byte_source d9__container_source(struct d9__container *container);
