/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/raw_segment.h"

#include "analyze/processes.h"
#include "read/catalogue.h"
#include "read/trace_segment.h"

/* The memory for one frame and the pools of one batch, beyond a multiple of the file's size. */
#define MEMORY_BYTES  (UINT64_C(64) << 20)
#define MEMORY_FACTOR 2
/* The most that a file may unpack to; the same limit as in trace_input.c. */
#define UNPACKED_BYTES	(UINT64_C(256) << 20)
#define UNPACKED_FACTOR 32

static void stop_reading(struct d9__raw_segment *segment)
{
	if (!segment->reading)
		return;
	d9__segment_reader_release(&segment->reader);
	d9__container_release(&segment->container);
	d9__definitions_release(&segment->schemas);
	segment->reading = false;
}

static int start_reading(struct d9__raw_segment *segment)
{
	int err = d9__container_open(&segment->container, &segment->input);

	if (err)
		return err;
	if (segment->input.size_bytes)
		segment->container.limit_bytes = UNPACKED_BYTES + UNPACKED_FACTOR * segment->input.size_bytes;
	segment->container.keep_frames = segment->keep_frames;
	segment->schemas.classify = d9__catalogue_classify;
	d9__segment_reader_init(&segment->reader, &segment->schemas,
				MEMORY_BYTES + MEMORY_FACTOR * segment->input.size_bytes);
	d9__segment_reader_start(&segment->reader, d9__container_source(&segment->container));
	segment->reading = true;
	return 0;
}

static int find_first_ns(struct d9__raw_segment *segment)
{
	struct d9__frame frame;
	int err;

	segment->first_ns = UINT64_MAX;
	err = start_reading(segment);
	while (!err && (err = d9__segment_reader_next(&segment->reader, &frame)) == 1) {
		err = 0;
		segment->has_events |= frame.kind == D9__FRAME_EVENT;
		if (frame.kind == D9__FRAME_EVENT && frame.timestamp_ns) {
			segment->first_ns = frame.timestamp_ns;
			break;
		}
	}
	stop_reading(segment);
	return err;
}

/* Read no more of a pipe than its head until that is a trace's, because a pipe need not end. */
static int open_pipe(struct d9__raw_segment *segment, char **why)
{
	struct d9__trace_segment begun;
	int err = d9__trace_segment_open(&begun, segment->path, why);

	segment->input = begun.input;
	begun.input = (struct d9__input){ .fd = -1 };
	d9__trace_segment_release(&begun);
	return err;
}

int d9__raw_segment_open(struct d9__raw_segment *segment, const char *path, char **why)
{
	int err;

	*why = NULL;
	*segment = (struct d9__raw_segment){ .path = path, .opened = true };
	err = d9__path_is_pipe(path) ? open_pipe(segment, why) : d9__input_open(&segment->input, path);
	if (err)
		return err;
	/*
	 * Copy a pipe to a file, because it is read twice: its head tells its place among the
	 * segments.
	 */
	err = d9__input_spool(&segment->input);
	if (!err)
		err = find_first_ns(segment);
	d9__input_close(&segment->input);
	return err;
}

static void explain(struct d9__raw_segment *segment, int err, uint64_t offset, const char *what)
{
	segment->err = err;
	snprintf(segment->message, sizeof(segment->message), "offset %" PRIu64 ": %s", offset, what);
}

/* Describe in words why the stream ended. */
static void note_end(struct d9__raw_segment *segment)
{
	const struct d9__container *container = &segment->container;
	const struct d9__segment_reader *reader = &segment->reader;

	if (container->err) {
		explain(segment, container->err, container->unpacked_at,
			container->message ? container->message : "damaged");
	} else if (reader->err) {
		explain(segment, reader->err, reader->err_offset, reader->message);
	} else if (reader->truncated || container->truncated) {
		segment->cut = true;
		snprintf(segment->message, sizeof(segment->message),
			 segment->has_events ? "ends in the middle of a frame at byte %" PRIu64
					     : "cut before its first event",
			 reader->truncated ? reader->err_offset : container->unpacked_at);
	}
}

int d9__raw_segment_next(struct d9__raw_segment *segment, struct d9__frame *frame)
{
	int err = 0;

	if (!segment->reading) {
		err = d9__input_reopen(&segment->input);
		if (!err)
			err = start_reading(segment);
	}
	if (!err)
		err = d9__segment_reader_next(&segment->reader, frame);
	if (err == 0)
		note_end(segment);
	return err;
}

uint64_t d9__raw_segment_stored(const struct d9__raw_segment *segment)
{
	return segment->reading ? d9__container_stored(&segment->container) : 0;
}

void d9__raw_segment_release(struct d9__raw_segment *segment)
{
	stop_reading(segment);
	if (segment->opened)
		d9__input_release(&segment->input);
	segment->opened = false;
}
