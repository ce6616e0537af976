/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time order takes two passes.  The first walks every segment and notes its batches: where they
 * are, and from when to when.  The second opens a batch when the merged time reaches its
 * beginning, and closes it behind its last event; so what is in memory is what overlaps.
 *
 *   always          64 bytes per batch and the distinct schemas
 *   an open batch   in time order: a window of at most 256 KiB, or its largest frame if that is
 *                   larger.  Not in order (a wake with the time at which it was due): the whole
 *                   batch and 16 bytes per event
 *   and its pools, as large as the first pass found them; an unpacked zstd frame (8 MiB at the most) or two
 *   compressed      what fits KEEP_BYTES, over all segments, is unpacked once and kept; its
 *                   batches have no window
 *
 * The trace claims how much overlaps: no more than the memory limit and OPEN_BYTES is kept of it.
 *
 * Larger compressed segments are unpacked again, zstd frame by frame if the frames are small as
 * the recorder writes them, else into an unlinked temporary file for as long as their batches
 * last.  A pipe goes into such a file as it is.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/time_order.h"

#define KEEP_BYTES ((uint64_t)64 << 20)
#define OPEN_BYTES ((uint64_t)64 << 20) /* that open batches may take beyond the limit */
#define REUSED_BYTES ((uint64_t)1 << 20)

static uint64_t saturated_sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int prepare_segment(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	int err = d9__input_spool(&segment->input);

	if (err)
		return d9__reader_fail(reader, err, "%s: cannot be put aside: %s",
				       segment->input.path, strerror(-err));
	if (!segment->info.stored_bytes)
		segment->info.stored_bytes = segment->input.size_bytes;
	segment->limit_bytes = d9__reader_limit(reader, &segment->input);
	segment->batches_before = reader->bounded ? 0 : reader->batches.n;
	if (!reader->bounded || !reader->open_limit)
		reader->open_limit = saturated_sum(reader->open_limit ? reader->open_limit : OPEN_BYTES,
						   segment->limit_bytes);
	return 0;
}

static int compare_starts(const void *a, const void *b, void *context)
{
	const struct d9__batch_ref *refs = context;
	size_t i = *(const size_t *)a, j = *(const size_t *)b;

	if (refs[i].begin_ns != refs[j].begin_ns)
		return refs[i].begin_ns < refs[j].begin_ns ? -1 : 1;
	return i < j ? -1 : i > j;
}

static void note_next_start(struct d9_reader *reader)
{
	reader->next_start_ns =
		reader->next_start < reader->n_starts
			? reader->batches.refs[reader->starts[reader->next_start]].begin_ns
			: UINT64_MAX;
}

static int sort_starts(struct d9_reader *reader)
{
	size_t n = reader->batches.n;

	reader->starts = malloc((n + 1) * sizeof(*reader->starts));
	if (!reader->starts)
		return d9__reader_out_of_memory(reader);
	for (size_t i = 0; i < n; i++) {
		if (reader->batches.refs[i].timed)
			reader->starts[reader->n_starts++] = i;
		reader->events += reader->batches.refs[i].timed + reader->batches.refs[i].untimed +
				  reader->batches.refs[i].calls + reader->batches.refs[i].wakes;
	}
	if (reader->n_starts)
		qsort_r(reader->starts, reader->n_starts, sizeof(*reader->starts), compare_starts,
			reader->batches.refs);
	note_next_start(reader);
	return 0;
}

int d9__time_order_begin(struct d9_reader *reader)
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
		reader->schemas.limit_bytes =
			(reader->bounded ? 0 : reader->schemas.bytes) + segment->limit_bytes;
		err = d9__trace_segment_scan(segment, &reader->schemas, &reader->batches, &budget,
					     reader->unpacked_left);
		d9__reader_unpacked(reader, segment->info.unpacked_bytes);
		if (err)
			return d9__reader_fail(reader, err, "%s: %s", segment->input.path,
					       strerror(-err));
		if (i >= D9__FILES_OPEN_MAX)
			d9__input_close(&segment->input);
	}
	reader->schemas.limit_bytes = 0;
	return sort_starts(reader);
}

/* Whether |bytes| more may be taken by batches and stores that are open at the same time. */
static bool may_open(const struct d9_reader *reader, uint64_t bytes)
{
	return reader->open_bytes <= reader->open_limit && bytes <= reader->open_limit - reader->open_bytes;
}

/* Make the bytes of |segment| readable at any offset: through a file, if its frames would take too much memory. */
static int use_store(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	int err = 0;

	if (segment->store.form == D9__STORE_CLOSED) {
		uint64_t bytes = segment->kept ? 0 : d9__store_bytes_of_frames(segment->frames, segment->n_frames);

		segment->store.bytes = segment->kept;
		segment->store.len = segment->kept_len;
		segment->store.frames = segment->frames;
		segment->store.n_frames = may_open(reader, bytes) ? segment->n_frames : 0;
		segment->store_bytes = segment->store.n_frames ? bytes : 0;
		reader->open_bytes += segment->store_bytes;
		err = d9__store_open(&segment->store, &segment->input, segment->kind);
	}
	if (!err)
		segment->open_batches++;
	return err;
}

static void close_store(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	d9__store_close(&segment->store);
	reader->open_bytes -= segment->store_bytes;
	segment->store_bytes = 0;
}

/* A batch is done with; behind the last one of the segment, so is what is unpacked. */
static void leave_store(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	if (--segment->open_batches || segment->todo)
		return;
	close_store(reader, segment);
	free(segment->kept);
	segment->kept = NULL;
}

static void free_batch(struct d9__run_of_events *batch)
{
	d9__run_of_events_release(batch);
	free(batch);
}

static void put_batch(struct d9_reader *reader, struct d9__run_of_events *batch)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an item of the merge has a batch */
	struct d9__trace_segment *segment = reader->segments[batch->ref->segment];

	reader->open_bytes -= batch->bytes_charged;
	leave_store(reader, segment);
	/* Do not keep a large one for the next batch, which may be small and stay open for long. */
	if (batch->bytes_charged > REUSED_BYTES) {
		free_batch(batch);
		return;
	}
	batch->next = reader->free_batches;
	reader->free_batches = batch;
}

static struct d9__run_of_events *get_batch(struct d9_reader *reader)
{
	struct d9__run_of_events *batch = reader->free_batches;

	if (batch) {
		reader->free_batches = batch->next;
		return batch;
	}
	batch = malloc(sizeof(*batch));
	if (batch)
		d9__run_of_events_init(batch, &reader->schemas);
	return batch;
}

/* The bytes of |ref| can no longer be had: the segment's damage.  0 or -ENOMEM. */
static int lose(struct d9_reader *reader, const struct d9__batch_ref *ref, int err)
{
	struct d9__trace_segment *segment = reader->segments[ref->segment];

	if (err == -ENOMEM)
		return d9__reader_out_of_memory(reader);
	/* The first loss explains those that follow. */
	if (segment->info.err && segment->info.err != -ENODATA)
		return 0;
	err = d9__trace_segment_blame(segment, err, ref->offset,
				      err == -ESTALE ? "the file has changed"
				      : err == -EFBIG ? "batches that overlap in time need more memory than this may"
						      : strerror(-err));
	return err ? d9__reader_out_of_memory(reader) : 0;
}

/* |batch| gives no more events: |got| 0, or -errno.  0 or -ENOMEM. */
static int end_batch(struct d9_reader *reader, struct d9__run_of_events *batch, int got)
{
	const struct d9__batch_ref *ref = batch->ref;

	if (!got && !d9__batch_is_whole(batch))
		got = -ESTALE;
	put_batch(reader, batch);
	return got ? lose(reader, ref, got) : 0;
}

/*
 * Open |ref|.  1; 0 if its bytes can no longer be had, which is then the segment's damage;
 * -ENOMEM.
 */
static int open_batch(struct d9_reader *reader, const struct d9__batch_ref *ref, bool untimed,
		      struct d9__run_of_events **out)
{
	struct d9__trace_segment *segment = reader->segments[ref->segment];
	uint64_t bytes = d9__batch_bytes(ref, segment->kept != NULL, untimed);
	struct d9__run_of_events *batch;
	int err = may_open(reader, bytes) ? use_store(reader, segment) : -EFBIG;

	if (err)
		return lose(reader, ref, err);
	batch = get_batch(reader);
	if (!batch)
		return d9__reader_out_of_memory(reader);
	batch->bytes_charged = bytes;
	reader->open_bytes += bytes;
	err = d9__run_of_events_open(batch, ref, &segment->store, untimed, segment->limit_bytes);
	if (!err) {
		*out = batch;
		return 1;
	}
	put_batch(reader, batch);
	return lose(reader, ref, err);
}

/*
 * True if the trace has events of the time when the call began that |batch| stands at.  If not, it
 * was open where the segment begins and nothing before is known: it is cut, as all calls are there.
 */
static bool is_in_trace(const struct d9_reader *reader, const struct d9__run_of_events *batch)
{
	uint64_t ns = batch->frame.timestamp_ns;

	if (ns >= reader->segments[batch->ref->segment]->info.first_ns)
		return true;
	for (size_t i = 0; i < reader->n_segments; i++)
		if (reader->segments[i]->info.first_ns &&
		    ns >= reader->segments[i]->info.first_ns &&
		    ns <= reader->segments[i]->info.last_ns)
			return true;
	return false;
}

/* The event that |batch| stands at.  1, 0 if its bytes have changed, -ENOMEM. */
static inline int deliver(struct d9_reader *reader, struct d9__run_of_events *batch,
			  const struct d9_event **out)
{
	int err = d9__run_of_events_values(batch, &reader->values);

	if (__builtin_expect(err, 0))
		return lose(reader, batch->ref, err == -ENOMEM ? err : -ESTALE);
	return d9__reader_deliver(reader, reader->segments[batch->ref->segment], &batch->frame,
				  batch->offset, out);
}

/* The event that |batch| stands at, in its two parts if it is an inner call.  As deliver(). */
static int deliver_timed(struct d9_reader *reader, struct d9__run_of_events *batch,
			 const struct d9_event **out)
{
	bool begins_earlier = batch->indexed && batch->frame.schema->begins_earlier;
	uint64_t start_ns;
	int got;

	if (__builtin_expect(begins_earlier && batch->enters && !is_in_trace(reader, batch), 0)) {
		reader->delivered++;
		return 0;
	}
	got = deliver(reader, batch, out);
	if (got != 1 || !begins_earlier || reader->event->kind != D9_EVENT_SPAN_CALL ||
	    (!batch->enters && !d9__inner_call_start(&batch->frame, &start_ns)))
		return got;
	if (d9__inner_calls_tell(&reader->calls, &reader->schemas, batch->enters, reader->event))
		return d9__reader_out_of_memory(reader);
	return 1;
}

/* Behind the last untimed batch of |segment|: what is unpacked of it can wait for its time. */
static void rest_store(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	if (!segment->open_batches)
		close_store(reader, segment);
}

/* The next batch with events without a time, in file order: |reader->untimed|.  1, 0 no more, -ENOMEM. */
static int open_untimed(struct d9_reader *reader)
{
	const struct d9__batch_ref *refs = reader->batches.refs;
	int got = 0;

	while (!got && reader->next_untimed < reader->batches.n) {
		size_t at = reader->next_untimed++;

		if (at && refs[at].segment != refs[at - 1].segment)
			rest_store(reader, reader->segments[refs[at - 1].segment]);
		if (refs[at].untimed)
			got = open_batch(reader, &refs[at], true, &reader->untimed);
	}
	if (!got && reader->batches.n)
		rest_store(reader, reader->segments[refs[reader->batches.n - 1].segment]);
	return got;
}

/* Events without a time, and with time 0, of all batches in file order.  1, 0 no more. */
static int next_untimed(struct d9_reader *reader, const struct d9_event **out)
{
	for (;;) {
		struct d9__run_of_events *batch = reader->untimed;
		int got = batch ? d9__run_of_events_next(batch) : open_untimed(reader);

		if (!batch && got != 1)
			return got;
		if (!batch)
			continue;
		if (got == 1)
			got = deliver(reader, batch, out);
		if (got == 1)
			return 1;
		reader->untimed = NULL;
		got = end_batch(reader, batch, got);
		if (got)
			return got;
	}
}

/* The earliest open batch has no more events, or its next one has a later time. */
static int advance(struct d9_reader *reader, struct d9__merge_item *top)
{
	struct d9__run_of_events *batch = top->run;
	int got = d9__run_of_events_next(batch);

	if (got == 1) {
		top->time_ns = batch->frame.timestamp_ns;
		d9__merge_settle(&reader->merge);
		return 0;
	}
	d9__merge_pop(&reader->merge);
	return end_batch(reader, batch, got);
}

/* Open what begins before, or when, the next event happens. */
static int open_due(struct d9_reader *reader)
{
	while (reader->next_start < reader->n_starts) {
		size_t at = reader->starts[reader->next_start];
		const struct d9__batch_ref *ref = &reader->batches.refs[at];
		struct d9__merge_item *top = d9__merge_top(&reader->merge);
		struct d9__run_of_events *batch = NULL;
		int got;

		if (top && ref->begin_ns > top->time_ns)
			return 0;
		reader->next_start++;
		note_next_start(reader);
		reader->segments[ref->segment]->todo--;
		got = open_batch(reader, ref, false, &batch);
		if (got < 0)
			return got;
		if (!batch)
			continue;
		got = d9__run_of_events_next(batch);
		if (got == 1 && d9__merge_push(&reader->merge,
					       (struct d9__merge_item) { batch->frame.timestamp_ns,
									 at, batch }))
			got = -ENOMEM;
		if (got != 1 && end_batch(reader, batch, got))
			return -ENOMEM;
	}
	return 0;
}

int d9__time_order_next(struct d9_reader *reader, const struct d9_event **out)
{
	int got = reader->next_untimed < reader->batches.n || reader->untimed
			  ? next_untimed(reader, out)
			  : 0;

	if (got == 0 && reader->calls.close &&
	    d9__inner_calls_close(&reader->calls, reader->event)) {
		*out = reader->event;
		return 1;
	}
	while (got == 0) {
		struct d9__merge_item *top = d9__merge_top(&reader->merge);

		/* Advancing moves the bytes of the last event: not before the next one is wanted. */
		if (reader->owed && top) {
			reader->owed = false;
			got = advance(reader, top);
			if (got)
				return got;
			top = d9__merge_top(&reader->merge);
		}
		if (!top || top->time_ns >= reader->next_start_ns) {
			got = open_due(reader);
			if (got)
				return got;
			top = d9__merge_top(&reader->merge);
			if (!top)
				return 0;
		}
		reader->owed = true;
		got = deliver_timed(reader, top->run, out);
	}
	return got;
}

void d9__time_order_release(struct d9_reader *reader)
{
	for (size_t i = 0; i < reader->merge.n; i++)
		free_batch(reader->merge.items[i].run);
	if (reader->untimed)
		free_batch(reader->untimed);
	while (reader->free_batches) {
		struct d9__run_of_events *batch = reader->free_batches;

		reader->free_batches = batch->next;
		free_batch(batch);
	}
	free(reader->batches.refs);
	free(reader->starts);
	d9__merge_release(&reader->merge);
}
