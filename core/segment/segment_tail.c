/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A killed process leaves a zstd frame or a gzip member open.  Of gzip all has to be unpacked, for its
 * checksum; the member goes on behind the last batch that is whole.  What was written of a zstd frame
 * ends between two blocks, because every write is a flush; an empty last block makes the frame
 * complete.  Only if the kill came into the middle of a write is the frame packed again, up to its last
 * whole event.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/heap.h"
#include "base/read_at.h"
#include "base/zstd_heap.h"
#include "format/wire.h"
#include "format/zstd_block.h"
#include "ring/event_types.h"
#include "segment/gunzip.h"
#include "segment/gzip.h"
#include "segment/segment_tail.h"
#include "segment/zstd_frame.h"

#define TAIL_BYTES  ((size_t)4 << 20)  /* unpacked: more than one write of the flush thread holds */
#define UNPACK_MAX  ((size_t)64 << 20) /* no writer of ours makes such a frame */
#define FRAMES_KEPT 8
#define PAD         64

/* ---- where frames are ---- */

struct frames {
	int fd;
	uint64_t size;
	uint64_t begin[FRAMES_KEPT]; /* of the last complete ones, newest at (n - 1) % FRAMES_KEPT */
	uint64_t n;
	uint64_t first_end; /* of the first one */
	uint64_t frames_end, blocks_end;
};

static void find_frames(struct frames *f)
{
	struct d9__zstd_frame frame;

	while (d9__zstd_frame_look(f->fd, f->size, f->frames_end, &frame)) {
		if (!f->n)
			f->first_end = frame.end;
		f->begin[f->n++ % FRAMES_KEPT] = frame.begin;
		f->frames_end = frame.end;
	}
	f->blocks_end = frame.blocks_end;
}

/* ---- contents ---- */

static bool reserve(struct d9__segment_tail *tail, size_t more)
{
	size_t want = tail->len + more + PAD, capacity = tail->capacity ? tail->capacity : 65536;
	uint8_t *data;

	while (capacity < want)
		capacity *= 2;
	if (capacity == tail->capacity)
		return true;
	data = d9__realloc(tail->data, capacity);
	if (!data)
		return false;
	tail->data = data;
	tail->capacity = capacity;
	return true;
}

/* Unpack [from, to) of the file behind what |tail| holds; damage ends it. */
static int unpack(struct d9__segment_tail *tail, int fd, uint64_t from, uint64_t to)
{
	ZSTD_DCtx *zstd = d9__zstd_new_unpacker();
	uint8_t *in = d9__malloc((size_t)(to - from) + 1);
	ZSTD_inBuffer input = { in, (size_t)(to - from), 0 };
	size_t before, result = 0, hint = 0;
	int err = zstd && in ? 0 : -ENOMEM;

	if (!err && d9__read_at(fd, in, input.size, from))
		err = -EIO;
	while (!err && !ZSTD_isError(result) && tail->len < UNPACK_MAX) {
		ZSTD_outBuffer out;

		if (!reserve(tail, ZSTD_DStreamOutSize())) {
			err = -ENOMEM;
			break;
		}
		out = (ZSTD_outBuffer){ tail->data + tail->len, tail->capacity - tail->len - PAD, 0 };
		before = input.pos;
		result = d9__zstd_block(zstd, &hint, &out, &input);
		tail->len += out.pos;
		if (!out.pos && input.pos == before)
			break;
	}
	/* Else it would look like damage, and a segment of which nothing can be read is removed. */
	if (!err && ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
		err = -ENOMEM;
	d9__free(in);
	ZSTD_freeDCtx(zstd);
	return err;
}

/* ---- its events ---- */

static bool note_event(void *arg, const struct d9__wire_frame *frame)
{
	struct d9__segment_tail *tail = arg;

	if (frame->tag == D9__WIRE_EVENT && frame->type_id == D9__EVENT_LOSS)
		tail->lossy = true;
	if (frame->tag == D9__WIRE_EVENT && frame->ns > tail->last_ns)
		tail->last_ns = frame->ns;
	return true;
}

/* The first batch tells when the segment was opened: its events may all be older. */
static void note_begin(struct d9__segment_tail *tail, struct d9__walker *walker,
		       const uint8_t *begin, size_t len)
{
	d9__walk_whole(walker, begin, len, note_event, tail);
}

/* ---- each kind ---- */

static int read_zstd(struct d9__segment_tail *tail, int fd, struct d9__walker *walker)
{
	struct frames f = { .fd = fd, .size = tail->file_bytes };
	uint64_t first;
	int err = 0;

	find_frames(&f);
	tail->frames_end = f.frames_end;
	tail->blocks_end = f.blocks_end;
	first = f.n > FRAMES_KEPT ? f.n - FRAMES_KEPT : 0;
	if (f.n) {
		err = unpack(tail, fd, 0, f.first_end);
		if (!err && tail->len)
			note_begin(tail, walker, tail->data, tail->len);
	}
	/* All that may have been written by the last commit, and room for what went before. */
	for (uint64_t i = f.n; !err && i-- > first;) {
		tail->len = 0;
		err = unpack(tail, fd, f.begin[i % FRAMES_KEPT], f.frames_end);
		if (tail->len >= TAIL_BYTES)
			break;
	}
	tail->open_at = tail->len;
	if (!err && f.blocks_end > f.frames_end)
		err = unpack(tail, fd, f.frames_end, f.blocks_end);
	return err;
}

static int read_plain(struct d9__segment_tail *tail, int fd)
{
	if (tail->file_bytes > UNPACK_MAX * 16 || !reserve(tail, (size_t)tail->file_bytes))
		return -ENOMEM;
	if (d9__read_at(fd, tail->data, (size_t)tail->file_bytes, 0))
		return -EIO;
	tail->len = (size_t)tail->file_bytes;
	return 0;
}

static int read_gzip(struct d9__segment_tail *tail, int fd, struct d9__walker *walker)
{
	struct d9__gunzipped g;
	int err = d9__gunzip(fd, tail->file_bytes, TAIL_BYTES, PAD, &g);

	if (err)
		return err;
	note_begin(tail, walker, g.begin, g.begin_len);
	tail->data = g.data;
	tail->len = g.len;
	tail->capacity = g.len + PAD;
	tail->frames_end = tail->blocks_end = g.mark.file_at;
	tail->open_at = g.mark.data_at;
	tail->crc = g.mark.crc;
	tail->total = g.mark.total;
	return 0;
}

static int add_batch(struct d9__segment_tail *tail, size_t at, uint32_t len)
{
	if (tail->n_batches == tail->batch_capacity) {
		size_t more = tail->batch_capacity ? 2 * tail->batch_capacity : 64;
		struct d9__tail_batch *grown = d9__reallocarray(tail->batch, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		tail->batch = grown;
		tail->batch_capacity = more;
	}
	tail->batch[tail->n_batches++] = (struct d9__tail_batch){ at, len };
	return 0;
}

static int split(struct d9__segment_tail *tail, struct d9__walker *walker)
{
	int err = 0;

	if (tail->data)
		memset(tail->data + tail->len, 0, PAD);
	while (!err && tail->whole_end < tail->len) {
		uint32_t len = d9__walk_whole(walker, tail->data + tail->whole_end,
					      tail->len - tail->whole_end, note_event, tail);

		if (!len)
			break;
		err = add_batch(tail, tail->whole_end, len);
		tail->whole_end += len;
	}
	return err;
}

int d9__segment_tail_read(struct d9__segment_tail *tail, int fd, enum d9_compress kind,
			  struct d9__walker *walker)
{
	off_t size = lseek(fd, 0, SEEK_END);
	int err = 0;

	*tail = (struct d9__segment_tail){ .kind = kind };
	if (size < 0)
		return -errno;
	tail->file_bytes = tail->frames_end = tail->blocks_end = (uint64_t)size;
	if (kind == D9_COMPRESS_ZSTD)
		err = read_zstd(tail, fd, walker);
	else if (kind == D9_COMPRESS_GZIP)
		err = read_gzip(tail, fd, walker);
	else
		err = read_plain(tail, fd);
	if (!err)
		err = split(tail, walker);
	if (err)
		d9__segment_tail_release(tail);
	return err;
}

/* ---- sealing ---- */

static int write_at(int fd, const void *bytes, size_t len, uint64_t *at)
{
	const uint8_t *p = bytes;

	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)*at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		p += n;
		len -= (size_t)n;
		*at += (uint64_t)n;
	}
	return 0;
}

static int write_frame(int fd, const void *bytes, size_t len, uint64_t *at)
{
	size_t room = ZSTD_compressBound(len), packed = 0;
	ZSTD_CCtx *zstd = d9__zstd_new_packer();
	void *out = d9__malloc(room);
	int err = zstd && out ? 0 : -ENOMEM;

	if (!err) {
		packed = ZSTD_compressCCtx(zstd, out, room, bytes, len, 1);
		err = ZSTD_isError(packed) ? -EIO : write_at(fd, out, packed, at);
	}
	d9__free(out);
	ZSTD_freeCCtx(zstd);
	return err;
}

static int complete_zstd(const struct d9__segment_tail *tail, int fd, uint64_t *at)
{
	static const uint8_t end_of_frame[] = { 1, 0, 0 };

	*at = tail->frames_end;
	if (tail->whole_end <= tail->open_at)
		return 0;
	if (tail->whole_end < tail->len)
		return write_frame(fd, tail->data + tail->open_at,
				   tail->whole_end - tail->open_at, at);
	*at = tail->blocks_end;
	return write_at(fd, end_of_frame, sizeof(end_of_frame), at);
}

/* Go on with the member: what is whole of the batch that was torn, |last|, the trailer. */
static int complete_gzip(const struct d9__segment_tail *tail, int fd,
			 const struct d9__builder *last, uint64_t *at)
{
	size_t torn = tail->whole_end > tail->open_at ? tail->whole_end - tail->open_at : 0;
	struct d9__gzip *gz = d9__gzip_new();
	uint8_t *out = d9__malloc(D9__GZIP_HEADER_LEN + d9__gzip_bound(torn) +
			      d9__gzip_bound(last->len) + D9__GZIP_END_LEN), *p = out;
	int err = gz && out ? 0 : -ENOMEM;

	if (!err) {
		d9__gzip_begin(gz, out); /* of these bytes the file has its own */
		d9__gzip_rewind(gz, tail->crc, tail->total);
		if (torn)
			p += d9__gzip_write(gz, tail->data + tail->open_at, torn, p);
		p += d9__gzip_write(gz, last->data, last->len, p);
		d9__gzip_end(gz, p);
		*at = tail->blocks_end;
		err = write_at(fd, out, (size_t)(p - out) + D9__GZIP_END_LEN, at);
	}
	d9__free(out);
	d9__gzip_free(gz);
	return err;
}

int d9__segment_tail_seal(const struct d9__segment_tail *tail, int fd,
			  const struct d9__builder *last)
{
	uint64_t at = tail->whole_end;
	int err = 0;

	if (last->failed)
		return -ENOMEM;
	if (tail->kind == D9_COMPRESS_ZSTD) {
		err = complete_zstd(tail, fd, &at);
		if (!err)
			err = write_frame(fd, last->data, last->len, &at);
	} else if (tail->kind == D9_COMPRESS_GZIP) {
		err = complete_gzip(tail, fd, last, &at);
	} else {
		err = write_at(fd, last->data, last->len, &at);
	}
	if (!err && ftruncate(fd, (off_t)at))
		err = -errno;
	return err;
}

void d9__segment_tail_release(struct d9__segment_tail *tail)
{
	d9__free(tail->data);
	d9__free(tail->batch);
	*tail = (struct d9__segment_tail){ 0 };
}
