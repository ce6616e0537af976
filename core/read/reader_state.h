/* SPDX-License-Identifier: Apache-2.0 */
/* Reader state: what the parts of an open trace share. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "format/values.h"
#include "read/inner_calls.h"
#include "read/known_files.h"
#include "read/trace_segment.h"

#define D9__FILES_OPEN_MAX 128 /* kept open between the passes; others are opened again */

struct d9_reader {
	struct d9__trace_segment **segments;
	size_t n_segments;
	struct d9__table files; /* known_files.h */
	struct d9__definitions schemas;
	uint64_t limit_bytes; /* 0: the default */
	bool bounded; /* |limit_bytes| is for all segments together */
	uint64_t unpacked_left; /* bytes that they may still unpack to; 0: as many as they like */
	char *message;
	bool file_order, begun;
	int err; /* of next: final */

	/* The event last delivered: |own|, unless another place was given. */
	struct d9_event own, *event;
	struct d9__values values;
	uint64_t delivered;

	/* Time order. */
	struct d9__batch_list batches;
	size_t *starts; /* batches by the time they begin */
	size_t n_starts, next_start;
	uint64_t next_start_ns; /* when the next of them begins; UINT64_MAX behind the last */
	size_t next_untimed; /* batch whose untimed events come next */
	struct d9__merge merge; /* open batches by their next event */
	bool owed;              /* the top was delivered: advance it first */
	struct d9__run_of_events *untimed; /* open for its untimed events */
	struct d9__run_of_events *free_batches;
	uint64_t open_bytes, open_limit; /* that open batches and stores take, about, and may take */
	uint64_t events;
	struct d9__inner_calls calls;

	/* File order. */
	size_t current; /* segment */
	bool streaming; /* |container| and |stream| are open on it */
	struct d9__container container;
	struct d9__segment_reader stream;
};

/* Set the message.  Returns |err|. */
__attribute__((format(printf, 3, 4))) int d9__reader_fail(struct d9_reader *reader, int err,
							  const char *format, ...);

int d9__reader_out_of_memory(struct d9_reader *reader);

/*
 * As d9_reader_set_memory_limit(), but of all segments together; and they unpack to |unpacked_bytes| at the
 * most, 0: to as many as they like.
 */
void d9__reader_bound(struct d9_reader *reader, uint64_t memory_bytes, uint64_t unpacked_bytes);

/*
 * Add the file |path| as if it had been found in a directory: damage is told with the segment.  0, -ENOMEM, or -ENOENT and
 * other errors of open(2) of what is no segment by its name.
 */
int d9__reader_add_listed(struct d9_reader *reader, const char *path);

/* Add a segment that is not there, which |what| says: -ENOENT, and no events.  0 or -ENOMEM. */
int d9__reader_add_missing(struct d9_reader *reader, const char *path, const char *what);

/* |bytes| were unpacked of a segment that is done with. */
void d9__reader_unpacked(struct d9_reader *reader, uint64_t bytes);

/* Where the segment of an event is.  It stays so: any thread may ask. */
static inline const char *d9__reader_path(const struct d9_reader *reader, uint32_t segment)
{
	return reader->segments[segment]->input.path;
}

/*
 * Deliver the next event to |event|, and its values to |values| if they are no more than |n| and
 * the trace has them as they are: both have to stay until another place is given.
 */
static inline void d9__reader_deliver_to(struct d9_reader *reader, struct d9_event *event,
					 struct d9_value *values, size_t n)
{
	reader->event = event;
	d9__values_put_at(&reader->values, values, n);
}

/* Memory that |input| may claim. */
uint64_t d9__reader_limit(const struct d9_reader *reader, const struct d9__input *input);

/* Whether a field that is mandatory for the event's kind is absent in it, as its schema allows. */
bool d9__reader_lacks_mandatory(const struct d9_reader *reader, const struct d9_schema *schema);

/* Make |frame| of |segment|, whose values are in |reader->values|, the current event.  1. */
static inline int d9__reader_deliver(struct d9_reader *reader, struct d9__trace_segment *segment,
				     const struct d9__frame *frame, uint64_t offset,
				     const struct d9_event **out)
{
	const struct d9_schema *schema = frame->schema;

	*reader->event = (struct d9_event) {
		.schema = schema,
		.kind = (enum d9_event_kind)schema->kind,
		.has_timestamp = schema->has_timestamp,
		.timestamp_ns = frame->timestamp_ns,
		.values = reader->values.items,
		.segment = segment->number,
		.offset = offset,
	};
	if (__builtin_expect((reader->values.unresolved | reader->values.repeats) != 0, 0)) {
		segment->info.unresolved += reader->values.unresolved;
		segment->info.repeated_keys += reader->values.repeats;
		reader->values.unresolved = reader->values.repeats = 0;
	}
	if (__builtin_expect(schema->must != 0, 0) && d9__reader_lacks_mandatory(reader, schema)) {
		reader->event->kind = D9_EVENT_CUSTOM;
		segment->info.unusable++;
	}
	segment->info.unusable += schema->incomplete;
	reader->delivered++;
	*out = reader->event;
	return 1;
}
