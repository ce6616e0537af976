/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time order takes two passes.  The first walks every segment and notes its batches: where they
 * are, and from when to when.  The second opens a batch when the merged time reaches its
 * beginning, and closes it behind its last event; so what is in memory is what overlaps.
 *
 *   always          96 bytes per batch and the distinct schemas
 *   an open batch   in time order: a window of at most 256 KiB, or its largest frame if that is
 *                   larger.  Not in order (a wake with the time at which it was due): the whole
 *                   batch and 32 bytes per event
 *   and its pools, at most the memory limit; an unpacked zstd frame (8 MiB at the most) or two
 *   compressed      what fits KEEP_BYTES, over all segments, is unpacked once and kept
 *
 * Larger compressed segments are unpacked again, zstd frame by frame if the frames are small as
 * the recorder writes them, else into an unlinked temporary file for as long as their batches
 * last.  A pipe goes into such a file as it is.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "format/values.h"
#include "read/catalogue.h"
#include "read/folder.h"
#include "read/trace_segment.h"

#define KEEP_BYTES       ((uint64_t)64 << 20)
#define LIMIT_BASE_BYTES ((uint64_t)64 << 20)
#define LIMIT_FACTOR     64
#define FILES_OPEN_MAX   128 /* kept open between the passes; others are opened again */

struct d9_reader {
	struct d9__trace_segment **segments;
	size_t n_segments, segments_capacity;
	struct d9__definitions schemas;
	uint64_t limit_bytes; /* 0: the default */
	char *message;
	bool file_order, begun;
	int err; /* of next: final */

	/* The event last delivered. */
	struct d9_event event;
	struct d9__values values;
	uint64_t delivered;

	/* Time order. */
	struct d9__batch_list batches;
	size_t *starts; /* batches by the time they begin */
	size_t n_starts, next_start;
	size_t next_untimed; /* batch whose untimed events come next */
	struct d9__merge merge; /* open batches by their next event */
	bool owed;              /* the top was delivered: advance it first */
	struct d9__batch *untimed; /* open for its untimed events */
	struct d9__batch *free_batches;
	uint64_t events;

	/* File order. */
	size_t current; /* segment */
	bool streaming; /* |container| and |stream| are open on it */
	struct d9__container container;
	struct d9__segment_reader stream;
};

/* ---- making one ---- */

int d9_reader_new(struct d9_reader **out)
{
	struct d9_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->schemas.classify = d9__catalogue_classify;
	*out = reader;
	return 0;
}

static void free_batch(struct d9__batch *batch)
{
	d9__batch_release(batch);
	free(batch);
}

void d9_reader_free(struct d9_reader *reader)
{
	if (!reader)
		return;
	for (size_t i = 0; i < reader->merge.n; i++)
		free_batch(reader->merge.items[i].run);
	if (reader->untimed)
		free_batch(reader->untimed);
	while (reader->free_batches) {
		struct d9__batch *batch = reader->free_batches;

		reader->free_batches = batch->next;
		free_batch(batch);
	}
	if (reader->streaming)
		d9__container_release(&reader->container);
	d9__segment_reader_release(&reader->stream);
	for (size_t i = 0; i < reader->n_segments; i++) {
		d9__trace_segment_release(reader->segments[i]);
		free(reader->segments[i]);
	}
	free(reader->segments);
	free(reader->batches.refs);
	free(reader->starts);
	d9__merge_release(&reader->merge);
	d9__values_release(&reader->values);
	d9__definitions_release(&reader->schemas);
	free(reader->message);
	free(reader);
}

__attribute__((format(printf, 3, 4))) static int fail(struct d9_reader *reader, int err,
						      const char *format, ...)
{
	va_list args;

	free(reader->message);
	va_start(args, format);
	if (vasprintf(&reader->message, format, args) < 0)
		reader->message = NULL;
	va_end(args);
	return err;
}

static int out_of_memory(struct d9_reader *reader)
{
	return fail(reader, -ENOMEM, "out of memory");
}

static int append_segment(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	if (reader->n_segments == reader->segments_capacity) {
		size_t capacity = reader->segments_capacity ? reader->segments_capacity * 2 : 16;
		struct d9__trace_segment **segments =
			realloc(reader->segments, capacity * sizeof(struct d9__trace_segment *));

		if (!segments)
			return -ENOMEM;
		reader->segments = segments;
		reader->segments_capacity = capacity;
	}
	if (reader->n_segments >= FILES_OPEN_MAX)
		d9__input_close(&segment->input);
	segment->number = (uint32_t)reader->n_segments;
	reader->segments[reader->n_segments++] = segment;
	return 0;
}

/*
 * Open |path| as a segment.  |found|: it was found in a directory, so a file that is none is
 * passed over; but what has a segment's name and is damaged is worth telling.
 */
static int add_file(struct d9_reader *reader, const char *path, bool found)
{
	struct d9__trace_segment *segment = calloc(1, sizeof(*segment));
	char *why = NULL;
	int err;

	if (!segment)
		return out_of_memory(reader);
	err = d9__trace_segment_open(segment, path, &why);
	if (err && found && err != -ENOMEM && segment->input.path &&
	    d9__folder_is_segment_name(path)) {
		segment->info.err = err;
		segment->info.message = segment->message = why;
		segment->info.truncated = segment->info.active;
		why = NULL;
		err = 0;
	}
	if (!err)
		err = append_segment(reader, segment);
	if (err) {
		if (why)
			fail(reader, err, "%s", why);
		else
			out_of_memory(reader);
		d9__trace_segment_release(segment);
		free(segment);
	}
	free(why);
	return err;
}

static int add_folder(struct d9_reader *reader, const char *path)
{
	struct d9__folder folder = { 0 };
	size_t before = reader->n_segments;
	int err = d9__folder_list(&folder, path);

	if (err)
		fail(reader, err, "%s: %s", path, strerror(-err));
	for (size_t i = 0; i < folder.n && !err; i++)
		if (add_file(reader, folder.paths[i], true) == -ENOMEM)
			err = -ENOMEM;
	d9__folder_release(&folder);
	if (err)
		return err;
	/* Files that were passed over are no news. */
	free(reader->message);
	reader->message = NULL;
	if (reader->n_segments == before)
		err = fail(reader, -ENODATA, "%s: no trace segments in this directory", path);
	return err;
}

int d9_reader_add(struct d9_reader *reader, const char *path)
{
	int err;

	if (!reader || !path || reader->begun)
		return -EINVAL;
	err = add_file(reader, path, false);
	return err == -EISDIR ? add_folder(reader, path) : err;
}

void d9_reader_set_file_order(struct d9_reader *reader, bool on)
{
	if (!reader->begun)
		reader->file_order = on;
}

void d9_reader_set_memory_limit(struct d9_reader *reader, uint64_t limit_bytes)
{
	reader->limit_bytes = limit_bytes;
}

static uint64_t limit_of(const struct d9_reader *reader, const struct d9__input *input)
{
	uint64_t size = input->size_bytes;

	if (reader->limit_bytes)
		return reader->limit_bytes;
	/* A pipe's size is not known: what 1 GiB would justify. */
	if (input->pipe)
		size = (uint64_t)1 << 30;
	return size > UINT64_MAX / LIMIT_FACTOR - LIMIT_BASE_BYTES ?
		UINT64_MAX : size * LIMIT_FACTOR + LIMIT_BASE_BYTES;
}

/* ---- delivering ---- */

/* A mandatory field is optional in this schema, and absent in this event. */
static bool lacks_mandatory(const struct d9_reader *reader, const struct d9_schema *schema)
{
	for (unsigned k = 0; k < D9__DEFINITION_KNOWN_MAX; k++)
		if (schema->must & UINT32_C(1) << k &&
		    !reader->values.items[schema->known[k]].present)
			return true;
	return false;
}

/* 1; 0 if the event cannot be decoded after all, because its file changed; -ENOMEM. */
static int deliver(struct d9_reader *reader, struct d9__trace_segment *segment,
		   const struct d9__decoder *decoder, const struct d9__frame *frame,
		   uint64_t offset, const struct d9_event **out)
{
	const struct d9_schema *schema = frame->schema;
	uint64_t unresolved = reader->values.unresolved;
	int err = d9__values_build(&reader->values, decoder, frame);

	if (err)
		return err == -ENOMEM ? out_of_memory(reader) : 0;
	reader->event = (struct d9_event) {
		.schema = schema,
		.kind = (enum d9_event_kind)schema->kind,
		.has_timestamp = schema->has_timestamp,
		.timestamp_ns = frame->timestamp_ns,
		.values = reader->values.items,
		.segment = segment->number,
		.offset = offset,
	};
	segment->info.unresolved += reader->values.unresolved - unresolved;
	if (__builtin_expect(schema->must != 0, 0) && lacks_mandatory(reader, schema)) {
		reader->event.kind = D9_EVENT_CUSTOM;
		segment->info.unusable++;
	}
	segment->info.unusable += schema->incomplete;
	reader->delivered++;
	*out = &reader->event;
	return 1;
}

/* ---- time order ---- */

static int prepare_segment(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	int err = d9__input_spool(&segment->input);

	if (err)
		return fail(reader, err, "%s: cannot be put aside: %s", segment->input.path,
			    strerror(-err));
	if (!segment->info.stored_bytes)
		segment->info.stored_bytes = segment->input.size_bytes;
	segment->limit_bytes = limit_of(reader, &segment->input);
	return 0;
}

static int compare_starts(const void *a, const void *b, void *context)
{
	const struct d9__batch_ref *refs = context;
	size_t i = *(const size_t *)a, j = *(const size_t *)b;

	if (refs[i].first_ns != refs[j].first_ns)
		return refs[i].first_ns < refs[j].first_ns ? -1 : 1;
	return i < j ? -1 : i > j;
}

static int sort_starts(struct d9_reader *reader)
{
	size_t n = reader->batches.n;

	reader->starts = malloc((n + 1) * sizeof(*reader->starts));
	if (!reader->starts)
		return out_of_memory(reader);
	for (size_t i = 0; i < n; i++) {
		if (reader->batches.refs[i].timed)
			reader->starts[reader->n_starts++] = i;
		reader->events += reader->batches.refs[i].timed + reader->batches.refs[i].untimed;
	}
	if (reader->n_starts)
		qsort_r(reader->starts, reader->n_starts, sizeof(*reader->starts), compare_starts,
			reader->batches.refs);
	return 0;
}

static int scan_all(struct d9_reader *reader)
{
	struct d9__keep_budget budget = { KEEP_BYTES };

	if (reader->limit_bytes && reader->limit_bytes < KEEP_BYTES)
		budget.left_bytes = reader->limit_bytes;

	for (size_t i = 0; i < reader->n_segments; i++) {
		struct d9__trace_segment *segment = reader->segments[i];
		int err;

		if (segment->info.err)
			continue;
		err = prepare_segment(reader, segment);
		if (err)
			return err;
		reader->schemas.limit_bytes = reader->schemas.bytes + segment->limit_bytes;
		err = d9__trace_segment_scan(segment, &reader->schemas, &reader->batches, &budget);
		if (err)
			return fail(reader, err, "%s: %s", segment->input.path, strerror(-err));
		if (i >= FILES_OPEN_MAX)
			d9__input_close(&segment->input);
	}
	reader->schemas.limit_bytes = 0;
	return sort_starts(reader);
}

/* Make the bytes of |segment| readable at any offset. */
static int use_store(struct d9__trace_segment *segment)
{
	int err = 0;

	if (segment->store.form == D9__STORE_CLOSED) {
		segment->store.bytes = segment->kept;
		segment->store.len = segment->kept_len;
		segment->store.frames = segment->frames;
		segment->store.n_frames = segment->n_frames;
		err = d9__input_reopen(&segment->input);
		if (!err)
			err = d9__store_open(&segment->store, &segment->input, segment->kind);
	}
	if (!err)
		segment->open_batches++;
	return err;
}

/* A batch is done with; behind the last one of the segment, so is what is unpacked. */
static void leave_store(struct d9__trace_segment *segment)
{
	if (--segment->open_batches || segment->todo)
		return;
	d9__store_close(&segment->store);
	if (segment->number >= FILES_OPEN_MAX)
		d9__input_close(&segment->input);
	free(segment->kept);
	segment->kept = NULL;
}

static void put_batch(struct d9_reader *reader, struct d9__batch *batch)
{
	leave_store(reader->segments[batch->ref->segment]);
	batch->next = reader->free_batches;
	reader->free_batches = batch;
}

static struct d9__batch *get_batch(struct d9_reader *reader)
{
	struct d9__batch *batch = reader->free_batches;

	if (batch) {
		reader->free_batches = batch->next;
		return batch;
	}
	batch = malloc(sizeof(*batch));
	if (batch)
		d9__batch_init(batch, &reader->schemas);
	return batch;
}

/*
 * Open |ref|.  1; 0 if its bytes can no longer be had, which is then the segment's damage;
 * -ENOMEM.
 */
static int open_batch(struct d9_reader *reader, const struct d9__batch_ref *ref, bool untimed,
		      struct d9__batch **out)
{
	struct d9__trace_segment *segment = reader->segments[ref->segment];
	struct d9__batch *batch;
	int err = use_store(segment);

	if (err == -ENOMEM)
		return out_of_memory(reader);
	if (err) {
		err = d9__trace_segment_blame(segment, err, ref->offset, strerror(-err));
		return err ? out_of_memory(reader) : 0;
	}
	batch = get_batch(reader);
	if (!batch)
		return out_of_memory(reader);
	err = d9__batch_open(batch, ref, &segment->store, untimed, segment->limit_bytes);
	if (!err) {
		*out = batch;
		return 1;
	}
	put_batch(reader, batch);
	if (err != -ENOMEM)
		err = d9__trace_segment_blame(segment, err, ref->offset, strerror(-err));
	return err ? out_of_memory(reader) : 0;
}

/* Events without a time, and with time 0, of all batches in file order.  1, 0 no more. */
static int next_untimed(struct d9_reader *reader, const struct d9_event **out)
{
	struct d9__frame frame;
	uint64_t offset;

	for (;;) {
		struct d9__batch *batch = reader->untimed;
		int got;

		if (!batch) {
			const struct d9__batch_ref *ref;

			if (reader->next_untimed >= reader->batches.n)
				return 0;
			ref = &reader->batches.refs[reader->next_untimed++];
			if (!ref->untimed)
				continue;
			got = open_batch(reader, ref, true, &reader->untimed);
			if (got < 0)
				return got;
			continue;
		}
		got = d9__batch_next(batch, &frame, &offset);
		if (got == 1)
			got = deliver(reader, reader->segments[batch->ref->segment],
				      &batch->reader.decoder, &frame, offset, out);
		if (got)
			return got;
		reader->untimed = NULL;
		put_batch(reader, batch);
	}
}

/* The earliest open batch has no more events, or its next one has a later time. */
static int advance(struct d9_reader *reader)
{
	struct d9__merge_item *top = d9__merge_top(&reader->merge);
	struct d9__batch *batch = top->run;
	int got = d9__batch_next(batch, &batch->frame, &batch->offset);

	if (got == -ENOMEM)
		return out_of_memory(reader);
	if (got == 1) {
		top->time_ns = batch->frame.timestamp_ns;
		d9__merge_settle(&reader->merge);
		return 0;
	}
	d9__merge_pop(&reader->merge);
	put_batch(reader, batch);
	return 0;
}

/* Open what begins before, or when, the next event happens. */
static int open_due(struct d9_reader *reader)
{
	while (reader->next_start < reader->n_starts) {
		size_t at = reader->starts[reader->next_start];
		const struct d9__batch_ref *ref = &reader->batches.refs[at];
		struct d9__merge_item *top = d9__merge_top(&reader->merge);
		struct d9__batch *batch;
		int got;

		if (top && ref->first_ns > top->time_ns)
			return 0;
		reader->next_start++;
		reader->segments[ref->segment]->todo--;
		got = open_batch(reader, ref, false, &batch);
		if (got < 0)
			return got;
		if (got == 0)
			continue;
		got = d9__batch_next(batch, &batch->frame, &batch->offset);
		if (got == 1)
			got = d9__merge_push(&reader->merge, (struct d9__merge_item) {
				batch->frame.timestamp_ns, at, batch }) ? -ENOMEM : 1;
		if (got != 1)
			put_batch(reader, batch);
		if (got == -ENOMEM)
			return out_of_memory(reader);
	}
	return 0;
}

static int next_in_time(struct d9_reader *reader, const struct d9_event **out)
{
	int got = reader->next_untimed < reader->batches.n || reader->untimed ?
		next_untimed(reader, out) : 0;

	while (got == 0) {
		struct d9__batch *batch;

		/* Advancing moves the bytes of the last event: not before the next one is wanted. */
		if (reader->owed) {
			reader->owed = false;
			got = advance(reader);
			if (got)
				return got;
		}
		got = open_due(reader);
		if (got)
			return got;
		if (!d9__merge_top(&reader->merge))
			return 0;
		batch = d9__merge_top(&reader->merge)->run;
		reader->owed = true;
		got = deliver(reader, reader->segments[batch->ref->segment],
			      &batch->reader.decoder, &batch->frame, batch->offset, out);
	}
	return got;
}

/* ---- file order ---- */

static int begin_stream(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	int err = d9__input_reopen(&segment->input);

	if (!err)
		err = d9__container_open(&reader->container, &segment->input);
	if (err == -ENOMEM)
		return out_of_memory(reader);
	if (err) {
		reader->current++;
		return d9__trace_segment_blame(segment, err, 0, strerror(-err)) ?
			out_of_memory(reader) : 0;
	}
	segment->limit_bytes = limit_of(reader, &segment->input);
	reader->schemas.limit_bytes = reader->schemas.bytes + segment->limit_bytes;
	d9__segment_reader_release(&reader->stream);
	d9__segment_reader_init(&reader->stream, &reader->schemas, segment->limit_bytes);
	d9__segment_reader_start(&reader->stream, d9__container_source(&reader->container));
	reader->streaming = true;
	return 0;
}

static int end_stream(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	int err = d9__trace_segment_finish(segment, &reader->stream, &reader->container);

	d9__container_release(&reader->container);
	d9__input_close(&segment->input);
	reader->streaming = false;
	reader->current++;
	return err ? out_of_memory(reader) : 0;
}

static int next_in_file(struct d9_reader *reader, const struct d9_event **out)
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
		got = d9__segment_reader_next(&reader->stream, &frame);
		if (got == 1)
			d9__trace_segment_count(segment, &frame);
		if (got == 1 && frame.kind == D9__FRAME_EVENT)
			got = deliver(reader, segment, &reader->stream.decoder, &frame,
				      d9__segment_reader_offset(&reader->stream, &frame), out);
		else if (got == 0)
			got = end_stream(reader, segment);
		else if (got == 1)
			continue;
		if (got)
			return got;
	}
	return 0;
}

int d9_reader_next(struct d9_reader *reader, const struct d9_event **event)
{
	int got = 0;

	/* What failed once is half done: it stays failed. */
	if (reader->err)
		return reader->err;
	if (!reader->begun && !reader->file_order)
		got = scan_all(reader);
	reader->begun = true;
	if (!got)
		got = reader->file_order ? next_in_file(reader, event) : next_in_time(reader, event);
	reader->err = got < 0 ? got : 0;
	return got;
}

/* ---- what is known ---- */

size_t d9_reader_segments(const struct d9_reader *reader)
{
	return reader->n_segments;
}

int d9_reader_segment(const struct d9_reader *reader, size_t i, struct d9_segment_info *info)
{
	if (i >= reader->n_segments)
		return -EINVAL;
	*info = reader->segments[i]->info;
	return 0;
}

const char *d9_reader_message(const struct d9_reader *reader)
{
	return reader->message ? reader->message : "";
}

void d9_reader_progress(const struct d9_reader *reader, uint64_t *done_bytes,
			uint64_t *total_bytes)
{
	uint64_t done = 0, total = 0;

	for (size_t i = 0; i < reader->n_segments; i++) {
		uint64_t size = reader->segments[i]->input.size_bytes;

		total += size;
		done += i < reader->current ? size : 0;
	}
	if (reader->streaming && reader->container.input->size_bytes)
		done += d9__container_stored(&reader->container);
	if (!reader->file_order)
		done = reader->events ? (uint64_t)((double)total * (double)reader->delivered /
						   (double)reader->events) : 0;
	*done_bytes = done < total ? done : total;
	*total_bytes = total;
}

/* ---- schemas ---- */

const char *d9_schema_name(const struct d9_schema *schema)
{
	return schema->name;
}

size_t d9_schema_fields(const struct d9_schema *schema)
{
	return schema->n_fields;
}

const char *d9_schema_field_name(const struct d9_schema *schema, size_t i)
{
	return i < schema->n_fields ? schema->fields[i].name : NULL;
}

enum d9_field_type d9_schema_field_type(const struct d9_schema *schema, size_t i, bool *optional)
{
	if (i >= schema->n_fields)
		return (enum d9_field_type)0;
	if (optional)
		*optional = schema->fields[i].optional;
	return (enum d9_field_type)schema->fields[i].type;
}

const char *d9_schema_annotation(const struct d9_schema *schema, size_t i, const char *key)
{
	const char *value = NULL;

	for (uint32_t k = 0; k < schema->n_annotations; k++)
		if (schema->annotations[k].field == i &&
		    strcmp(schema->annotations[k].key, key) == 0)
			value = schema->annotations[k].value;
	return value;
}

int d9_schema_find(const struct d9_schema *schema, const char *name)
{
	return d9__definition_find(schema, name);
}

uint32_t d9_schema_id(const struct d9_schema *schema)
{
	return schema->id;
}

/* ---- events ---- */

const char *d9_event_name(const struct d9_event *event)
{
	return event->schema->name;
}

const struct d9_value *d9_event_field(const struct d9_event *event, const char *name)
{
	int i = d9__definition_find(event->schema, name);

	return i >= 0 && event->values[i].present ? &event->values[i] : NULL;
}

static uint64_t integer_of(const struct d9_value *value, uint64_t fallback)
{
	if (!value)
		return fallback;
	switch (value->type) {
	case D9_FIELD_I64:
		return value->u.i64 >= 0 ? (uint64_t)value->u.i64 : fallback;
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		return value->u.u64;
	case D9_FIELD_BOOL:
		return value->u.boolean;
	default:
		return fallback;
	}
}

uint64_t d9_event_u64(const struct d9_event *event, const char *name, uint64_t fallback)
{
	return integer_of(d9_event_field(event, name), fallback);
}

const struct d9_value *d9_event_known(const struct d9_event *event, unsigned k)
{
	int32_t i = k < D9__DEFINITION_KNOWN_MAX ? event->schema->known[k] : -1;

	return i >= 0 && event->values[i].present ? &event->values[i] : NULL;
}

uint64_t d9_event_known_u64(const struct d9_event *event, unsigned k, uint64_t fallback)
{
	return integer_of(d9_event_known(event, k), fallback);
}
