/* SPDX-License-Identifier: Apache-2.0 */
/* Packer: batches -> the bytes of a segment file; zstd frames, one gzip member, or as they are. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/options.h>

#include "base/time.h"
#include "format/seek_table.h"

#define D9__FRAME_MAX_BYTES  (1u << 20)
#define D9__FRAME_MAX_NS     D9__SECOND_NS

struct d9__packer {
	enum d9_compress kind;
	void *zstd;          /* ZSTD_CCtx, kept between segments */
	struct d9__gzip *gz; /* likewise */

	/* Packed, not yet written by the segment. */
	uint8_t *out;
	size_t len, capacity;

	/* Of this segment. */
	uint64_t in_bytes, out_bytes; /* including |len| */
	struct d9__seek_entry frame; /* the open one */
	uint64_t frame_opened_ns;
	bool unflushed; /* the compressor holds what was added */
	bool raw;	/* the open frame consists of raw blocks: it was copied, not compressed */
	struct d9__seek_entry *frames;
	size_t n_frames, frames_capacity;

	/*
	 * zstd: a frame is begun raw, and goes on so, while that keeps |raw_bytes|, the length of
	 * all raw frames, within |raw_limit|, which the owner changes when it likes.  0: all are
	 * compressed.
	 */
	uint64_t raw_bytes, raw_limit;

	/* As of the last d9__packer_keep(). */
	struct d9__seek_entry kept;
	bool kept_raw;
	uint64_t kept_raw_bytes;
	size_t n_kept;
	uint32_t crc, total; /* of gzip */
};

/* Zeroed before the first call.  0 or -ENOMEM. */
int d9__packer_begin(struct d9__packer *packer, enum d9_compress kind);
void d9__packer_release(struct d9__packer *packer);

/* Add one batch.  0, -ENOMEM, or -EIO if the compressor failed. */
int d9__packer_add(struct d9__packer *packer, const void *batch, size_t len, uint64_t first_ns,
		   uint64_t last_ns, uint32_t events, uint64_t now_ns);

/* Bring all that was added into |out|, readable; ends the zstd frame if it is due. */
int d9__packer_flush(struct d9__packer *packer, uint64_t now_ns);

/* |out| was written: forget it. */
void d9__packer_keep(struct d9__packer *packer);

/*
 * Writing |out| failed: forget all that was added since the last d9__packer_keep().  Only
 * d9__packer_end_frame() and d9__packer_end() may follow.
 */
void d9__packer_cut(struct d9__packer *packer);

/* End the zstd frame that is open, of which everything was flushed. */
int d9__packer_end_frame(struct d9__packer *packer);

/* Append a whole zstd frame as it is, where none is open; |of| describes it, but for its place.  0
 * or -ENOMEM. */
int d9__packer_copy(struct d9__packer *packer, const void *frame, size_t len,
		    const struct d9__seek_entry *of);

/* Complete the file, of which everything was flushed: last frame or trailer, seek table. */
int d9__packer_end(struct d9__packer *packer);

/* ".bin", ".bin.zst", ".bin.gz" */
const char *d9__packer_suffix(enum d9_compress kind);
