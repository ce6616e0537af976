/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into a descriptor, packed as a recorder packs a segment, with a seek table if that is
 * zstd. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/container.h"
#include "segment/packer.h"

struct d9__packed_output {
	int fd; /* borrowed */
	struct d9__packer packer;
	/* Gathered, not yet packed. */
	uint8_t *bytes;
	size_t len, capacity;
	uint64_t first_ns, last_ns;
	uint32_t events;
};

/* 0 or -ENOMEM.  Release in any case. */
int d9__packed_output_open(struct d9__packed_output *out, int fd, enum d9__container_kind kind);

/* Return the place for |len| bytes more; NULL if out of memory.  |out->len| claims them. */
uint8_t *d9__packed_output_reserve(struct d9__packed_output *out, size_t len);

/* Note that an event of |time_ns| was put. */
void d9__packed_output_event(struct d9__packed_output *out, uint64_t time_ns);

/*
 * Between two frames, pack and write the bytes if they are enough.  |batch_begins|: a zstd frame
 * may end here.  0, -ENOMEM, -EIO, or an error of write(2).
 */
int d9__packed_output_settle(struct d9__packed_output *out, bool batch_begins);

/* End the output.  As d9__packed_output_settle(). */
int d9__packed_output_end(struct d9__packed_output *out);

void d9__packed_output_release(struct d9__packed_output *out);

/* Write the trace |from| to |to| once more, packed as |kind|.  0, or as d9__frames_next() and the
 * above. */
int d9__packed_output_copy(int from, int to, enum d9__container_kind kind);
