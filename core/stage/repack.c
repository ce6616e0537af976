/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/read_at.h"
#include "format/wire.h"
#include "format/zstd_block.h"
#include "read/input.h"
#include "segment/packer.h"
#include "segment/zstd_frame.h"
#include "stage/repack.h"

#define FRAME_BYTES                                                                                \
	((size_t)64 << 20) /* no recorder of ours makes larger ones, and they are copied */
#define PIECE_BYTES ((size_t)1 << 20)

/* A segment on its way from one descriptor to the other. */
struct repack {
	int from, to;
	uint64_t size, at, written;
	uint8_t *bytes; /* as they are in the file */
	size_t capacity;
	uint8_t *table; /* the entries of the old seek table, in |n_entries|; NULL: it has none */
	uint32_t n_entries, i;
	bool lost; /* frames and entries do not agree */
	struct d9__packer packer;
};

/* ---- reading ---- */

static int load(struct repack *r, uint64_t from, size_t len)
{
	if (!d9__array_reserve(r->bytes, &r->capacity, 0, len))
		return -ENOMEM;
	return d9__read_at(r->from, r->bytes, len, from);
}

/* True if a seek table ends the file. */
static bool find_table(const struct repack *r, struct d9__seek_place *place)
{
	uint8_t footer[D9__SEEK_FOOTER_LEN], head[D9__SEEK_HEAD_LEN];

	return r->size >= sizeof(footer) &&
	       !d9__read_at(r->from, footer, sizeof(footer), r->size - sizeof(footer)) &&
	       d9__seek_footer_get(footer, r->size, place) &&
	       !d9__read_at(r->from, head, sizeof(head), place->at) &&
	       d9__seek_head_fits(head, place);
}

static int load_table(struct repack *r)
{
	struct d9__seek_place place;
	size_t len;

	if (!find_table(r, &place))
		return 0;
	len = (size_t)place.n * D9__SEEK_ENTRY_LEN;
	r->table = malloc(len + 1);
	if (!r->table)
		return -ENOMEM;
	r->n_entries = place.n;
	r->size = place.at;
	return d9__read_at(r->from, r->table, len, place.at + D9__SEEK_HEAD_LEN);
}

/* The old table's entry of |frame|.  Without one there will be no table, which readers can do
 * without. */
static struct d9__seek_entry entry_of(struct repack *r, const struct d9__zstd_frame *frame)
{
	struct d9__seek_entry entry = { .offset = UINT64_MAX };

	if (r->table && r->i < r->n_entries)
		entry = d9__seek_entry_get(r->table, r->i);
	if (entry.offset != frame->begin) {
		r->lost = true;
		return (struct d9__seek_entry) { 0 };
	}
	r->i++;
	return entry;
}

/* ---- writing ---- */

static int write_packed(struct repack *r)
{
	int err = d9__write_all(r->to, r->packer.out, r->packer.len);

	d9__packer_keep(&r->packer);
	return err;
}

/* Copy bytes that are no frame of the table's. */
static int copy(struct repack *r, uint64_t from, uint64_t to)
{
	int err = 0;

	while (!err && from < to) {
		size_t len = to - from < PIECE_BYTES ? (size_t)(to - from) : PIECE_BYTES;

		err = load(r, from, len);
		if (!err)
			err = d9__write_all(r->to, r->bytes, len);
		r->packer.out_bytes += err ? 0 : len;
		from += len;
	}
	return err;
}

static int copy_frame(struct repack *r, const struct d9__zstd_frame *frame)
{
	struct d9__seek_entry entry = entry_of(r, frame);
	uint64_t len = frame->end - frame->begin;
	int err;

	if (len > FRAME_BYTES) {
		r->lost = true;
		return copy(r, frame->begin, frame->end);
	}
	err = load(r, frame->begin, (size_t)len);
	if (!err)
		err = d9__packer_copy(&r->packer, r->bytes, (size_t)len, &entry);
	return err ? err : write_packed(r);
}

/* Let the contents of the blocks in |bytes| close up.  Their length. */
static size_t join_blocks(uint8_t *bytes, size_t len)
{
	size_t joined = 0;

	for (size_t at = 0; at < len;) {
		uint32_t head =
			bytes[at] | (uint32_t)bytes[at + 1] << 8 | (uint32_t)bytes[at + 2] << 16;

		at += D9__ZSTD_BLOCK_HEAD_LEN;
		memmove(bytes + joined, bytes + at, head >> 3);
		joined += head >> 3;
		at += head >> 3;
	}
	return joined;
}

static int pack_frame(struct repack *r, const struct d9__zstd_frame *frame)
{
	struct d9__seek_entry entry = entry_of(r, frame), *packed;
	/* A checksum is not copied: recorders write none. */
	size_t len = (size_t)(frame->end - frame->blocks);
	int err = load(r, frame->blocks, len);

	if (err)
		return err;
	len = join_blocks(r->bytes, len);
	err = d9__packer_add(&r->packer, r->bytes, len, entry.first_ns, entry.last_ns, 0, 0);
	if (!err)
		err = d9__packer_flush(&r->packer, 0);
	if (!err)
		err = d9__packer_end_frame(&r->packer);
	if (err)
		return err;
	packed = &r->packer.frames[r->packer.n_frames - 1];
	packed->events = entry.events;
	return write_packed(r);
}

static bool is_raw(const struct d9__zstd_frame *frame)
{
	return frame->raw && !frame->checked && frame->end - frame->begin <= FRAME_BYTES;
}

static int put_frame(struct repack *r, const struct d9__zstd_frame *frame)
{
	if (frame->skippable)
		return copy(r, frame->begin, frame->end);
	return is_raw(frame) ? pack_frame(r, frame) : copy_frame(r, frame);
}

static int put_all(struct repack *r)
{
	struct d9__zstd_frame frame;
	int err = d9__packer_begin(&r->packer, D9_COMPRESS_ZSTD);

	while (!err && d9__zstd_frame_look(r->from, r->size, r->at, &frame)) {
		err = put_frame(r, &frame);
		r->at = frame.end;
	}
	/* A frame without its end, or what else is there. */
	if (!err && r->at < r->size) {
		r->lost = true;
		err = copy(r, r->at, r->size);
	}
	if (!err && r->table && !r->lost && r->i == r->n_entries)
		err = d9__packer_end(&r->packer);
	return err ? err : write_packed(r);
}

/* ---- the whole ---- */

static bool has_raw(int fd, uint64_t size)
{
	struct d9__zstd_frame frame;
	uint64_t at = 0;

	while (d9__zstd_frame_look(fd, size, at, &frame)) {
		if (is_raw(&frame))
			return true;
		at = frame.end;
	}
	return false;
}

int d9__repack_copy(const struct d9__claim *claim, int from, int *fd)
{
	struct repack r = { .from = from };
	struct stat st;
	int err;

	if (fstat(from, &st))
		return -errno;
	r.size = (uint64_t)st.st_size;
	if (!has_raw(r.from, r.size))
		return 0;
	r.to = d9__claim_unnamed(claim);
	if (r.to < 0)
		return r.to;
	err = load_table(&r);
	if (!err)
		err = put_all(&r);
	if (err || r.packer.out_bytes >= (uint64_t)st.st_size)
		close(r.to);
	else
		*fd = r.to;
	err = err ? err : r.packer.out_bytes < (uint64_t)st.st_size;
	d9__packer_release(&r.packer);
	free(r.bytes);
	free(r.table);
	return err;
}

int d9__repack(struct d9__claim *claim)
{
	const char *path = claim->path;
	int fd, found = d9__repack_copy(claim, claim->fd, &fd), err;

	if (found <= 0)
		return found;
	err = d9__claim_replace(claim, fd);
	close(fd);
	if (err && err != -EAGAIN)
		return err;
	d9__claim_release(claim);
	/* Its lock is the old file's; who came first has the new one. */
	return err || d9__claim_open(claim, path) ? -EAGAIN : 1;
}
