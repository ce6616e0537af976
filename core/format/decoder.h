/* SPDX-License-Identifier: Apache-2.0 */
/* Decoder: bytes -> frames -> values; resumable, trusts no length. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "format/cursor.h"
#include "format/definition.h"
#include "format/pool.h"
#include "format/poll_wakes.h"
#include "format/varint.h"

#define D9__DECODER_DEPTH_MAX 64 /* lists and maps inside one another */

/* The definitions of a batch so far.  Frames in, no memory of the frames themselves. */
struct d9__decoder {
	struct d9__definitions *schemas; /* borrowed; may be shared by many decoders */
	uint64_t limit_bytes;           /* of memory for one batch's pools; 0: none */

	bool started;         /* a header was read */
	bool tells_wakes;     /* polls of this batch may: there is a PollStart that does */
	uint64_t base_ns;     /* time of the latest event, or of the latest reset */
	struct d9__pool types; /* type id -> schema */
	struct d9__pool strings, stacks;
	struct d9__arena arena; /* their bytes */

	uint64_t missing;  /* after 0: at least so many bytes more make the frame complete */
	char message[160]; /* after an error: one line without the offset */
};

/* Memory that what the batch has defined so far takes, about. */
static inline uint64_t d9__decoder_pool_bytes(const struct d9__decoder *decoder)
{
	uint64_t used = (uint64_t)decoder->types.used + decoder->strings.used + decoder->stacks.used;

	/* Tables are half full at the most. */
	return decoder->arena.given_bytes + 4 * used * sizeof(struct d9__pool_entry);
}

enum d9__frame_kind {
	D9__FRAME_HEADER,
	D9__FRAME_SCHEMA,
	D9__FRAME_EVENT,
	D9__FRAME_STRING_POOL,
	D9__FRAME_STACK_POOL,
	D9__FRAME_TIME_RESET,
	D9__FRAME_ANNOTATIONS,
};

/* One frame.  Pointers are borrowed from the input. */
struct d9__frame {
	enum d9__frame_kind kind;
	const uint8_t *start; /* of the frame */
	const uint8_t *end;
	/* events and schemas: */
	const struct d9_schema *schema; /* lives as long as its set */
	/* events: */
	const uint8_t *payload; /* the fields; they end with the frame */
	uint64_t timestamp_ns;  /* 0 if the schema has no time */
};

/* Times of a row of events. */
struct d9__times {
	uint64_t timed, untimed;    /* events with a time other than 0; all others */
	uint64_t first_ns, last_ns; /* the earliest and latest time other than 0; 0: none yet */
	uint64_t newest_ns;         /* of the last such event */
	bool sorted;                /* none is earlier than the one before it; start with true */
	/* Wakes that polls tell, not among |timed|, but in |first_ns|. */
	struct d9__poll_wakes *seen; /* borrowed; NULL: they are not looked for */
	uint64_t wakes;
	bool out_of_memory;
};

void d9__decoder_init(struct d9__decoder *decoder, struct d9__definitions *schemas,
		      uint64_t limit_bytes);

/* As after init, but memory is kept for another stream. */
void d9__decoder_reset(struct d9__decoder *decoder);

void d9__decoder_release(struct d9__decoder *decoder);

/*
 * Decode one frame and move |in| behind it.
 *
 * 1; 0 if |in| ends before the frame does, also at its end proper: call again from the same
 * place with more bytes, the decoder is as if it had not been called; -EBADMSG malformed;
 * -EPROTONOSUPPORT another version; -EFBIG over the memory limit; -ENOMEM.  |message| explains.
 */
int d9__decoder_next(struct d9__decoder *decoder, struct d9__cursor *in, struct d9__frame *out);

/* Tag, type id and the distance of its time. */
#define D9__EVENT_HEAD_LEN 6

/* The schema of the event that comes next and its time; NULL if it is not one for the quick way. */
static inline const struct d9_schema *d9__decoder_quick(const struct d9__decoder *decoder,
							const struct d9__cursor *in, uint64_t *time_ns)
{
	const struct d9__pool_entry *type;
	const struct d9_schema *schema;

	if (d9__cursor_left(in) < D9__EVENT_HEAD_LEN || *in->p != D9__WIRE_EVENT)
		return NULL;
	type = d9__pool_find(&decoder->types, d9__wire_get_u16(in->p + 1));
	if (!type)
		return NULL;
	schema = type->data;
	if (!schema->quick_bytes || !schema->has_timestamp ||
	    d9__cursor_left(in) < D9__EVENT_HEAD_LEN + schema->quick_bytes + D9__VARINT_SLACK ||
	    __builtin_add_overflow(decoder->base_ns, d9__wire_get_u24(in->p + 3), time_ns))
		return NULL;
	return schema;
}

/*
 * Whether the next frame is an event for d9__values_quick(): then |*out| has its time and schema, but
 * no end, and nothing moved.
 */
static inline bool d9__decoder_peek(const struct d9__decoder *decoder, const struct d9__cursor *in,
				    struct d9__frame *out)
{
	const struct d9_schema *schema;

	schema = decoder->started ? d9__decoder_quick(decoder, in, &out->timestamp_ns) : NULL;
	out->kind = D9__FRAME_EVENT;
	out->schema = schema;
	out->start = in->p;
	out->payload = in->p + D9__EVENT_HEAD_LEN;
	return schema != NULL;
}

/*
 * Pass as many events as come one behind another, noting their times only, and move |in| behind
 * them: many times quicker than d9__decoder_next(), which has to go on with what stops it, such as
 * one of a schema with |begins_earlier|.
 */
void d9__decoder_pass_events(struct d9__decoder *decoder, struct d9__cursor *in,
			     struct d9__times *times);

/* Note the wake that |frame|, whose time was added, tells, or what others may refer to. */
void d9__times_see(struct d9__times *times, const struct d9__decoder *decoder,
		   const struct d9__frame *frame);

/*
 * Take |frame| of |decoder|, if it matters for wakes that polls tell: |seen| begins anew with each
 * batch.  1: its poll tells |*wake|; 0; -ENOMEM.
 */
static inline int d9__decoder_wake(const struct d9__decoder *decoder, const struct d9__frame *frame,
				   struct d9__poll_wakes *seen, struct d9__poll_wake *wake)
{
	if (frame->kind == D9__FRAME_HEADER)
		d9__poll_wakes_reset(seen);
	if (frame->kind != D9__FRAME_EVENT || !decoder->tells_wakes ||
	    !frame->schema->tells_wakes || !frame->timestamp_ns)
		return 0;
	return d9__poll_wakes_see(seen, frame->schema,
				  (struct d9__cursor) { frame->payload, frame->end, 0 },
				  frame->timestamp_ns, wake);
}

/* Note the time of one event. */
static inline void d9__times_add(struct d9__times *times, uint64_t time_ns)
{
	if (__builtin_expect(!time_ns, 0)) {
		times->untimed++;
		return;
	}
	times->sorted &= time_ns >= times->newest_ns;
	times->newest_ns = time_ns;
	if (!times->timed++ || time_ns < times->first_ns)
		times->first_ns = time_ns;
	if (time_ns > times->last_ns)
		times->last_ns = time_ns;
}

/*
 * The schema of the event frame at |p|, which d9__decoder_next() has passed in this batch: for
 * readers that come back to it.
 */
const struct d9_schema *d9__decoder_schema(const struct d9__decoder *decoder, uint16_t type_id);
