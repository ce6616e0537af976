/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walk: the frames of one of our own batches, as far as the flush thread has to understand them: to
 * continue a batch whose beginning was written, and to learn in which state it leaves a worker.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/event_types.h"

/* Where the schema of each type stands in the batch.  32 KiB: not for stacks. */
struct d9__walker {
	const uint8_t *fields[D9__TYPES_MAX]; /* its field definitions; NULL: not defined */
	uint16_t n_fields[D9__TYPES_MAX];
	const uint8_t *batch;
	uint64_t time_base; /* after the last frame */
};

struct d9__wire_frame {
	uint8_t tag;          /* enum d9__wire_tag */
	const uint8_t *bytes; /* the whole frame */
	uint32_t len;
	/* Events only. */
	uint16_t type_id;
	uint64_t ns;
	const uint8_t *values;
};

/* Called for every frame; false ends the walk. */
typedef bool (*d9__wire_frame_fn)(void *arg, const struct d9__wire_frame *frame);

/*
 * Visit the frames of |batch|, which begins with a header.  0, 1 if |fn| ended it, or -EBADMSG at
 * the first frame that is damaged; nothing is read outside [batch, batch + len).
 */
int d9__walk(struct d9__walker *walker, const uint8_t *batch, uint32_t len, d9__wire_frame_fn fn,
	     void *arg);

/*
 * The same for the first of the batches that [bytes, bytes + len) may hold: the length of its whole
 * frames, up to where the next one begins or to the damage.  0: there is no batch.
 */
uint32_t d9__walk_whole(struct d9__walker *walker, const uint8_t *bytes, size_t len,
			d9__wire_frame_fn fn, void *arg);

/*
 * Visit the frames of |batch|, which this process wrote, from where an earlier call came to: |*at| and |*time_base|, both 0 at
 * first.  |walker|, zeros at first, is used for nothing else.  False: a frame is damaged.
 */
bool d9__walk_on(struct d9__walker *walker, const uint8_t *batch, uint32_t *at, uint32_t len, uint64_t *time_base,
		 d9__wire_frame_fn fn, void *arg);

/* Decode a varint whose end is known to exist. */
uint64_t d9__walk_varint(const uint8_t **p);
