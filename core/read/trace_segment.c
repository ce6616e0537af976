/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/trace_segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/error.h>

#include "base/array.h"
#include "format/wire.h"
#include "read/inner_calls.h"

#define ACTIVE ".active"
/* Traces are packed by these factors. */
#define PACKED_LEAST 3
#define PACKED_MOST  64
/* Room that even the smallest needs to be kept: the first window of its reader. */
#define KEPT_LEAST ((uint64_t)1 << 19)

/* ---- opening ---- */

static bool ends_with(const char *text, const char *suffix)
{
	size_t len = strlen(text), n = strlen(suffix);

	return len >= n && strcmp(text + len - n, suffix) == 0;
}

__attribute__((format(printf, 3, 4))) static int refuse(char **why, int err, const char *format,
							...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(why, format, args) < 0)
		*why = NULL;
	va_end(args);
	return err;
}

static int check_header(const char *path, const uint8_t *head, size_t len, char **why)
{
	size_t n = len < D9__WIRE_MAGIC_LEN ? len : D9__WIRE_MAGIC_LEN;

	if (memcmp(head, D9__WIRE_MAGIC, n) != 0)
		return refuse(why, -EBADMSG, "%s: offset 0: this is not a TRC stream", path);
	if (len < D9__WIRE_HEADER_LEN)
		return refuse(why, -ENODATA, "%s: offset %zu: too short for a trace", path, len);
	if (head[4] != D9__WIRE_VERSION)
		return refuse(why, -EPROTONOSUPPORT,
			      "%s: offset 4: TRC version %u; this reader knows version %u", path,
			      head[4], D9__WIRE_VERSION);
	return 0;
}

static int look_inside(struct d9__trace_segment *segment, char **why)
{
	const char *path = segment->input.path;
	struct d9__container container;
	uint8_t head[D9__WIRE_HEADER_LEN];
	size_t len = 0;
	ssize_t n = 1;
	int err = d9__container_open(&container, &segment->input);

	if (err)
		return refuse(why, err, "%s: %s", path, strerror(-err));
	segment->kind = container.kind;
	while (len < sizeof(head) && n > 0) {
		n = d9__container_read(&container, head + len, sizeof(head) - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		err = refuse(why, (int)n, "%s: %s", path, strerror((int)-n));
	else if (container.err && len < sizeof(head))
		err = refuse(why, container.err, "%s: offset %zu: %s", path, len,
			     container.message);
	else if (container.truncated && len < sizeof(head))
		err = refuse(why, -ENODATA, "%s: offset %zu: the %s data ends too early", path, len,
			     d9__container_name(container.kind));
	else
		err = check_header(path, head, len, why);
	d9__container_release(&container);
	segment->input.keep_head = false;
	return err;
}

int d9__trace_segment_open(struct d9__trace_segment *segment, const char *path, char **why)
{
	int err;

	*segment = (struct d9__trace_segment) { 0 };
	*why = NULL;
	err = d9__input_open(&segment->input, path);
	if (err && !segment->input.path)
		return err;
	if (err)
		err = refuse(why, err, "%s: %s", path, strerror(-err));
	else
		err = look_inside(segment, why);
	segment->info = (struct d9_segment_info) {
		.path = segment->input.path,
		.container = d9__container_name(segment->kind),
		.stored_bytes = segment->input.size_bytes,
		.active = ends_with(segment->input.path, ACTIVE),
		.truncated = err == -ENODATA,
	};
	if (err == -ENODATA && segment->info.active) {
		/* Its writer has only just begun. */
		free(*why);
		*why = NULL;
		err = 0;
	}
	return err;
}

/* ---- what is known ---- */

int d9__trace_segment_blame(struct d9__trace_segment *segment, int err, uint64_t offset,
			    const char *what)
{
	free(segment->message);
	segment->info.message = NULL;
	if (asprintf(&segment->message, "%s: offset %" PRIu64 ": %s", segment->input.path, offset,
		     what) < 0) {
		segment->message = NULL;
		return -ENOMEM;
	}
	segment->info.err = err;
	segment->info.err_offset = offset;
	segment->info.message = segment->message;
	return 0;
}

int d9__trace_segment_finish(struct d9__trace_segment *segment,
			     const struct d9__segment_reader *reader,
			     const struct d9__container *container)
{
	struct d9_segment_info *info = &segment->info;
	char what[256];

	info->unpacked_bytes = container->unpacked_at;
	if (!info->stored_bytes)
		info->stored_bytes = container->stored_at;
	if (reader->err)
		return d9__trace_segment_blame(segment, reader->err, reader->err_offset,
					       reader->message);
	if (container->err)
		return d9__trace_segment_blame(segment, container->err, container->unpacked_at,
					       container->message);
	info->truncated = reader->truncated || container->truncated;
	if (!info->truncated)
		return 0;
	if (reader->truncated)
		snprintf(what, sizeof(what), "%s", reader->message);
	else
		snprintf(what, sizeof(what), "the %s data ends too early",
			 d9__container_name(container->kind));
	return d9__trace_segment_blame(
		segment, info->active ? 0 : -ENODATA,
		reader->truncated ? reader->err_offset : container->unpacked_at, what);
}

void d9__trace_segment_count(struct d9__trace_segment *segment, const struct d9__frame *frame)
{
	struct d9_segment_info *info = &segment->info;

	if (frame->kind == D9__FRAME_HEADER)
		info->batches++;
	if (frame->kind != D9__FRAME_EVENT)
		return;
	info->events++;
	if (!frame->timestamp_ns)
		return;
	if (!info->first_ns || frame->timestamp_ns < info->first_ns)
		info->first_ns = frame->timestamp_ns;
	if (frame->timestamp_ns > info->last_ns)
		info->last_ns = frame->timestamp_ns;
}

/* ---- the first pass ---- */

/* A few bytes packed make millions of batches: they are claims as others are. */
static bool fits(const struct d9__trace_segment *segment, size_t batches)
{
	return !segment->limit_bytes ||
	       batches < segment->limit_bytes / sizeof(struct d9__batch_ref);
}

struct scan {
	struct d9__trace_segment *segment;
	struct d9__container container;
	struct d9__segment_reader reader;
	struct d9__batch_list *batches;
	size_t first_batch;         /* of |batches|, the segment's own */
	struct d9__batch_ref batch; /* the open one */
	struct d9__times times;     /* of its events */
	uint64_t calls, calls_from_ns; /* of these, and when the first began */
	struct d9__poll_wakes seen;    /* in it */
	uint64_t pool_bytes;        /* of what it has defined */
};

static ssize_t read_container(void *context, void *buf, size_t len)
{
	return d9__container_read(context, buf, len);
}

struct d9__byte_source d9__container_source(struct d9__container *container)
{
	bool plain = container->kind == D9__CONTAINER_PLAIN && container->input->size_bytes;

	return (struct d9__byte_source) {
		.read = read_container,
		.context = container,
		.left_bytes = plain ? container->input->size_bytes : UINT64_MAX,
	};
}

static int close_batch(struct scan *scan, uint64_t end)
{
	struct d9__batch_list *list = scan->batches;

	if (!scan->times.timed && !scan->times.untimed)
		return 0;
	if (!fits(scan->segment, list->n - scan->segment->batches_before))
		return -EFBIG;
	scan->batch.len = end - scan->batch.offset;
	scan->batch.sorted = scan->times.sorted && !scan->calls && !scan->times.wakes;
	scan->batch.first_ns = scan->batch.begin_ns = scan->times.first_ns;
	if (scan->calls && scan->calls_from_ns < scan->batch.begin_ns)
		scan->batch.begin_ns = scan->calls_from_ns;
	scan->batch.calls = scan->calls;
	scan->batch.last_ns = scan->times.last_ns;
	scan->batch.timed = scan->times.timed;
	scan->batch.untimed = scan->times.untimed;
	scan->batch.wakes = scan->times.wakes;
	scan->batch.pool_bytes = scan->pool_bytes;
	if (!d9__array_grow(list->refs, list->n))
		return -ENOMEM;
	list->refs[list->n++] = scan->batch;
	scan->segment->todo += scan->batch.timed > 0;
	return 0;
}

static int open_batch(struct scan *scan, const struct d9__frame *frame)
{
	uint64_t offset = d9__segment_reader_offset(&scan->reader, frame);
	int err = scan->times.out_of_memory ? -ENOMEM : close_batch(scan, offset);

	scan->batch = (struct d9__batch_ref) { .segment = scan->segment->number,
					       .offset = offset };
	scan->times = (struct d9__times) { .sorted = true, .seen = &scan->seen };
	scan->calls = 0;
	scan->pool_bytes = 0;
	return err;
}

static void sum_up(struct scan *scan)
{
	struct d9_segment_info *info = &scan->segment->info;

	for (size_t i = scan->first_batch; i < scan->batches->n; i++) {
		const struct d9__batch_ref *batch = &scan->batches->refs[i];

		info->events += batch->timed + batch->untimed + batch->wakes;
		if (!batch->timed)
			continue;
		if (!info->first_ns || batch->first_ns < info->first_ns)
			info->first_ns = batch->first_ns;
		if (batch->last_ns > info->last_ns)
			info->last_ns = batch->last_ns;
	}
}

static void note_event(struct scan *scan, const struct d9__frame *frame)
{
	uint64_t start_ns;

	d9__times_add(&scan->times, frame->timestamp_ns);
	d9__times_see(&scan->times, &scan->reader.decoder, frame);
	if (!frame->schema->begins_earlier || !frame->timestamp_ns ||
	    !d9__inner_call_start(frame, &start_ns))
		return;
	if (!scan->calls++ || start_ns < scan->calls_from_ns)
		scan->calls_from_ns = start_ns;
}

static int walk(struct scan *scan)
{
	struct d9__frame frame;
	int got, err = 0;

	scan->first_batch = scan->batches->n;
	while (!err && (got = d9__segment_reader_next(&scan->reader, &frame)) == 1) {
		if (frame.kind != D9__FRAME_HEADER)
			scan->pool_bytes = d9__decoder_pool_bytes(&scan->reader.decoder);
		if (frame.kind == D9__FRAME_EVENT) {
			note_event(scan, &frame);
			d9__segment_reader_pass(&scan->reader, &scan->times);
		} else if (frame.kind == D9__FRAME_HEADER) {
			scan->segment->info.batches++;
			err = open_batch(scan, &frame);
			d9__poll_wakes_reset(&scan->seen);
		}
	}
	if (!err)
		err = got;
	if (!err)
		err = scan->times.out_of_memory
			      ? -ENOMEM
			      : close_batch(scan, scan->reader.window_at + scan->reader.pos);
	sum_up(scan);
	return err;
}

/* How much of the segment may be kept; nothing of one that will hardly fit. */
static uint64_t keep_bytes(const struct d9__trace_segment *segment, const struct d9__keep_budget *budget)
{
	uint64_t size = segment->info.stored_bytes, left = budget->left_bytes;

	if (size > left / PACKED_LEAST)
		return 0;
	if (size >= left / PACKED_MOST)
		return left;
	size *= PACKED_MOST;
	if (size < KEPT_LEAST)
		size = KEPT_LEAST;
	return size < left ? size : left;
}

int d9__trace_segment_scan(struct d9__trace_segment *segment, struct d9__definitions *schemas,
			   struct d9__batch_list *batches, struct d9__keep_budget *budget, uint64_t unpacked_max)
{
	struct scan scan = { .segment = segment,
			     .batches = batches,
			     .seen = { .times_only = true } };
	int err = d9__input_reopen(&segment->input), finished = 0;

	if (!err)
		err = d9__container_open(&scan.container, &segment->input);
	if (err)
		return err == -ENOMEM ? err
				      : d9__trace_segment_blame(segment, err, 0, strerror(-err));
	scan.container.keep_frames = true;
	scan.container.limit_bytes = unpacked_max;
	d9__segment_reader_init(&scan.reader, schemas, segment->limit_bytes);
	d9__segment_reader_start(&scan.reader, d9__container_source(&scan.container));
	/* To read a plain one again costs less than fresh memory. */
	if (segment->kind != D9__CONTAINER_PLAIN)
		d9__segment_reader_keep(&scan.reader, keep_bytes(segment, budget));
	err = walk(&scan);
	if (!err || err == -EFBIG)
		finished = d9__trace_segment_finish(segment, &scan.reader, &scan.container);
	if (err == -EFBIG && !finished)
		err = d9__trace_segment_blame(segment, err, scan.batch.offset,
					      "the batches before it take all memory that this may");
	err = err ? err : finished;
	segment->kept = d9__segment_reader_kept(&scan.reader, &segment->kept_len);
	budget->left_bytes -= segment->kept ? segment->kept_len : 0;
	segment->frames = scan.container.frames;
	segment->n_frames = scan.container.n_frames;
	scan.container.frames = NULL;
	d9__segment_reader_release(&scan.reader);
	d9__container_release(&scan.container);
	d9__poll_wakes_release(&scan.seen);
	return err;
}

void d9__trace_segment_release(struct d9__trace_segment *segment)
{
	d9__store_close(&segment->store);
	d9__input_release(&segment->input);
	free(segment->kept);
	free(segment->frames);
	free(segment->message);
	*segment = (struct d9__trace_segment) { .input = { .fd = -1 } };
}
