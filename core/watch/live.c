/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include <dial9/options.h>

#include "analyze/budget.h"
#include "base/artefact.h"
#include "format/zstd_block.h"
#include "read/catalogue.h"
#include "read/told_wakes.h"
#include "watch/live.h"

#define BLOCK (256u << 10)

/* The ring names a directory, where anybody may have put anything; trace_input.c has the same bounds. */
#define MEMORY_MAX	((uint64_t)32 << 20) /* of a frame, the pools of a batch, all schemas: each */
#define UNPACKED_BASE	((uint64_t)256 << 20)
#define UNPACKED_FACTOR 32

void d9__live_begin(struct d9__live *live, const struct d9__ring_view *view, uint64_t since_ns,
		    d9__live_fn fn, void *arg)
{
	*live = (struct d9__live){ .view = view, .fn = fn, .arg = arg, .since_ns = since_ns,
				   .fd = -1 };
	live->schemas.classify = d9__catalogue_classify;
	live->schemas.limit_bytes = MEMORY_MAX;
	d9__decoder_init(&live->decoder, &live->schemas, MEMORY_MAX);
}

/* ---- frames ---- */

/* Tell of a call that began at |start_ns| as the reader does in time order. */
static void tell_call(struct d9__live *live, const struct d9_event *event, uint64_t start_ns)
{
	struct d9_event begins = *event, ends = *event;

	/* Instead of a place in a file. */
	begins.offset = ends.offset = live->n_calls++;
	begins.timestamp_ns = start_ns;
	if (start_ns >= live->since_ns &&
	    !d9__inner_calls_tell(&live->calls, &live->schemas, true, &begins))
		live->fn(live->arg, &begins);
	if (d9__inner_calls_tell(&live->calls, &live->schemas, false, &ends))
		return;
	live->fn(live->arg, &ends);
	if (d9__inner_calls_close(&live->calls, &ends))
		live->fn(live->arg, &ends);
}

/* Tell of the wake of a poll that is told next, as the reader does. */
static int tell_wake(struct d9__live *live, const struct d9__poll_wake *wake)
{
	struct d9_event event = { .kind = D9_EVENT_WAKE,
				  .has_timestamp = true,
				  .timestamp_ns = wake->ns };
	int err = wake->ns < live->since_ns ? -ESTALE
					    : d9__told_wake_schema(&live->schemas, &event.schema);

	if (!err)
		err = d9__told_wake_values(wake, &live->values);
	if (err)
		return err == -ENOMEM ? err : 0;
	event.values = live->values.items;
	live->fn(live->arg, &event);
	return 0;
}

static int tell(struct d9__live *live, const struct d9__frame *frame)
{
	struct d9_event event = { .schema = frame->schema,
				  .kind = (enum d9_event_kind)frame->schema->kind,
				  .has_timestamp = frame->schema->has_timestamp,
				  .timestamp_ns = frame->timestamp_ns };
	uint64_t start_ns;
	int err;

	if (event.kind != D9_EVENT_MODULE && event.kind != D9_EVENT_SEGMENT_METADATA &&
	    frame->timestamp_ns < live->since_ns)
		return 0;
	err = d9__values_build(&live->values, &live->decoder, frame);
	if (err)
		return err == -ENOMEM ? err : 0;
	d9__told_wake_settle(frame->schema, &live->values);
	event.values = live->values.items;
	if (frame->schema->begins_earlier && d9__inner_call_start(frame, &start_ns))
		tell_call(live, &event, start_ns);
	else
		live->fn(live->arg, &event);
	return 0;
}

/* Decode whole frames, passing over |skip| events.  How many bytes they took, or -errno. */
static ssize_t decode(struct d9__live *live, const uint8_t *bytes, size_t len, uint32_t skip)
{
	struct d9__cursor in = { bytes, bytes + len, 0 };
	const uint8_t *whole = bytes;
	struct d9__poll_wake wake;
	struct d9__frame frame;
	int got, err = 0;

	while (!err && (got = d9__decoder_next(&live->decoder, &in, &frame)) == 1) {
		whole = in.p;
		got = d9__decoder_wake(&live->decoder, &frame, &live->seen, &wake);
		if (got == 1 && !skip)
			got = tell_wake(live, &wake);
		err = got < 0 ? got : 0;
		if (frame.kind != D9__FRAME_EVENT || err)
			continue;
		if (skip)
			skip--;
		else
			err = tell(live, &frame);
	}
	return err ? err : got < 0 ? got : whole - bytes;
}

/* A batch that stands for itself. */
static int decode_batch(struct d9__live *live, const uint8_t *bytes, size_t len, uint32_t skip)
{
	ssize_t n;

	d9__decoder_reset(&live->decoder);
	n = decode(live, bytes, len, skip);
	return n == -ENOMEM ? -ENOMEM : 0;
}

/* ---- the ring ---- */

/* Metadata and modules, when they changed. */
int d9__live_read_description(struct d9__live *live)
{
	struct d9__ring_header header;
	struct d9__decoder segment = live->decoder;
	struct d9__poll_wakes seen = live->seen;
	uint8_t *bytes;
	uint64_t description;
	int err = d9__ring_view_read(live->view, 0, &header, sizeof(header));

	if (err)
		return err;
	description = atomic_load_explicit(&header.description, memory_order_acquire);
	if (description == live->description || (uint32_t)description > D9__RING_DESCRIPTION_BYTES || description >> 32 > 1)
		return 0;
	bytes = malloc((uint32_t)description + 1u);
	if (!bytes)
		return -ENOMEM;
	err = d9__ring_view_read(live->view,
				 D9__RING_DESCRIPTION_AT + (description >> 32) * D9__RING_DESCRIPTION_BYTES, bytes,
				 (uint32_t)description);
	/* The segment's decoder is in the middle of a batch. */
	d9__decoder_init(&live->decoder, &live->schemas, MEMORY_MAX);
	live->seen = (struct d9__poll_wakes) { 0 };
	if (!err)
		err = decode_batch(live, bytes, (uint32_t)description, 0);
	d9__decoder_release(&live->decoder);
	live->decoder = segment;
	d9__poll_wakes_release(&live->seen);
	live->seen = seen;
	if (!err)
		live->description = description;
	free(bytes);
	return err;
}

/* One chunk of the ring, as of one moment. */
struct chunk {
	uint32_t number, slot, serial, bytes, events;
};

/* How much of the chunk holds; false: nothing of anybody. */
static bool look_at(const struct d9__live *live, const struct d9__slot *slots, uint32_t number,
		    struct chunk *out)
{
	struct d9__chunk_header h;
	uint64_t word, length;

	if (d9__ring_view_read(live->view,
			       D9__RING_CHUNKS_AT + (uint64_t)number * D9__CHUNK_SIZE, &h, sizeof(h)))
		return false;
	word = atomic_load_explicit(&h.word, memory_order_relaxed);
	*out = (struct chunk){ number, h.slot, (uint32_t)(word >> 32), h.bytes, h.events };
	if (h.slot >= D9__SLOT_COUNT)
		return false;
	if ((word & 0xff) == D9__CHUNK_OPEN) {
		if (atomic_load_explicit(&slots[h.slot].open, memory_order_relaxed) !=
		    ((word >> 32) << 32 | (number + 1)))
			return false;
		length = atomic_load_explicit(&slots[h.slot].published, memory_order_relaxed);
		out->bytes = (uint32_t)length;
		out->events = (uint32_t)(length >> 32);
	} else if ((word & 0xff) != D9__CHUNK_SEALED) {
		return false;
	}
	return out->bytes && out->bytes <= D9__BATCH_MAX;
}

static int by_serial(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return (int32_t)(x->serial - y->serial) < 0 ? -1 : 1;
}

/* Copy the new bytes of |chunk|, and none if it was recycled during the copy. */
static int read_chunk(struct d9__live *live, const struct chunk *chunk, uint8_t *copy)
{
	uint64_t at = D9__RING_CHUNKS_AT + (uint64_t)chunk->number * D9__CHUNK_SIZE;
	struct d9__live_slot *slot = &live->slots[chunk->slot];
	struct d9__chunk_header h;
	uint32_t skip = chunk->serial == slot->serial ? slot->events : 0;
	int err;

	if ((int32_t)(chunk->serial - slot->serial) < 0 || chunk->events <= skip)
		return 0;
	err = d9__ring_view_read(live->view, at + D9__CHUNK_HEADER, copy, chunk->bytes);
	if (!err)
		err = d9__ring_view_read(live->view, at, &h, sizeof(h));
	if (err)
		return err;
	if ((uint32_t)(atomic_load_explicit(&h.word, memory_order_relaxed) >> 32) != chunk->serial)
		return 0;
	*slot = (struct d9__live_slot){ chunk->serial, chunk->events };
	return decode_batch(live, copy, chunk->bytes, skip);
}

static int read_ring(struct d9__live *live)
{
	struct d9__slot *slots = malloc(sizeof(*slots) * D9__SLOT_COUNT);
	struct chunk *chunks = malloc(sizeof(*chunks) * D9__CHUNKS_MAX);
	uint8_t *copy = malloc(D9__CHUNK_SIZE);
	struct d9__ring_header header;
	uint32_t n = 0, count = 0;
	int err = slots && chunks && copy ? 0 : -ENOMEM;

	if (!err)
		err = d9__ring_view_read(live->view, 0, &header, sizeof(header));
	if (!err)
		err = d9__ring_view_read(live->view, D9__RING_SLOTS_AT, slots,
					 sizeof(*slots) * D9__SLOT_COUNT);
	if (!err)
		count = atomic_load_explicit(&header.chunk_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count && i < D9__CHUNKS_MAX; i++)
		n += look_at(live, slots, i, &chunks[n]);
	if (n)
		qsort(chunks, n, sizeof(*chunks), by_serial);
	for (uint32_t i = 0; i < n && !err; i++)
		err = read_chunk(live, &chunks[i], copy);
	free(slots);
	free(chunks);
	free(copy);
	return err;
}

/* ---- segments ---- */

static void drop_unpacker(struct d9__live *live)
{
	if (live->unpack && live->packing == D9_COMPRESS_ZSTD)
		ZSTD_freeDCtx(live->unpack);
	else if (live->unpack) {
		inflateEnd(live->unpack);
		free(live->unpack);
	}
	live->unpack = NULL;
	live->packing = -1;
	live->len = 0;
}

static void close_segment(struct d9__live *live)
{
	if (live->fd >= 0)
		close(live->fd);
	live->fd = -1;
	drop_unpacker(live);
}

/* The segment with the least number from |from| on, or the newest; false if there is none. */
static bool find_segment(const char *dir, uint64_t from, bool newest, char *name, size_t size,
			 uint64_t *index)
{
	DIR *stream = opendir(dir);
	bool found = false;

	for (struct dirent *e; stream && (e = readdir(stream));) {
		uint64_t i;
		enum d9__artefact what = d9__artefact_of(e->d_name, &i);

		if ((what != D9__ARTEFACT_SEGMENT && what != D9__ARTEFACT_ACTIVE) || i < from ||
		    (found && (newest ? i < *index : i > *index)) || strlen(e->d_name) >= size)
			continue;
		strcpy(name, e->d_name);
		*index = i;
		found = true;
	}
	if (stream)
		closedir(stream);
	return found;
}

/* The newest one to begin with, then each that follows. */
static bool open_segment(struct d9__live *live)
{
	char name[64], path[PATH_MAX + 64];
	bool first = !live->dir[0];
	struct d9__ring_header header;
	uint64_t index = 0;

	/* A recorder that starts again has another directory. */
	if (d9__ring_view_read(live->view, 0, &header, sizeof(header)))
		return false;
	header.trace_dir[sizeof(header.trace_dir) - 1] = '\0';
	header.boot_id[sizeof(header.boot_id) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%s", header.trace_dir, header.boot_id);
	first |= strcmp(path, live->dir) != 0;
	snprintf(live->dir, sizeof(live->dir), "%.*s", (int)sizeof(live->dir) - 1, path);
	if (!find_segment(live->dir, first ? 0 : live->index + 1, first, name, sizeof(name), &index))
		return false;
	snprintf(path, sizeof(path), "%s/%s", live->dir, name);
	live->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (live->fd < 0)
		return false;
	live->index = index;
	live->unpack_left = UNPACKED_BASE;
	d9__decoder_reset(&live->decoder);
	return true;
}

static int make_room(struct d9__live *live, size_t more)
{
	uint8_t *grown;

	if (!live->unpack_left || live->len > MEMORY_MAX) {
		d9__budget_leave_out(D9__KEPT_SEGMENTS, 1);
		return -EFBIG;
	}
	if (live->capacity - live->len >= more)
		return 0;
	grown = realloc(live->raw, live->len + more);
	if (!grown)
		return -ENOMEM;
	live->raw = grown;
	live->capacity = live->len + more;
	return 0;
}

static int begin_unpacking(struct d9__live *live, const uint8_t *bytes, size_t n)
{
	z_stream *gz;

	if (n >= 4 && bytes[0] == 0x28 && bytes[1] == 0xb5) {
		live->packing = D9_COMPRESS_ZSTD;
		live->unpack = ZSTD_createDCtx();
		if (!live->unpack)
			return -ENOMEM;
		ZSTD_DCtx_setParameter(live->unpack, ZSTD_d_windowLogMax, D9__ZSTD_WINDOW_LOG_MAX);
		return 0;
	}
	if (n < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) {
		live->packing = D9_COMPRESS_NONE;
		return 0;
	}
	gz = calloc(1, sizeof(*gz));
	if (!gz || inflateInit2(gz, 15 + 16) != Z_OK) {
		free(gz);
		return -ENOMEM;
	}
	live->packing = D9_COMPRESS_GZIP;
	live->unpack = gz;
	return 0;
}

/* |more| bytes were unpacked behind the others.  Whole frames go, the rest waits for more. */
static int decode_raw(struct d9__live *live, size_t more)
{
	ssize_t n;

	live->len += more;
	live->unpack_left -= more < live->unpack_left ? more : live->unpack_left;
	n = decode(live, live->raw, live->len, 0);
	if (n < 0)
		return (int)n;
	live->len -= (size_t)n;
	memmove(live->raw, live->raw + n, live->len);
	return 0;
}

static int unpack_zstd(struct d9__live *live, const uint8_t *bytes, size_t n)
{
	ZSTD_inBuffer in = { bytes, n, 0 };
	ZSTD_outBuffer out;
	int err = 0;

	do {
		err = make_room(live, BLOCK);
		if (err)
			return err;
		out = (ZSTD_outBuffer){ live->raw + live->len, BLOCK, 0 };
		if (ZSTD_isError(ZSTD_decompressStream(live->unpack, &out, &in)))
			return -EBADMSG;
		err = decode_raw(live, out.pos);
	} while (!err && (in.pos < in.size || out.pos == BLOCK));
	return err;
}

static int unpack_gzip(struct d9__live *live, const uint8_t *bytes, size_t n)
{
	z_stream *gz = live->unpack;
	int err = 0, got = Z_OK;

	gz->next_in = (uint8_t *)(uintptr_t)bytes;
	gz->avail_in = (unsigned)n;
	do {
		err = make_room(live, BLOCK);
		if (err)
			return err;
		gz->next_out = live->raw + live->len;
		gz->avail_out = BLOCK;
		got = inflate(gz, Z_SYNC_FLUSH);
		if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR)
			return -EBADMSG;
		err = decode_raw(live, BLOCK - gz->avail_out);
	} while (!err && got == Z_OK && (gz->avail_in || !gz->avail_out));
	return err;
}

static int take_bytes(struct d9__live *live, const uint8_t *bytes, size_t n)
{
	int err = live->packing < 0 ? begin_unpacking(live, bytes, n) : 0;

	if (err)
		return err;
	live->unpack_left += UNPACKED_FACTOR * n;
	if (live->packing == D9_COMPRESS_ZSTD)
		return unpack_zstd(live, bytes, n);
	if (live->packing == D9_COMPRESS_GZIP)
		return unpack_gzip(live, bytes, n);
	err = make_room(live, n);
	if (err)
		return err;
	memcpy(live->raw + live->len, bytes, n);
	return decode_raw(live, n);
}

/* To the end of the file as it is now; damage ends it as well. */
static int read_on(struct d9__live *live)
{
	static uint8_t block[BLOCK];
	ssize_t n;
	int err = 0;

	while (!err && (n = read(live->fd, block, sizeof(block))) > 0)
		err = take_bytes(live, block, (size_t)n);
	return err;
}

static int read_segments(struct d9__live *live)
{
	int err = 0;

	if (live->fd >= 0)
		err = read_on(live);
	while (err != -ENOMEM) {
		char name[64];
		uint64_t index = 0;

		/* Sealed, and another one was begun: what was written before that is read above. */
		if (live->fd >= 0 && !find_segment(live->dir, live->index + 1, false, name,
						   sizeof(name), &index))
			return 0;
		if (live->fd >= 0 && read_on(live) == -ENOMEM)
			return -ENOMEM;
		close_segment(live);
		if (!open_segment(live))
			return 0;
		err = read_on(live);
	}
	return err;
}

/* ---- both ---- */

int d9__live_read(struct d9__live *live, bool flight)
{
	int err = d9__live_read_description(live);

	if (err)
		return err;
	return flight ? read_ring(live) : read_segments(live);
}

void d9__live_end(struct d9__live *live)
{
	close_segment(live);
	free(live->raw);
	d9__values_release(&live->values);
	d9__inner_calls_release(&live->calls);
	d9__poll_wakes_release(&live->seen);
	d9__decoder_release(&live->decoder);
	d9__definitions_release(&live->schemas);
}
