/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/zstd_heap.h"
#include "format/wire.h"
#include "format/zstd_block.h"
#include "segment/gzip.h"
#include "segment/packer.h"

#define ZSTD_LEVEL 1

/*
 * Smaller tables than the level's: they leave more of the cache to the program.
 */
#define WINDOW_LOG 17
#define HASH_LOG   12

#define RAW_BLOCK_MAX (128u << 10) /* zstd's limit, which is as large as the window here */
#define RAW_HEADER    6u
#define RAW_END	      D9__ZSTD_BLOCK_HEAD_LEN

static bool reserve(struct d9__packer *packer, size_t more)
{
	return d9__array_reserve(packer->out, &packer->capacity, packer->len, more);
}

static bool reserve_frame(struct d9__packer *packer)
{
	return d9__array_reserve(packer->frames, &packer->frames_capacity, packer->n_frames, 1);
}

static void took(struct d9__packer *packer, size_t n)
{
	packer->len += n;
	packer->out_bytes += n;
}

static int begin_zstd(struct d9__packer *packer)
{
	if (!packer->zstd) {
		packer->zstd = d9__zstd_new_packer();
		if (!packer->zstd)
			return -ENOMEM;
		ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
		ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_windowLog, WINDOW_LOG);
		ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_hashLog, HASH_LOG);
	}
	ZSTD_CCtx_reset(packer->zstd, ZSTD_reset_session_only);
	return 0;
}

static int begin_gzip(struct d9__packer *packer)
{
	if (!packer->gz && !(packer->gz = d9__gzip_new()))
		return -ENOMEM;
	if (!reserve(packer, D9__GZIP_HEADER_LEN))
		return -ENOMEM;
	d9__gzip_begin(packer->gz, packer->out);
	took(packer, D9__GZIP_HEADER_LEN);
	return 0;
}

int d9__packer_begin(struct d9__packer *packer, enum d9_compress kind)
{
	packer->kind = kind;
	packer->len = 0;
	packer->in_bytes = packer->out_bytes = 0;
	packer->frame = (struct d9__seek_entry){ 0 };
	packer->n_frames = 0;
	packer->kept = packer->frame;
	packer->n_kept = 0;
	packer->crc = packer->total = 0;
	packer->unflushed = packer->raw = packer->kept_raw = false;
	packer->raw_bytes = packer->kept_raw_bytes = 0;
	switch (kind) {
	case D9_COMPRESS_ZSTD:
		return begin_zstd(packer);
	case D9_COMPRESS_GZIP:
		return begin_gzip(packer);
	case D9_COMPRESS_NONE:
		break;
	}
	return 0;
}

void d9__packer_release(struct d9__packer *packer)
{
	ZSTD_freeCCtx(packer->zstd);
	d9__gzip_free(packer->gz);
	d9__free(packer->out);
	d9__free(packer->frames);
	*packer = (struct d9__packer){ 0 };
}

static int compress_zstd(struct d9__packer *packer, const void *bytes, size_t len,
			 ZSTD_EndDirective directive)
{
	ZSTD_inBuffer in = { bytes, len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out;

		if (!reserve(packer, ZSTD_CStreamOutSize()))
			return -ENOMEM;
		out = (ZSTD_outBuffer){ packer->out + packer->len, packer->capacity - packer->len,
					0 };
		left = ZSTD_compressStream2(packer->zstd, &out, &in, directive);
		if (ZSTD_isError(left))
			return -EIO;
		took(packer, out.pos);
	} while (directive == ZSTD_e_continue ? in.pos < in.size : left != 0);
	return 0;
}

static int add_gzip(struct d9__packer *packer, const uint8_t *bytes, size_t len)
{
	if (!reserve(packer, d9__gzip_bound(len)))
		return -ENOMEM;
	took(packer, d9__gzip_write(packer->gz, bytes, len, packer->out + packer->len));
	return 0;
}

static int add_plain(struct d9__packer *packer, const void *bytes, size_t len)
{
	if (!reserve(packer, len))
		return -ENOMEM;
	memcpy(packer->out + packer->len, bytes, len);
	took(packer, len);
	return 0;
}

/* ---- raw frames ---- */

/* The room of |len| bytes in a raw frame. */
static size_t raw_blocks(size_t len)
{
	return len + (len + RAW_BLOCK_MAX - 1) / RAW_BLOCK_MAX * D9__ZSTD_BLOCK_HEAD_LEN;
}

/* By how much they make |raw_bytes| larger: an open frame is counted with its end. */
static size_t raw_cost(const struct d9__packer *packer, size_t len)
{
	return raw_blocks(len) + (packer->frame.len ? 0 : RAW_HEADER + RAW_END);
}

static uint8_t *put_raw_header(uint8_t *p)
{
	p = d9__wire_put_u32(p, ZSTD_MAGICNUMBER);
	*p++ = 0; /* no checksum, no length, no dictionary */
	*p++ = (WINDOW_LOG - 10) << 3;
	return p;
}

static uint8_t *put_raw_blocks(uint8_t *p, const uint8_t *bytes, size_t len)
{
	while (len) {
		uint32_t n = len < RAW_BLOCK_MAX ? (uint32_t)len : RAW_BLOCK_MAX, head = n << 3;

		*p++ = (uint8_t)head;
		*p++ = (uint8_t)(head >> 8);
		*p++ = (uint8_t)(head >> 16);
		memcpy(p, bytes, n);
		p += n;
		bytes += n;
		len -= n;
	}
	return p;
}

/* |begins|: the frame. */
static int add_raw(struct d9__packer *packer, const void *bytes, size_t len, bool begins)
{
	uint8_t *p;

	if (!reserve(packer, RAW_HEADER + raw_blocks(len)))
		return -ENOMEM;
	p = packer->out + packer->len;
	if (begins)
		p = put_raw_header(p);
	p = put_raw_blocks(p, bytes, len);
	took(packer, (size_t)(p - packer->out) - packer->len);
	return 0;
}

/* Whether the next |len| bytes are to be raw; ends a raw frame that they are not to go into. */
static int choose(struct d9__packer *packer, size_t len, bool *raw)
{
	*raw = packer->raw || (len && !packer->frame.len);
	*raw &= packer->raw_bytes + raw_cost(packer, len) <= packer->raw_limit;
	return packer->raw && !*raw ? d9__packer_end_frame(packer) : 0;
}

static int add_zstd(struct d9__packer *packer, const void *bytes, size_t len, bool begins)
{
	packer->unflushed = !packer->raw;
	return packer->raw ? add_raw(packer, bytes, len, begins)
			   : compress_zstd(packer, bytes, len, ZSTD_e_continue);
}

/* ---- batches ---- */

static void note(struct d9__packer *packer, size_t len, uint64_t first_ns, uint64_t last_ns,
		 uint32_t events, uint64_t now_ns)
{
	struct d9__seek_entry *frame = &packer->frame;

	if (!frame->len) {
		frame->offset = packer->out_bytes;
		packer->frame_opened_ns = now_ns;
	}
	frame->len += (uint32_t)len;
	frame->events += events;
	if (first_ns && (!frame->first_ns || first_ns < frame->first_ns))
		frame->first_ns = first_ns;
	if (last_ns > frame->last_ns)
		frame->last_ns = last_ns;
}

int d9__packer_add(struct d9__packer *packer, const void *batch, size_t len, uint64_t first_ns,
		   uint64_t last_ns, uint32_t events, uint64_t now_ns)
{
	bool begins, raw = false;
	int err = packer->kind == D9_COMPRESS_ZSTD ? choose(packer, len, &raw) : 0;

	/* A frame that is begun can be ended, whatever memory there is then. */
	if (!err && packer->kind == D9_COMPRESS_ZSTD && !reserve_frame(packer))
		err = -ENOMEM;
	if (err)
		return err;
	begins = !packer->frame.len;
	if (raw)
		packer->raw_bytes += raw_cost(packer, len);
	packer->raw = raw;
	note(packer, len, first_ns, last_ns, events, now_ns);
	packer->in_bytes += len;
	switch (packer->kind) {
	case D9_COMPRESS_ZSTD:
		return add_zstd(packer, batch, len, begins);
	case D9_COMPRESS_GZIP:
		return add_gzip(packer, batch, len);
	case D9_COMPRESS_NONE:
		return add_plain(packer, batch, len);
	}
	return -EINVAL;
}

/* By hand, and so the same whether the frame's compressor is still there or was cut off. */
int d9__packer_end_frame(struct d9__packer *packer)
{
	static const uint8_t empty_last_block[] = { 1, 0, 0 };

	if (packer->kind != D9_COMPRESS_ZSTD || !packer->frame.len)
		return 0;
	if (!reserve_frame(packer) || !reserve(packer, sizeof(empty_last_block)))
		return -ENOMEM;
	memcpy(packer->out + packer->len, empty_last_block, sizeof(empty_last_block));
	took(packer, sizeof(empty_last_block));
	if (!packer->raw)
		ZSTD_CCtx_reset(packer->zstd, ZSTD_reset_session_only);
	packer->raw = false;
	packer->frame.packed_len = (uint32_t)(packer->out_bytes - packer->frame.offset);
	packer->frames[packer->n_frames++] = packer->frame;
	packer->frame = (struct d9__seek_entry){ 0 };
	return 0;
}

int d9__packer_copy(struct d9__packer *packer, const void *frame, size_t len,
		    const struct d9__seek_entry *of)
{
	struct d9__seek_entry entry = *of;
	int err;

	if (!reserve_frame(packer))
		return -ENOMEM;
	entry.offset = packer->out_bytes;
	entry.packed_len = (uint32_t)len;
	err = add_plain(packer, frame, len);
	if (!err)
		packer->frames[packer->n_frames++] = entry;
	return err;
}

int d9__packer_flush(struct d9__packer *packer, uint64_t now_ns)
{
	int err;

	if (packer->kind != D9_COMPRESS_ZSTD || !packer->frame.len)
		return 0;
	err = packer->unflushed ? compress_zstd(packer, NULL, 0, ZSTD_e_flush) : 0;
	if (!err)
		packer->unflushed = false;
	if (!err && (packer->frame.len >= D9__FRAME_MAX_BYTES ||
		     now_ns - packer->frame_opened_ns >= D9__FRAME_MAX_NS))
		err = d9__packer_end_frame(packer);
	return err;
}

void d9__packer_keep(struct d9__packer *packer)
{
	packer->len = 0;
	if (packer->kind == D9_COMPRESS_GZIP)
		d9__gzip_mark(packer->gz, &packer->crc, &packer->total);
	if (packer->kind != D9_COMPRESS_ZSTD)
		packer->frame = (struct d9__seek_entry){ 0 };
	packer->kept = packer->frame;
	packer->kept_raw = packer->raw;
	packer->kept_raw_bytes = packer->raw_bytes;
	packer->n_kept = packer->n_frames;
}

void d9__packer_cut(struct d9__packer *packer)
{
	packer->out_bytes -= packer->len;
	packer->len = 0;
	packer->frame = packer->kept;
	packer->raw = packer->kept_raw;
	packer->raw_bytes = packer->kept_raw_bytes;
	packer->n_frames = packer->n_kept;
	packer->unflushed = false;
	if (packer->kind == D9_COMPRESS_ZSTD)
		ZSTD_CCtx_reset(packer->zstd, ZSTD_reset_session_only);
}

static int put_seek_table(struct d9__packer *packer)
{
	uint32_t n = (uint32_t)packer->n_frames;
	uint32_t len = D9__SEEK_HEAD_LEN + n * D9__SEEK_ENTRY_LEN + D9__SEEK_FOOTER_LEN;
	uint64_t total = 0;
	uint8_t *p;

	if (!reserve(packer, len))
		return -ENOMEM;
	p = packer->out + packer->len;
	p = d9__seek_head_put(p, n);
	for (uint32_t i = 0; i < n; i++) {
		total += packer->frames[i].len;
		p = d9__seek_entry_put(p, &packer->frames[i]);
	}
	d9__seek_footer_put(p, n, total);
	took(packer, len);
	return 0;
}

int d9__packer_end(struct d9__packer *packer)
{
	int err = 0;

	switch (packer->kind) {
	case D9_COMPRESS_ZSTD:
		err = d9__packer_end_frame(packer);
		return err ? err : put_seek_table(packer);
	case D9_COMPRESS_GZIP:
		if (!reserve(packer, D9__GZIP_END_LEN))
			return -ENOMEM;
		if (!packer->frame.len) /* nothing since the last mark, or cut back to it */
			d9__gzip_rewind(packer->gz, packer->crc, packer->total);
		d9__gzip_end(packer->gz, packer->out + packer->len);
		took(packer, D9__GZIP_END_LEN);
		break;
	case D9_COMPRESS_NONE:
		break;
	}
	return 0;
}

const char *d9__packer_suffix(enum d9_compress kind)
{
	return kind == D9_COMPRESS_ZSTD ? ".bin.zst" : kind == D9_COMPRESS_GZIP ? ".bin.gz" : ".bin";
}
