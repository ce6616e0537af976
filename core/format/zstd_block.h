/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd, a block at a time.  ZSTD_decompressStream() takes all it is given, and where a block is damaged it
 * keeps to itself what it made of those before.  Given one block it has nothing to keep.
 */

#pragma once

#include <stddef.h>
#include <zstd.h>

#define D9__ZSTD_BLOCK_HEAD_LEN 3

/* 32 MiB of what was unpacked, the most that anybody needs to pack a trace well (zstd -19: 8 MiB). */
#define D9__ZSTD_WINDOW_LOG_MAX 25

/*
 * As ZSTD_decompressStream(), with no more of |in| than the next block's header or its content.  |*hint| is 0
 * before the first call and belongs to the calls after it.
 */
static inline size_t d9__zstd_block(ZSTD_DStream *zstd, size_t *hint, ZSTD_outBuffer *out,
				    ZSTD_inBuffer *in)
{
	ZSTD_inBuffer piece = *in;
	size_t want = D9__ZSTD_BLOCK_HEAD_LEN;

	/* The input that zstd asks for ends with the header of the block behind. */
	if (*hint > want)
		want = *hint - want;
	if (piece.size - piece.pos > want)
		piece.size = piece.pos + want;
	*hint = ZSTD_decompressStream(zstd, out, &piece);
	in->pos = piece.pos;
	return *hint;
}
