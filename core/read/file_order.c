/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "read/file_order.h"

static int begin_stream(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	int err = d9__input_reopen(&segment->input);

	if (!err)
		err = d9__container_open(&reader->container, &segment->input);
	if (err == -ENOMEM)
		return d9__reader_out_of_memory(reader);
	if (err) {
		reader->current++;
		return d9__trace_segment_blame(segment, err, 0, strerror(-err))
			       ? d9__reader_out_of_memory(reader)
			       : 0;
	}
	segment->limit_bytes = d9__reader_limit(reader, &segment->input);
	reader->schemas.limit_bytes = (reader->bounded ? 0 : reader->schemas.bytes) + segment->limit_bytes;
	reader->container.limit_bytes = reader->unpacked_left;
	d9__segment_reader_release(&reader->stream);
	d9__segment_reader_init(&reader->stream, &reader->schemas, segment->limit_bytes);
	d9__segment_reader_start(&reader->stream, d9__container_source(&reader->container));
	reader->streaming = true;
	return 0;
}

static int end_stream(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	int err = d9__trace_segment_finish(segment, &reader->stream, &reader->container);

	d9__reader_unpacked(reader, reader->container.unpacked_at);
	d9__container_release(&reader->container);
	d9__input_close(&segment->input);
	reader->streaming = false;
	reader->current++;
	return err ? d9__reader_out_of_memory(reader) : 0;
}

/* The next event of the stream and its values.  1, 0 no more, -errno. */
static int next_event(struct d9_reader *reader, struct d9__trace_segment *segment,
		      struct d9__frame *frame)
{
	struct d9__segment_reader *stream = &reader->stream;
	int got = 1;

	if (d9__segment_reader_peek(stream, frame) &&
	    !d9__values_quick(&reader->values, &stream->decoder, frame)) {
		d9__segment_reader_take(stream, frame);
		d9__trace_segment_count(segment, frame);
		return 1;
	}
	while ((got = d9__segment_reader_next(stream, frame)) == 1) {
		d9__trace_segment_count(segment, frame);
		if (frame->kind == D9__FRAME_EVENT)
			break;
	}
	if (got == 1 && d9__values_build(&reader->values, &stream->decoder, frame) == -ENOMEM)
		return d9__reader_out_of_memory(reader);
	return got;
}

int d9__file_order_next(struct d9_reader *reader, const struct d9_event **out)
{
	while (reader->current < reader->n_segments) {
		struct d9__trace_segment *segment = reader->segments[reader->current];
		struct d9__frame frame;
		int got;

		if (!reader->streaming) {
			if (segment->info.err)
				reader->current++;
			else if (begin_stream(reader, segment) != 0)
				return -ENOMEM;
			continue;
		}
		got = next_event(reader, segment, &frame);
		if (got == 1)
			return d9__reader_deliver(reader, segment, &frame,
						  d9__segment_reader_offset(&reader->stream, &frame),
						  out);
		if (got == 0)
			got = end_stream(reader, segment);
		if (got)
			return got;
	}
	return 0;
}

void d9__file_order_release(struct d9_reader *reader)
{
	if (reader->streaming)
		d9__container_release(&reader->container);
	d9__segment_reader_release(&reader->stream);
}
