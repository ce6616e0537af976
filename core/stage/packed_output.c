/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "read/input.h"
#include "stage/frames.h"
#include "stage/packed_output.h"

#define GATHERED_BYTES ((size_t)64 << 10)
/*
 * End a zstd frame at this size even inside of a batch, because foreign recorders write larger
 * ones.
 */
#define FRAME_BYTES (16u << 20)

int d9__packed_output_open(struct d9__packed_output *out, int fd, enum d9__container_kind kind)
{
	static const enum d9_compress packings[] = { [D9__CONTAINER_PLAIN] = D9_COMPRESS_NONE,
						     [D9__CONTAINER_GZIP] = D9_COMPRESS_GZIP,
						     [D9__CONTAINER_ZSTD] = D9_COMPRESS_ZSTD };

	*out = (struct d9__packed_output) { .fd = fd };
	return d9__packer_begin(&out->packer, packings[kind]);
}

uint8_t *d9__packed_output_reserve(struct d9__packed_output *out, size_t len)
{
	/* One byte more, so that the place of an event without bytes is not NULL. */
	return d9__array_reserve(out->bytes, &out->capacity, out->len, len + 1)
		       ? out->bytes + out->len
		       : NULL;
}

static int write_packed(struct d9__packed_output *out)
{
	int err = d9__write_all(out->fd, out->packer.out, out->packer.len);

	d9__packer_keep(&out->packer);
	return err;
}

static int pack(struct d9__packed_output *out)
{
	int err = 0;

	/* Released by d9__packed_output_release(). */
	if (out->len) /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		err = d9__packer_add(&out->packer, out->bytes, out->len, out->first_ns,
				     out->last_ns, out->events, 0);
	out->len = 0;
	out->first_ns = out->last_ns = 0;
	out->events = 0;
	return err ? err : write_packed(out);
}

void d9__packed_output_event(struct d9__packed_output *out, uint64_t time_ns)
{
	out->events++;
	if (time_ns && (!out->first_ns || time_ns < out->first_ns))
		out->first_ns = time_ns;
	if (time_ns > out->last_ns)
		out->last_ns = time_ns;
}

int d9__packed_output_settle(struct d9__packed_output *out, bool batch_begins)
{
	int err;

	if (out->len < GATHERED_BYTES)
		return 0;
	err = pack(out);
	if (err || (!batch_begins && out->packer.frame.len < FRAME_BYTES))
		return err;
	err = d9__packer_flush(&out->packer, 0);
	return err ? err : write_packed(out);
}

int d9__packed_output_end(struct d9__packed_output *out)
{
	int err = pack(out);

	if (!err)
		err = d9__packer_flush(&out->packer, 0);
	if (!err)
		err = d9__packer_end(&out->packer);
	return err ? err : write_packed(out);
}

void d9__packed_output_release(struct d9__packed_output *out)
{
	d9__packer_release(&out->packer);
	free(out->bytes);
	*out = (struct d9__packed_output) { .fd = -1 };
}

/* ---- a trace once more ---- */

static int put_frame(struct d9__packed_output *out, const struct d9__frame *frame)
{
	size_t len = (size_t)(frame->end - frame->start);
	int err = d9__packed_output_settle(out, frame->kind == D9__FRAME_HEADER);
	uint8_t *p = err ? NULL : d9__packed_output_reserve(out, len);

	if (!p)
		return err ? err : -ENOMEM;
	memcpy(p, frame->start, len);
	out->len += len;
	if (frame->kind == D9__FRAME_EVENT)
		d9__packed_output_event(out, frame->timestamp_ns);
	return 0;
}

int d9__packed_output_copy(int from, int to, enum d9__container_kind kind)
{
	struct d9__packed_output out;
	struct d9__frames_in in;
	struct d9__frame frame;
	int err = d9__packed_output_open(&out, to, kind);
	int read_err = d9__frames_open(&in, from);

	err = err ? err : read_err;
	while (!err && (err = d9__frames_next(&in, &frame)) == 1)
		err = put_frame(&out, &frame);
	if (!err)
		err = d9__packed_output_end(&out);
	d9__frames_release(&in);
	d9__packed_output_release(&out);
	return err;
}
