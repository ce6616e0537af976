/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "format/zstd_block.h"

#define FRAME_MAX  ((uint64_t)8 << 20)
#define COPY_BYTES ((size_t)1 << 17)

bool d9__store_frames_are_small(const struct d9__packed_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (frames[i].unpacked_len > FRAME_MAX || frames[i].stored_len > FRAME_MAX)
			return false;
	return n > 0;
}

uint64_t d9__store_bytes_of_frames(const struct d9__packed_frame *frames, size_t n)
{
	uint64_t stored = 0, unpacked = 0;

	for (size_t i = 0; i < n; i++) {
		if (frames[i].unpacked_len > unpacked)
			unpacked = frames[i].unpacked_len;
		if (frames[i].stored_len > stored)
			stored = frames[i].stored_len;
	}
	return unpacked > FRAME_MAX || stored > FRAME_MAX ? 0 : stored + D9__STORE_CACHED * unpacked;
}

static int unpack_to(int fd, struct d9__container *container)
{
	uint8_t *buf = malloc(COPY_BYTES);
	int err = buf ? 0 : -ENOMEM;

	while (!err) {
		ssize_t n = d9__container_read(container, buf, COPY_BYTES);

		if (n <= 0) {
			err = (int)n;
			break;
		}
		err = d9__write_all(fd, buf, (size_t)n);
	}
	free(buf);
	return err;
}

static int open_file(struct d9__store *store)
{
	struct d9__container container;
	int fd = d9__temporary_open(), err;

	if (fd < 0)
		return fd;
	err = d9__container_open(&container, store->input);
	if (!err) {
		err = unpack_to(fd, &container);
		d9__container_release(&container);
	}
	if (err) {
		close(fd);
		return err;
	}
	store->fd = fd;
	store->form = D9__STORE_FILE;
	return 0;
}

int d9__store_open(struct d9__store *store, struct d9__input *input, enum d9__container_kind kind)
{
	store->input = input;
	if (store->bytes) {
		store->form = D9__STORE_MEMORY;
	} else if (kind == D9__CONTAINER_PLAIN) {
		store->form = D9__STORE_DIRECT;
	} else if (kind == D9__CONTAINER_ZSTD &&
		   d9__store_frames_are_small(store->frames, store->n_frames)) {
		store->engine = ZSTD_createDCtx();
		if (!store->engine)
			return -ENOMEM;
		ZSTD_DCtx_setParameter(store->engine, ZSTD_d_windowLogMax, D9__ZSTD_WINDOW_LOG_MAX);
		store->form = D9__STORE_FRAMES;
	} else {
		return open_file(store);
	}
	return 0;
}

/* Index of the frame that holds |offset|, or n_frames. */
static size_t find_frame(const struct d9__store *store, uint64_t offset)
{
	size_t low = 0, high = store->n_frames;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct d9__packed_frame *frame = &store->frames[mid];

		if (offset < frame->unpacked_at)
			high = mid;
		else if (offset - frame->unpacked_at >= frame->unpacked_len)
			low = mid + 1;
		else
			return mid;
	}
	return store->n_frames;
}

static int read_stored(struct d9__store *store, const struct d9__packed_frame *frame, uint8_t *to)
{
	uint64_t have = 0;

	while (have < frame->stored_len) {
		ssize_t n = d9__input_read_at(store->input, frame->stored_at + have, to + have,
					      (size_t)(frame->stored_len - have));

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		have += (uint64_t)n;
	}
	return 0;
}

/* Unpack |frame| into |slot|; what comes before damage counts, as in the first pass. */
static int unpack_frame(struct d9__store *store, const struct d9__packed_frame *frame,
			struct d9__stored_frame *slot)
{
	uint8_t *stored = malloc((size_t)frame->stored_len);
	ZSTD_inBuffer in = { stored, (size_t)frame->stored_len, 0 };
	ZSTD_outBuffer out = { NULL, (size_t)frame->unpacked_len, 0 };
	size_t ret = 1, hint = 0;
	int err = stored ? read_stored(store, frame, stored) : -ENOMEM;

	free(slot->bytes);
	*slot = (struct d9__stored_frame) { .bytes = malloc((size_t)frame->unpacked_len) };
	if (!slot->bytes)
		err = -ENOMEM;
	out.dst = slot->bytes;
	ZSTD_DCtx_reset(store->engine, ZSTD_reset_session_only);
	while (!err && ret != 0 && !ZSTD_isError(ret) && out.pos < out.size) {
		size_t in_before = in.pos, out_before = out.pos;

		ret = d9__zstd_block(store->engine, &hint, &out, &in);
		if (in.pos == in_before && out.pos == out_before)
			break;
	}
	if (!err && ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation)
		err = -ENOMEM;
	free(stored);
	slot->len = out.pos;
	return err;
}

static int cached_frame(struct d9__store *store, size_t frame, struct d9__stored_frame **out)
{
	struct d9__stored_frame *oldest = &store->cache[0];
	int err;

	for (size_t i = 0; i < D9__STORE_CACHED; i++) {
		struct d9__stored_frame *slot = &store->cache[i];

		if (slot->bytes && slot->frame == frame) {
			slot->used_at = ++store->clock;
			*out = slot;
			return 0;
		}
		if (slot->used_at < oldest->used_at)
			oldest = slot;
	}
	err = unpack_frame(store, &store->frames[frame], oldest);
	if (err) {
		free(oldest->bytes);
		*oldest = (struct d9__stored_frame) { 0 };
		return err;
	}
	oldest->frame = frame;
	oldest->used_at = ++store->clock;
	*out = oldest;
	return 0;
}

static ssize_t read_frames(struct d9__store *store, uint64_t offset, void *buf, size_t len)
{
	size_t frame = find_frame(store, offset), within;
	struct d9__stored_frame *slot;
	int err;

	if (frame == store->n_frames)
		return 0;
	err = cached_frame(store, frame, &slot);
	if (err)
		return err;
	within = (size_t)(offset - store->frames[frame].unpacked_at);
	if (within >= slot->len)
		return 0;
	len = len < slot->len - within ? len : slot->len - within;
	memcpy(buf, slot->bytes + within, len);
	return (ssize_t)len;
}

const uint8_t *d9__store_bytes(const struct d9__store *store, uint64_t offset, uint64_t *len)
{
	if (store->form != D9__STORE_MEMORY || offset > store->len)
		return NULL;
	if (*len > store->len - offset)
		*len = store->len - offset;
	return store->bytes + offset;
}

static ssize_t read_file(struct d9__store *store, uint64_t offset, void *buf, size_t len)
{
	ssize_t n;

	do
		n = pread(store->fd, buf, len, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t d9__store_read_at(struct d9__store *store, uint64_t offset, void *buf, size_t len)
{
	switch (store->form) {
	case D9__STORE_DIRECT:
		return d9__input_read_at(store->input, offset, buf, len);
	case D9__STORE_FRAMES:
		return read_frames(store, offset, buf, len);
	case D9__STORE_FILE:
		return read_file(store, offset, buf, len);
	default:
		return 0;
	}
}

void d9__store_close(struct d9__store *store)
{
	if (store->form == D9__STORE_FILE)
		close(store->fd);
	if (store->form == D9__STORE_FRAMES)
		ZSTD_freeDCtx(store->engine);
	for (size_t i = 0; i < D9__STORE_CACHED; i++)
		free(store->cache[i].bytes);
	memset(store->cache, 0, sizeof(store->cache));
	store->engine = NULL;
	store->form = D9__STORE_CLOSED;
}
