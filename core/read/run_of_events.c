/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/run_of_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "read/inner_calls.h"

#define EVENT_HEAD_LEN 6
#define BATCH_BYTES    8192 /* of one with few schemas, and a text or two */

static ssize_t read_range(void *context, void *buf, size_t len)
{
	struct d9__run_of_events *batch = context;
	uint64_t end = batch->ref->offset + batch->ref->len;
	uint64_t left = end - batch->read_at;
	ssize_t n;

	if (!left)
		return 0;
	n = d9__store_read_at(batch->store, batch->read_at, buf, len < left ? len : (size_t)left);
	if (n > 0)
		batch->read_at += (uint64_t)n;
	return n;
}

void d9__run_of_events_init(struct d9__run_of_events *batch, struct d9__definitions *schemas)
{
	*batch = (struct d9__run_of_events) { 0 };
	d9__segment_reader_init(&batch->reader, schemas, 0);
}

static int read_all(struct d9__run_of_events *batch)
{
	size_t want = (size_t)batch->ref->len;

	if (want > batch->capacity) {
		uint8_t *buffer = realloc(batch->buffer, want);

		if (!buffer)
			return -ENOMEM;
		batch->buffer = buffer;
		batch->capacity = want;
	}
	batch->bytes = batch->buffer;
	batch->len = 0;
	while (batch->len < want) {
		ssize_t n = read_range(batch, batch->buffer + batch->len, want - batch->len);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		batch->len += (size_t)n;
	}
	return 0;
}

static int reserve_index(struct d9__run_of_events *batch, size_t n)
{
	struct d9__index_entry *index;

	if (n <= batch->index_capacity)
		return 0;
	index = realloc(batch->index, n * sizeof(*index));
	if (!index)
		return -ENOMEM;
	batch->index = index;
	batch->index_capacity = n;
	return 0;
}

/* How many entries the index has. */
static uint64_t entries_of(const struct d9__batch_ref *ref)
{
	return ref->timed + ref->calls + ref->wakes;
}

/*
 * Calls that began at one time: the innermost one stands first, because it ended first.  Those that
 * ended at that time too have their end between.
 */
static void nest(struct d9__index_entry *index, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		if (!(index[i].offset & D9__INDEX_ENTERS))
			continue;
		while (end < n && index[end].offset & D9__INDEX_ENTERS &&
		       index[end].time_ns == index[i].time_ns)
			end++;
		for (size_t low = i, high = end - 1; low < high; low++, high--) {
			struct d9__index_entry swap = index[low];

			index[low] = index[high];
			index[high] = swap;
		}
	}
}

static void add_entry(struct d9__run_of_events *batch, uint64_t ns, uint64_t offset)
{
	batch->index[batch->n++] = (struct d9__index_entry) { .time_ns = ns, .offset = offset };
}

/* Add the moments before its own that |frame| tells of.  0 or -errno. */
static int add_earlier(struct d9__run_of_events *batch, const struct d9__frame *frame,
		       struct d9__poll_wakes *seen, uint64_t *calls)
{
	uint64_t offset = (uint64_t)(frame->start - batch->bytes), start_ns;
	/* There is room for one more than the first pass saw. */
	struct d9__placed_wake *placed = &batch->wakes[batch->n_wakes];
	int got = d9__decoder_wake(&batch->reader.decoder, frame, seen, &placed->wake);

	if (got == 1 && batch->n_wakes < batch->ref->wakes) {
		placed->offset = offset;
		add_entry(batch, placed->wake.ns, D9__INDEX_WAKE | batch->n_wakes++);
	}
	if (frame->schema->begins_earlier && d9__inner_call_start(frame, &start_ns) &&
	    (*calls)++ < batch->ref->calls)
		add_entry(batch, start_ns, D9__INDEX_ENTERS | offset);
	return got < 0 ? got : 0;
}

static int make_index(struct d9__run_of_events *batch)
{
	struct d9__cursor in = { batch->bytes, batch->bytes + batch->len, 0 };
	struct d9__index_entry *scratch = malloc(entries_of(batch->ref) * sizeof(*scratch));
	uint64_t timed = 0, calls = 0;
	struct d9__poll_wakes seen = { 0 };
	struct d9__frame frame;
	int got, err = 0;

	d9__decoder_reset(&batch->reader.decoder);
	batch->n = batch->i = batch->n_wakes = 0;
	if (!scratch ||
	    !d9__array_reserve(batch->wakes, &batch->wakes_capacity, 0, batch->ref->wakes + 1))
		err = -ENOMEM;
	if (!err && batch->ref->wakes)
		err = d9__told_wake_schema(batch->reader.decoder.schemas, &batch->wake_schema);
	while (!err && (got = d9__decoder_next(&batch->reader.decoder, &in, &frame)) == 1) {
		if (frame.kind != D9__FRAME_EVENT || frame.timestamp_ns == 0)
			continue;
		if (timed++ == batch->ref->timed)
			break; /* more than the first pass saw: the file has changed */
		frame.end = in.end; /* bytes behind it may be looked at, which is quicker */
		err = add_earlier(batch, &frame, &seen, &calls);
		add_entry(batch, frame.timestamp_ns, (uint64_t)(frame.start - batch->bytes));
	}
	d9__poll_wakes_release(&seen);
	if (!err && got == -ENOMEM)
		err = got;
	if (!err)
		d9__index_sort(batch->index, batch->n, scratch);
	if (batch->ref->calls)
		nest(batch->index, batch->n);
	free(scratch);
	return err;
}

uint64_t d9__batch_bytes(const struct d9__batch_ref *ref, bool in_memory, bool untimed)
{
	uint64_t window = in_memory ? 0 : ref->len, fixed = BATCH_BYTES + ref->pool_bytes;

	if (!untimed && !ref->sorted)
		return fixed + window + entries_of(ref) * sizeof(struct d9__index_entry) +
		       ref->wakes * (sizeof(struct d9__placed_wake) + sizeof(struct d9__poll_span));
	return fixed + (window < D9__WINDOW_BYTES ? window : D9__WINDOW_BYTES);
}

int d9__run_of_events_open(struct d9__run_of_events *batch, const struct d9__batch_ref *ref,
		   struct d9__store *store, bool untimed, uint64_t limit_bytes)
{
	uint64_t len = ref->len;
	const uint8_t *bytes = d9__store_bytes(store, ref->offset, &len);
	int err;

	batch->ref = ref;
	batch->store = store;
	batch->untimed = untimed;
	batch->enters = false;
	batch->wake = NULL;
	batch->read_at = ref->offset;
	batch->reader.decoder.limit_bytes = batch->reader.limit_bytes = limit_bytes;
	batch->indexed = !untimed && !ref->sorted;
	batch->quick = !untimed && ref->sorted;
	if (!batch->indexed) {
		if (bytes)
			d9__segment_reader_start_at(&batch->reader, bytes, (size_t)len);
		else
			d9__segment_reader_start(&batch->reader,
						 (struct d9__byte_source) { read_range, batch, ref->len });
		return 0;
	}
	err = reserve_index(batch, (size_t)entries_of(ref));
	batch->bytes = bytes;
	batch->len = (size_t)len;
	if (!err && !bytes)
		err = read_all(batch);
	return err ? err : make_index(batch);
}

/* The event at an offset that the decoder has passed: it has a time, and its schema is known. */
static int next_indexed(struct d9__run_of_events *batch)
{
	const struct d9__index_entry *entry = &batch->index[batch->i];
	const struct d9__placed_wake *placed = NULL;
	const uint8_t *start;
	uint64_t offset;

	if (batch->i >= batch->n)
		return 0;
	batch->i++;
	offset = entry->offset & ~D9__INDEX_ENTERS;
	if (offset & D9__INDEX_WAKE)
		placed = &batch->wakes[offset & ~D9__INDEX_WAKE];
	if (placed)
		offset = placed->offset;
	start = batch->bytes + offset;
	batch->enters = (entry->offset & D9__INDEX_ENTERS) != 0;
	batch->wake = placed ? &placed->wake : NULL;
	batch->frame = (struct d9__frame) {
		.kind = D9__FRAME_EVENT,
		.start = start,
		.end = batch->bytes + batch->len,
		.schema = placed ? batch->wake_schema
				 : d9__decoder_schema(&batch->reader.decoder,
						      d9__wire_get_u16(start + 1)),
		.payload = start + EVENT_HEAD_LEN,
		.timestamp_ns = entry->time_ns,
	};
	batch->offset = batch->ref->offset + offset;
	return 1;
}

int d9__run_of_events_next_slow(struct d9__run_of_events *batch)
{
	struct d9__frame *frame = &batch->frame;
	int got;

	if (batch->indexed)
		return next_indexed(batch);
	do
		got = d9__segment_reader_next(&batch->reader, frame);
	while (got == 1 && (frame->kind != D9__FRAME_EVENT ||
			    (frame->timestamp_ns == 0) != batch->untimed));
	if (got == 1)
		batch->offset =
			batch->ref->offset + d9__segment_reader_offset(&batch->reader, frame);
	return got;
}

/* Of one whose bytes are all there. */
static inline bool is_quick(const struct d9__run_of_events *batch)
{
	const struct d9__frame *frame = &batch->frame;

	return batch->indexed && frame->schema->quick_bytes &&
	       (size_t)(frame->end - frame->payload) >=
		       frame->schema->quick_bytes + D9__VARINT_SLACK;
}

int d9__run_of_events_values_slow(struct d9__run_of_events *batch, struct d9__values *values)
{
	struct d9__frame ignored;
	int err;

	if (batch->wake)
		return d9__told_wake_values(batch->wake, values);
	if (!batch->peeked) {
		err = is_quick(batch) ? d9__values_quick(values, &batch->reader.decoder,
							 &batch->frame)
				      : d9__values_build(values, &batch->reader.decoder,
							 &batch->frame);
		if (!err)
			d9__told_wake_settle(batch->frame.schema, values);
		return err;
	}
	/* Once more, to know why not. */
	err = d9__values_quick(values, &batch->reader.decoder, &batch->frame);
	if (!err)
		d9__segment_reader_take(&batch->reader, &batch->frame);
	/* Changed since the first pass: the reader stops there as well. */
	if (err == -EBADMSG && d9__segment_reader_next(&batch->reader, &ignored) == -ENOMEM)
		err = -ENOMEM;
	return err;
}

bool d9__batch_is_whole(const struct d9__run_of_events *batch)
{
	if (batch->indexed)
		return batch->n == entries_of(batch->ref);
	return batch->reader.window_at + batch->reader.pos == batch->ref->len;
}

void d9__run_of_events_release(struct d9__run_of_events *batch)
{
	d9__segment_reader_release(&batch->reader);
	free(batch->buffer);
	free(batch->index);
	free(batch->wakes);
	*batch = (struct d9__run_of_events) { 0 };
}
