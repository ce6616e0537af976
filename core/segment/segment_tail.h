/* SPDX-License-Identifier: Apache-2.0 */
/* Segment tail: what a killed process left at the end of its newest segment, and how to seal that. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/options.h>

#include "segment/builder.h"
#include "segment/walk.h"

struct d9__tail_batch {
	size_t at;
	uint32_t len; /* of its whole frames */
};

/* All zero: no segment. */
struct d9__segment_tail {
	enum d9_compress kind;
	uint8_t *data; /* the last batches, unpacked, padded */
	size_t len, capacity;
	struct d9__tail_batch *batch;
	size_t n_batches, batch_capacity;
	uint64_t file_bytes;
	uint64_t blocks_end; /* in the file: what can be unpacked ends here */
	uint64_t frames_end; /* in the file: its last complete frame ends here */
	size_t open_at;      /* in |data|: where the frame begins that is not complete */
	size_t whole_end;    /* in |data|: behind the last whole frame of a batch */
	uint32_t crc, total; /* gzip: of all before |open_at| */
	bool lossy;          /* it tells of lost events */
	uint64_t last_ns;    /* of the newest event of these batches and of the segment's first one */
};

/*
 * Read the end of the segment |fd|, packed as |kind|.  0, -ENOMEM or an errno of read(2).  Damage is
 * no error: what is before it counts.
 */
int d9__segment_tail_read(struct d9__segment_tail *tail, int fd, enum d9_compress kind,
			  struct d9__walker *walker);

/*
 * Cut the segment behind what can be read, complete its last frame and add |last|, a batch.  0 or
 * -errno.
 */
int d9__segment_tail_seal(const struct d9__segment_tail *tail, int fd,
			  const struct d9__builder *last);

void d9__segment_tail_release(struct d9__segment_tail *tail);
