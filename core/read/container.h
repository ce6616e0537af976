/* SPDX-License-Identifier: Apache-2.0 */
/* Container: how a segment is packed: plain, gzip, or a row of zstd frames; told by content. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "read/input.h"

enum d9__container_kind { D9__CONTAINER_PLAIN, D9__CONTAINER_GZIP, D9__CONTAINER_ZSTD };

/* One zstd frame of a segment, for reading it alone. */
struct d9__packed_frame {
	uint64_t stored_at, stored_len;
	uint64_t unpacked_at, unpacked_len;
};

struct d9__container {
	struct d9__input *input; /* borrowed */
	enum d9__container_kind kind;
	uint64_t stored_at;   /* offset in |input| behind the bytes in |in| */
	uint64_t unpacked_at; /* bytes delivered so far */
	uint64_t limit_bytes; /* that it may unpack to, or UINT64_MAX; set after open, 0: no limit */
	uint8_t *in;          /* packed bytes on their way; NULL for plain */
	size_t in_pos, in_end;
	void *engine; /* z_stream or ZSTD_DCtx */
	size_t hint;  /* of d9__zstd_block() */
	bool inside;  /* a gzip member or zstd frame has begun */
	bool pending; /* the engine may hold output that did not fit */
	bool done;

	/* Valid once a read has returned 0. */
	bool truncated;      /* the stored bytes end inside a member or frame */
	int err;             /* -EBADMSG damaged, or an error of read(2) */
	const char *message; /* static */

	/* zstd: complete frames passed so far, if |keep_frames|. */
	bool keep_frames;
	struct d9__packed_frame *frames;
	size_t n_frames;
	uint64_t frame_stored_at, frame_unpacked_at;
};

/* Look at the first bytes of |input|.  0, -ENOMEM, or an error of read(2). */
int d9__container_open(struct d9__container *container, struct d9__input *input);

/* The next unpacked bytes, at most |len|.  Bytes, 0 at the end or at damage, -ENOMEM. */
ssize_t d9__container_read(struct d9__container *container, void *buf, size_t len);

/* Bytes of the input that have been used. */
uint64_t d9__container_stored(const struct d9__container *container);

void d9__container_release(struct d9__container *container);

/* "plain", "gzip" or "zstd". */
const char *d9__container_name(enum d9__container_kind kind);
