/* SPDX-License-Identifier: Apache-2.0 */
/* Segment reader: a stream of unpacked bytes -> its frames, through a window that moves. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/decoder.h"

#define D9__WINDOW_BYTES ((size_t)1 << 18)

/* Where the bytes come from. */
struct d9__byte_source {
	/* At most |len| bytes; 0 at the end, -errno. */
	ssize_t (*read)(void *context, void *buf, size_t len);
	void *context;
	uint64_t left_bytes; /* that can still come at the most; UINT64_MAX if unknown */
};

struct d9__segment_reader {
	struct d9__byte_source source;
	struct d9__decoder decoder;
	const uint8_t *window; /* |buffer|, or bytes that are all in memory */
	size_t pos, end;       /* of |window|, pos <= end: bytes not yet decoded */
	uint64_t window_at;    /* offset in the stream of window[0] */
	uint8_t *buffer;
	size_t capacity;
	uint64_t keep_bytes;   /* that |buffer| may take to keep what was passed; 0: it is not kept */
	uint64_t limit_bytes;      /* for one frame; 0: none */
	bool ended;                /* the source has given all */
	bool stopped;              /* nothing more is decoded */

	/* Valid once next has returned 0. */
	bool truncated;      /* the stream ends inside a frame */
	int err;             /* why decoding stopped: -EBADMSG, -EPROTONOSUPPORT, -EFBIG */
	uint64_t err_offset; /* of the frame, if truncated or err */
	char message[176];   /* one line, if truncated or err */
};

void d9__segment_reader_init(struct d9__segment_reader *reader, struct d9__definitions *schemas,
			     uint64_t limit_bytes);

/* Begin with another stream; memory is kept. */
void d9__segment_reader_start(struct d9__segment_reader *reader, struct d9__byte_source source);

/* Begin with [bytes, bytes + len), which stay where they are. */
void d9__segment_reader_start_at(struct d9__segment_reader *reader, const uint8_t *bytes, size_t len);

/* After start: keep all that is read, unless it is more than |max_bytes| or memory is short. */
void d9__segment_reader_keep(struct d9__segment_reader *reader, uint64_t max_bytes);

/* Nothing is read any more: what was kept, now the caller's, and its length; or NULL. */
uint8_t *d9__segment_reader_kept(struct d9__segment_reader *reader, uint64_t *len);

/*
 * The next frame, borrowed until the next call.  1, 0 at the end, also if that is damage,
 * -ENOMEM or what the source answered.
 */
int d9__segment_reader_next(struct d9__segment_reader *reader, struct d9__frame *frame);

/*
 * Whether an event comes next whose values d9__values_quick() can decode; it is passed with
 * d9__segment_reader_take() once they are, which |frame|'s end needs.
 */
static inline bool d9__segment_reader_peek(const struct d9__segment_reader *reader,
					   struct d9__frame *frame)
{
	struct d9__cursor in;

	if (reader->stopped || reader->pos == reader->end)
		return false;
	in = (struct d9__cursor) { reader->window + reader->pos, reader->window + reader->end, 0 };
	return d9__decoder_peek(&reader->decoder, &in, frame);
}

static inline void d9__segment_reader_take(struct d9__segment_reader *reader,
					   const struct d9__frame *frame)
{
	reader->pos = (size_t)(frame->end - reader->window);
	reader->decoder.base_ns = frame->timestamp_ns;
}

/*
 * Pass events that come next, as far as that goes quickly, and note their times only.  To be followed
 * by d9__segment_reader_next() in any case.
 */
void d9__segment_reader_pass(struct d9__segment_reader *reader, struct d9__times *times);

/* Offset of |frame|, the latest one, in the stream. */
static inline uint64_t d9__segment_reader_offset(const struct d9__segment_reader *reader,
						 const struct d9__frame *frame)
{
	return reader->window_at + (uint64_t)(frame->start - reader->window);
}

void d9__segment_reader_release(struct d9__segment_reader *reader);
