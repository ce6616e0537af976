/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "export/old_spans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "base/array.h"
#include "format/encoder.h"
#include "format/schema.h"
#include "read/inner_calls.h"

/* The ids of calls that have none: exact in a double, and above those that a recorder counts up. */
#define OWN_ID (UINT64_C(1) << 52)

#define EVENTS_BYTES                                                                               \
	(3 * (D9__WIRE_TIME_RESET_LEN + D9__WIRE_EVENT_HEAD_LEN + 8) + 16 * D9__VARINT_MAX + 64)

struct old_type {
	uint16_t enter, exit, close; /* ids */
};

static void forget_batch(struct d9__old_spans *spans)
{
	void *type;

	for (size_t place = 0; (place = d9__table_next(&spans->types, place, &type));)
		free(type);
	d9__table_release(&spans->types);
	spans->n_ids = 0;
}

static uint8_t *room(struct d9__old_spans *spans, size_t len)
{
	return d9__array_reserve(spans->bytes, &spans->capacity, 0, len) ? spans->bytes : NULL;
}

/* ---- definitions ---- */

#define V(n)                                                                                       \
	{                                                                                          \
		(n), D9__FIELD_VARINT, NULL, NULL                                                  \
	}
#define NAME(n)                                                                                    \
	{                                                                                          \
		(n), D9__FIELD_POOLED_STRING, NULL, NULL                                           \
	}
#define MAYBE(n, type)                                                                             \
	{                                                                                          \
		(n), (type) | D9__WIRE_OPTIONAL, NULL, NULL                                        \
	}

static const struct d9__field enter_fields[] = {
	V("worker_id"),	   V("span_id"),	  MAYBE("parent_span_id", D9__FIELD_VARINT),
	NAME("span_name"), V("span_instance_id"), { "tid", D9__FIELD_U32, NULL, NULL },
};
static const struct d9__field exit_fields[] = {
	V("worker_id"),
	V("span_id"),
	NAME("span_name"),
	V("span_instance_id"),
	{ "tid", D9__FIELD_U32, NULL, NULL },
};
static const struct d9__field close_fields[] = {
	V("span_id"),
	V("span_instance_id"),
	V("start_timestamp_ns"),
	NAME("span_name"),
	MAYBE("first_enter_timestamp_ns", D9__FIELD_VARINT),
	{ "active_ns", D9__FIELD_VARINT, "ns", NULL },
	MAYBE("target", D9__FIELD_POOLED_STRING),
	MAYBE("file", D9__FIELD_POOLED_STRING),
	MAYBE("line", D9__FIELD_VARINT),
	MAYBE("level", D9__FIELD_POOLED_STRING),
	MAYBE("parent_span_instance_id", D9__FIELD_VARINT),
	{ "attributes", D9__FIELD_STRING_MAP, NULL, NULL },
	MAYBE("unbalanced_enters", D9__FIELD_VARINT),
};

/* True if |schema| is the recorder's, whose fields are where event() looks for them. */
static bool is_ours(const struct d9_schema *schema)
{
	return schema && schema->kind == D9_EVENT_SPAN_CALL && schema->has_timestamp &&
	       schema->n_fields == 4 && schema->known[D9_SPAN_CALL_WORKER_ID] == 0 &&
	       schema->known[D9_SPAN_CALL_SPAN_NAME] == 1 &&
	       schema->known[D9_SPAN_CALL_DURATION_NS] == 2 &&
	       schema->known[D9_SPAN_CALL_SPAN_INSTANCE_ID] == 3 &&
	       schema->fields[0].type == D9_FIELD_VARINT && !schema->fields[0].optional &&
	       schema->fields[1].type == D9_FIELD_POOLED_STRING && !schema->fields[1].optional &&
	       schema->fields[2].type == D9_FIELD_VARINT && !schema->fields[2].optional &&
	       schema->fields[3].type == D9_FIELD_VARINT && schema->fields[3].optional;
}

/* Three schemas for that of |frame|. */
static int definitions(struct d9__old_spans *spans, const struct d9__frame *frame, size_t *len)
{
	const char *library = frame->schema->name + strlen("SpanCall:");
	uint16_t id = d9__wire_get_u16(frame->start + 1);
	struct old_type *type = calloc(1, sizeof(*type));
	size_t name_len = strlen(frame->schema->name) + 8;
	char *enter = malloc(name_len), *exit = malloc(name_len);
	uint8_t *p = room(spans, 2 * name_len + 1024);
	int err = -ENOMEM;

	if (type && enter && exit && p && !d9__table_add(&spans->types, id, type)) {
		snprintf(enter, name_len, "SpanEnter:%s", library);
		snprintf(exit, name_len, "SpanExit:%s", library);
		type->enter = (uint16_t)(UINT16_MAX - spans->n_ids++);
		type->exit = (uint16_t)(UINT16_MAX - spans->n_ids++);
		type->close = (uint16_t)(UINT16_MAX - spans->n_ids++);
		p = d9__schema_encode(p, &(struct d9__schema) { enter, enter_fields, 6, NULL, 0 },
				      type->enter);
		p = d9__schema_encode(p, &(struct d9__schema) { exit, exit_fields, 5, NULL, 0 },
				      type->exit);
		p = d9__schema_encode(
			p, &(struct d9__schema) { "SpanCloseEvent", close_fields, 13, NULL, 0 },
			type->close);
		*len = (size_t)(p - spans->bytes);
		type = NULL;
		err = 0;
	}
	free(type);
	free(enter);
	free(exit);
	return err;
}

/* ---- events ---- */

/* A call, as far as events of the old kind tell it. */
struct call {
	uint64_t worker, id, start_ns, end_ns;
	uint32_t name; /* in the batch's pool */
	uint32_t tid;
};

static uint8_t *put_head(uint8_t *p, uint16_t type, uint64_t ns)
{
	return d9__wire_put_event_head(d9__wire_put_time_reset(p, ns), type, 0);
}

static uint8_t *put_stay(uint8_t *p, const struct call *call, bool enters)
{
	p = d9__varint_put(d9__varint_put(p, call->worker), call->id);
	if (enters)
		*p++ = false; /* parent_span_id */
	p = d9__varint_put(d9__wire_put_u32(p, call->name), call->id);
	return d9__wire_put_u32(p, call->tid);
}

static uint8_t *put_close(uint8_t *p, const struct call *call)
{
	p = d9__varint_put(d9__varint_put(p, call->id), call->id);
	p = d9__wire_put_u32(d9__varint_put(p, call->start_ns), call->name);
	*p++ = true;
	p = d9__varint_put(d9__varint_put(p, call->start_ns), call->end_ns - call->start_ns);
	for (unsigned i = 0; i < 5; i++) /* target to parent_span_instance_id */
		*p++ = false;
	p = d9__wire_put_u32(p, 0); /* attributes */
	*p++ = false;		    /* unbalanced_enters */
	return p;
}

static int events(struct d9__old_spans *spans, const struct d9__frame *frame,
		  const struct old_type *type, size_t *len)
{
	struct d9__cursor in = { frame->payload, frame->end, 0 };
	struct call call = { .end_ns = frame->timestamp_ns, .start_ns = frame->timestamp_ns };
	uint8_t has_id = 0, *p = room(spans, EVENTS_BYTES);
	uint64_t length = 0;
	bool whole;

	if (!p)
		return -ENOMEM;
	whole = d9__cursor_varint(&in, &call.worker) == 1 && d9__cursor_u32(&in, &call.name) &&
		d9__cursor_varint(&in, &length) == 1 && d9__cursor_u8(&in, &has_id);
	if (!whole || (has_id && d9__cursor_varint(&in, &call.id) != 1))
		return -EBADMSG;
	if (length < call.end_ns)
		call.start_ns -= length;
	if (!call.id)
		call.id = OWN_ID + spans->n_calls;
	spans->n_calls++;
	call.tid = (uint32_t)(uintptr_t)d9__table_find(&spans->threads, call.worker);
	p = put_stay(put_head(p, type->enter, call.start_ns), &call, true);
	p = put_stay(put_head(p, type->exit, call.end_ns), &call, false);
	p = put_close(put_head(p, type->close, call.end_ns), &call);
	*len = (size_t)(p - spans->bytes);
	return 0;
}

/* A worker's thread is told when it waits. */
static int learn_thread(struct d9__old_spans *spans, const struct d9__decoder *decoder,
			const struct d9__frame *frame)
{
	bool parks = frame->schema->kind == D9_EVENT_WORKER_PARK;
	struct d9_event event = { .schema = frame->schema,
				  .kind = (enum d9_event_kind)frame->schema->kind };
	uint64_t worker, tid;
	int err = d9__values_build(&spans->values, decoder, frame);

	if (err)
		return err;
	event.values = spans->values.items;
	worker = d9_event_known_u64(
		&event, parks ? D9_WORKER_PARK_WORKER_ID : D9_WORKER_UNPARK_WORKER_ID, 0);
	tid = d9_event_known_u64(&event, parks ? D9_WORKER_PARK_TID : D9_WORKER_UNPARK_TID, 0);
	if (!tid || tid > UINT32_MAX ||
	    (uint64_t)(uintptr_t)d9__table_find(&spans->threads, worker) == tid)
		return 0;
	d9__table_remove(&spans->threads, worker);
	return d9__table_add(&spans->threads, worker, (void *)(uintptr_t)tid);
}

int d9__old_spans_frame(struct d9__old_spans *spans, const struct d9__decoder *decoder,
			const struct d9__frame *frame, const uint8_t **out, size_t *len)
{
	const struct d9_schema *schema = frame->kind == D9__FRAME_SCHEMA ||
							 frame->kind == D9__FRAME_ANNOTATIONS ||
							 frame->kind == D9__FRAME_EVENT
						 ? frame->schema
						 : NULL;
	const struct old_type *type;
	int err = 0;

	*out = frame->start;
	*len = (size_t)(frame->end - frame->start);
	if (frame->kind == D9__FRAME_HEADER)
		forget_batch(spans);
	err = d9__old_wakes_frame(&spans->wakes, decoder, frame, &spans->n_ids, out, len);
	if (err)
		return err < 0 ? err : 0;
	if (schema && frame->kind == D9__FRAME_EVENT &&
	    (schema->kind == D9_EVENT_WORKER_PARK || schema->kind == D9_EVENT_WORKER_UNPARK))
		return learn_thread(spans, decoder, frame);
	if (!is_ours(schema))
		return 0;
	if (frame->kind == D9__FRAME_ANNOTATIONS) {
		*len = 0;
		return 0;
	}
	type = d9__table_find(&spans->types, d9__wire_get_u16(frame->start + 1));
	if (frame->kind == D9__FRAME_EVENT && type)
		err = events(spans, frame, type, len);
	else if (!type)
		err = definitions(spans, frame, len);
	else
		*len = 0; /* defined again */
	if (!err)
		*out = spans->bytes;
	return err;
}

void d9__old_spans_release(struct d9__old_spans *spans)
{
	forget_batch(spans);
	d9__table_release(&spans->threads);
	d9__values_release(&spans->values);
	d9__old_wakes_release(&spans->wakes);
	free(spans->bytes);
	*spans = (struct d9__old_spans) { 0 };
}
