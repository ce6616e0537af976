/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/array.h"
#include "format/wire.h"
#include "format/zstd_block.h"

#define IN_BYTES        ((size_t)1 << 17)
#define GZIP_WINDOW     (16 + MAX_WBITS) /* gzip framing only */
#define SKIPPABLE_MAGIC UINT32_C(0x184d2a50)
#define SKIPPABLE_MASK  UINT32_C(0xfffffff0)

/* A file that was cut inside of the magic is what it was going to be. */
static bool begins_as(const uint8_t *head, size_t len, const uint8_t *magic, size_t magic_len)
{
	return len && !memcmp(head, magic, len < magic_len ? len : magic_len);
}

static enum d9__container_kind kind_of(const uint8_t *head, size_t len)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (begins_as(head, len, gzip, sizeof(gzip)))
		return D9__CONTAINER_GZIP;
	if (begins_as(head, len, zstd, sizeof(zstd)) ||
	    (len == 4 && (d9__wire_get_u32(head) & SKIPPABLE_MASK) == SKIPPABLE_MAGIC))
		return D9__CONTAINER_ZSTD;
	return D9__CONTAINER_PLAIN;
}

/* The first bytes, however small the pieces in which a pipe gives them. */
static int look(struct d9__input *input, enum d9__container_kind *kind)
{
	uint8_t head[4];
	size_t len = 0;

	while (len < sizeof(head)) {
		ssize_t n = d9__input_read_at(input, len, head + len, sizeof(head) - len);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*kind = kind_of(head, len);
	return 0;
}

static int start_gzip(struct d9__container *container)
{
	z_stream *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	if (inflateInit2(z, GZIP_WINDOW) != Z_OK) {
		free(z);
		return -ENOMEM;
	}
	container->engine = z;
	return 0;
}

static int start_engine(struct d9__container *container)
{
	if (container->kind == D9__CONTAINER_PLAIN)
		return 0;
	container->in = malloc(IN_BYTES);
	if (!container->in)
		return -ENOMEM;
	if (container->kind == D9__CONTAINER_GZIP)
		return start_gzip(container);
	container->engine = ZSTD_createDCtx();
	if (!container->engine)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(container->engine, ZSTD_d_windowLogMax, D9__ZSTD_WINDOW_LOG_MAX);
	return 0;
}

static int note_frame(struct d9__container *container)
{
	uint64_t stored = d9__container_stored(container);

	if (!container->keep_frames || container->unpacked_at == container->frame_unpacked_at)
		return 0;
	if (!d9__array_grow(container->frames, container->n_frames))
		return -ENOMEM;
	container->frames[container->n_frames++] = (struct d9__packed_frame) {
		.stored_at = container->frame_stored_at,
		.stored_len = stored - container->frame_stored_at,
		.unpacked_at = container->frame_unpacked_at,
		.unpacked_len = container->unpacked_at - container->frame_unpacked_at,
	};
	return 0;
}

/* Nothing more comes: |err| 0 at a proper end. */
static ssize_t finish(struct d9__container *container, int err, const char *message)
{
	container->done = true;
	container->err = err;
	container->message = message;
	return 0;
}

/* Get packed bytes.  1, or 0 at the end and then finished. */
static int refill(struct d9__container *container)
{
	ssize_t n;

	if (container->in_pos < container->in_end)
		return 1;
	n = d9__input_read_at(container->input, container->stored_at, container->in, IN_BYTES);
	if (n > 0) {
		container->stored_at += (uint64_t)n;
		container->in_pos = 0;
		container->in_end = (size_t)n;
		return 1;
	}
	container->truncated = n == 0 && container->inside;
	finish(container, (int)n, n < 0 ? "cannot be read" : NULL);
	return 0;
}

/* ---- gzip ---- */

/* Between members: another one, or zeros that tape drives add.  False: something else. */
static bool next_member(struct d9__container *container)
{
	const uint8_t *in = container->in;

	while (container->in_pos < container->in_end && in[container->in_pos] == 0 &&
	       container->unpacked_at)
		container->in_pos++;
	if (container->in_pos == container->in_end)
		return true;
	if (in[container->in_pos] != 0x1f)
		return false;
	inflateReset(container->engine);
	container->inside = true;
	return true;
}

static ssize_t read_gzip(struct d9__container *container, void *buf, size_t len)
{
	z_stream *z = container->engine;
	uInt room = len > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)len;
	int ret;

	z->next_out = buf;
	z->avail_out = room;
	while (z->avail_out == room && !container->done) {
		if (!container->pending && !refill(container))
			break;
		if (!container->inside && !next_member(container))
			return finish(container, -EBADMSG, "other data follows the gzip data");
		if (!container->inside)
			continue;
		z->next_in = container->in + container->in_pos;
		z->avail_in = (uInt)(container->in_end - container->in_pos);
		ret = inflate(z, Z_NO_FLUSH);
		container->in_pos = container->in_end - z->avail_in;
		container->pending = ret == Z_OK && z->avail_out == 0;
		if (ret == Z_STREAM_END)
			container->inside = false;
		else if (ret == Z_MEM_ERROR)
			return -ENOMEM;
		else if (ret != Z_OK && ret != Z_BUF_ERROR)
			finish(container, -EBADMSG, "the gzip data is damaged");
	}
	return (ssize_t)(room - z->avail_out);
}

/* ---- zstd ---- */

static void begin_frame(struct d9__container *container)
{
	if (container->inside)
		return;
	container->inside = true;
	container->frame_stored_at = d9__container_stored(container);
	container->frame_unpacked_at = container->unpacked_at;
}

/* A frame ended, |unpacked| bytes behind what was delivered. */
static int end_frame(struct d9__container *container, size_t unpacked)
{
	int err;

	container->unpacked_at += unpacked;
	container->inside = container->pending = false;
	err = note_frame(container);
	container->unpacked_at -= unpacked;
	return err;
}

static ssize_t read_zstd(struct d9__container *container, void *buf, size_t len)
{
	ZSTD_outBuffer out = { buf, len, 0 };

	while (out.pos < out.size && !container->done) {
		ZSTD_inBuffer in;
		size_t ret;

		if (!container->pending) {
			if (!refill(container))
				break;
			begin_frame(container);
		}
		in = (ZSTD_inBuffer) { container->in, container->in_end, container->in_pos };
		ret = d9__zstd_block(container->engine, &container->hint, &out, &in);
		container->in_pos = in.pos;
		container->pending = out.pos == out.size;
		if (ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation)
			return -ENOMEM;
		if (ZSTD_isError(ret))
			finish(container, -EBADMSG, ZSTD_getErrorName(ret));
		else if (ret == 0 && end_frame(container, out.pos) != 0)
			return -ENOMEM;
		if (ret == 0 && out.pos)
			break;
	}
	return (ssize_t)out.pos;
}

static ssize_t read_plain(struct d9__container *container, void *buf, size_t len)
{
	ssize_t n = d9__input_read_at(container->input, container->stored_at, buf, len);

	if (n <= 0)
		return finish(container, (int)n, n < 0 ? "cannot be read" : NULL);
	container->stored_at += (uint64_t)n;
	return n;
}

int d9__container_open(struct d9__container *container, struct d9__input *input)
{
	int err;

	*container = (struct d9__container) { .input = input };
	err = look(input, &container->kind);
	if (!err)
		err = start_engine(container);
	if (err)
		d9__container_release(container);
	return err;
}

ssize_t d9__container_read(struct d9__container *container, void *buf, size_t len)
{
	ssize_t n;

	if (container->done || len == 0)
		return 0;
	if (container->limit_bytes && container->unpacked_at >= container->limit_bytes)
		return finish(container, -EFBIG, "this unpacks to far more than its size; the rest was left out");
	switch (container->kind) {
	case D9__CONTAINER_GZIP:
		n = read_gzip(container, buf, len);
		break;
	case D9__CONTAINER_ZSTD:
		n = read_zstd(container, buf, len);
		break;
	default:
		n = read_plain(container, buf, len);
		break;
	}
	if (n > 0)
		container->unpacked_at += (uint64_t)n;
	/* A frame that ends too early holds batches too. */
	if (container->done && container->inside && container->kind == D9__CONTAINER_ZSTD) {
		container->inside = false;
		if (note_frame(container) != 0)
			return -ENOMEM;
	}
	return n;
}

uint64_t d9__container_stored(const struct d9__container *container)
{
	return container->stored_at - (container->in_end - container->in_pos);
}

void d9__container_release(struct d9__container *container)
{
	if (container->kind == D9__CONTAINER_GZIP && container->engine) {
		inflateEnd(container->engine);
		free(container->engine);
	} else if (container->kind == D9__CONTAINER_ZSTD) {
		ZSTD_freeDCtx(container->engine);
	}
	free(container->in);
	free(container->frames);
	*container = (struct d9__container) { 0 };
}

const char *d9__container_name(enum d9__container_kind kind)
{
	static const char *const names[] = { "plain", "gzip", "zstd" };

	return names[kind];
}
