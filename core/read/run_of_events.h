/* SPDX-License-Identifier: Apache-2.0 */
/* Run of events: the events of one batch in time order, while they are being merged. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/values.h"
#include "read/merge.h"
#include "read/segment_reader.h"
#include "read/store.h"
#include "read/told_wakes.h"

/* The result of the first pass over a batch. */
struct d9__batch_ref {
	uint32_t segment;
	bool sorted;             /* the events with a time other than 0 are in order */
	uint64_t offset, len;    /* in the unpacked segment */
	uint64_t first_ns, last_ns; /* earliest and latest time other than 0 */
	uint64_t begin_ns; /* |first_ns|, or when the first of |calls| began, if that is earlier */
	uint64_t timed, untimed; /* events with a time other than 0; all others */
	uint64_t calls; /* of |timed|, those that are told at their beginning too: see inner_calls.h
			 */
	uint64_t wakes; /* that polls tell, besides */
	uint64_t pool_bytes;     /* that its texts, stacks and types take while it is open */
};

struct d9__run_of_events {
	const struct d9__batch_ref *ref; /* borrowed while open */
	struct d9__store *store;         /* borrowed while open */
	bool untimed;                    /* deliver events without a time, or those with one */
	uint64_t read_at;                /* in the unpacked segment */
	struct d9__segment_reader reader; /* |sorted|: as it comes */
	/* Not |sorted|: all of it, in |buffer| unless the store has it in memory, and where its events are. */
	const uint8_t *bytes;
	size_t len;
	uint8_t *buffer;
	size_t capacity;
	struct d9__index_entry *index;
	size_t index_capacity, n, i;
	bool indexed;
	bool quick; /* deliver events with a time as they come */
	/* Wakes that polls tell, with their offsets in the batch; |index| refers to them. */
	struct d9__placed_wake {
		struct d9__poll_wake wake;
		uint64_t offset;
	} * wakes;
	size_t wakes_capacity, n_wakes;
	const struct d9_schema *wake_schema;
	/* The next event. */
	struct d9__frame frame;
	bool enters;	 /* it tells the beginning of a call, at that moment */
	const struct d9__poll_wake *wake; /* it is this one; or NULL */
	uint64_t offset; /* in the unpacked segment */
	bool peeked;     /* not passed yet */
	struct d9__run_of_events *next; /* these two are the user's */
	uint64_t bytes_charged;
};

void d9__run_of_events_init(struct d9__run_of_events *batch, struct d9__definitions *schemas);

/*
 * Return about how many bytes |ref| takes while it is open; |in_memory|: its own bytes are there
 * already.
 */
uint64_t d9__batch_bytes(const struct d9__batch_ref *ref, bool in_memory, bool untimed);

/* Begin with |ref|.  |untimed|: only events without a time or with time 0, in file order. */
int d9__run_of_events_open(struct d9__run_of_events *batch, const struct d9__batch_ref *ref,
		   struct d9__store *store, bool untimed, uint64_t limit_bytes);

/* d9__run_of_events_next() and d9__run_of_events_values() where the quick way does not lead on. */
int d9__run_of_events_next_slow(struct d9__run_of_events *batch);
int d9__run_of_events_values_slow(struct d9__run_of_events *batch, struct d9__values *values);

/*
 * Go to the next event: |frame| without its end, and |offset|.  1, 0 at the end or where the bytes are
 * no longer those of the first pass, -errno.
 */
static inline int d9__run_of_events_next(struct d9__run_of_events *batch)
{
	struct d9__frame *frame = &batch->frame;

	batch->peeked = batch->quick && d9__segment_reader_peek(&batch->reader, frame) &&
			frame->timestamp_ns;
	if (__builtin_expect(!batch->peeked, 0))
		return d9__run_of_events_next_slow(batch);
	batch->offset = batch->ref->offset + d9__segment_reader_offset(&batch->reader, frame);
	return 1;
}

/*
 * Decode the fields of the event, once, before going on.  0, -ENOMEM; -EBADMSG if its bytes are no
 * longer those of the first pass.
 */
static inline int d9__run_of_events_values(struct d9__run_of_events *batch, struct d9__values *values)
{
	struct d9__frame *frame = &batch->frame;

	if (!batch->peeked || d9__values_quick(values, &batch->reader.decoder, frame))
		return d9__run_of_events_values_slow(batch, values);
	d9__segment_reader_take(&batch->reader, frame);
	return 0;
}

/* Behind the last event: whether the batch was still as long as in the first pass. */
bool d9__batch_is_whole(const struct d9__run_of_events *batch);

void d9__run_of_events_release(struct d9__run_of_events *batch);
