/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/inner_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/encoder.h"
#include "format/schema.h"
#include "read/known_text.h"

#define CALL	   "SpanCall:"
#define ENTER	   "SpanEnter:"
#define EXIT	   "SpanExit:"
#define NAME_MAX   UINT16_MAX
#define FIELDS_MAX 128u /* bytes of the fields of a definition */

/* Of calls that nothing refers to: no recorder gives out such ids. */
#define OWN_ID (UINT64_C(1) << 63)

struct inner_type {
	const struct d9_schema *enter, *exit;
};

/* ---- the beginning ---- */

static int pass(struct d9__cursor *in, const struct d9__field_definition *field, uint64_t *value)
{
	uint8_t present = 1;

	*value = UINT64_MAX;
	if (field->optional && !d9__cursor_u8(in, &present))
		return 0;
	if (!present)
		return 1;
	switch (field->type) {
	case D9_FIELD_VARINT:
		return d9__cursor_varint(in, value) == 1;
	case D9_FIELD_U32:
	case D9_FIELD_POOLED_STRING:
		return d9__cursor_skip(in, 4);
	case D9_FIELD_U8:
		return d9__cursor_skip(in, 1);
	default:
		return 0;
	}
}

/* As the recorder writes it, apart from fields behind the length, and from the order of those
 * before it. */
bool d9__inner_call_start(const struct d9__frame *frame, uint64_t *start_ns)
{
	const struct d9_schema *schema = frame->schema;
	struct d9__cursor in = { frame->payload, frame->end, 0 };
	int32_t at = schema->known[D9_SPAN_CALL_DURATION_NS];
	uint64_t worker = 0, length = UINT64_MAX;

	for (int32_t i = 0; i <= at; i++) {
		if (!pass(&in, &schema->fields[i], &length))
			return false;
		if (i == schema->known[D9_SPAN_CALL_WORKER_ID])
			worker = length;
	}
	if (at < 0 || schema->known[D9_SPAN_CALL_WORKER_ID] > at || worker == UINT64_MAX ||
	    length > frame->timestamp_ns)
		return false;
	*start_ns = frame->timestamp_ns - length;
	/* 0 is no time. */
	return *start_ns != 0;
}

/* ---- the two events ---- */

static uint8_t *put_field(uint8_t *p, const char *name, uint8_t type)
{
	size_t len = strlen(name);

	p = d9__wire_put_bytes(d9__wire_put_u16(p, (uint16_t)len), name, len);
	*p++ = type;
	return p;
}

/* The definition of |prefix| and what follows in the name of |written|, out of |set|.  0, -ENOMEM,
 * -EFBIG. */
static int define(struct d9__definitions *set, const char *prefix, const struct d9_schema *written,
		  bool enters, const struct d9_schema **out)
{
	const char *library = written->name + strlen(CALL);
	size_t head = strlen(prefix), len = strnlen(library, NAME_MAX - head);
	uint8_t *bytes = malloc(2 + head + len + FIELDS_MAX), *p;
	int err;

	if (!bytes)
		return -ENOMEM;
	p = d9__wire_put_u16(bytes, (uint16_t)(head + len));
	p = d9__wire_put_bytes(d9__wire_put_bytes(p, prefix, head), library, len);
	*p++ = true; /* with a time */
	p = d9__wire_put_u16(p, enters ? 5 : 4);
	p = put_field(p, "worker_id", D9__FIELD_VARINT);
	p = put_field(p, "span_id", D9__FIELD_VARINT);
	if (enters)
		p = put_field(p, "parent_span_id", D9__FIELD_VARINT | D9__WIRE_OPTIONAL);
	p = put_field(p, "span_name", D9__FIELD_POOLED_STRING);
	p = put_field(p, "span_instance_id", D9__FIELD_VARINT);
	err = d9__definitions_intern(set, bytes, (size_t)(p - bytes), NULL, 0, out);
	free(bytes);
	if (!err)
		set->list[(*out)->id]->written_as = written;
	return err;
}

static struct inner_type *type_of(struct d9__inner_calls *calls, struct d9__definitions *set,
				  const struct d9_schema *schema)
{
	struct inner_type *type = d9__table_find(&calls->types, schema->id);

	if (type)
		return type;
	type = calloc(1, sizeof(*type));
	if (type && !define(set, ENTER, schema, true, &type->enter) &&
	    !define(set, EXIT, schema, false, &type->exit) &&
	    !d9__table_add(&calls->types, schema->id, type))
		return type;
	free(type);
	return NULL;
}

/* The call that this one is made in: the latest one of its worker that is open. */
static uint64_t enter(struct d9__inner_calls *calls, uint64_t worker, uint64_t id)
{
	uint64_t parent = 0;

	for (size_t i = calls->n_open; i-- && !parent;)
		parent = calls->open[i].worker == worker ? calls->open[i].id : 0;
	if (calls->n_open < D9__INNER_OPEN_MAX) {
		calls->open[calls->n_open].worker = worker;
		calls->open[calls->n_open++].id = id;
	}
	return parent;
}

static void leave(struct d9__inner_calls *calls, uint64_t id)
{
	for (size_t i = calls->n_open; i--;) {
		if (calls->open[i].id != id)
			continue;
		memmove(calls->open + i, calls->open + i + 1,
			(--calls->n_open - i) * sizeof(calls->open[0]));
		return;
	}
}

static struct d9_value number(uint64_t n)
{
	return (struct d9_value) { .type = D9_FIELD_VARINT, .present = true, .u.u64 = n };
}

int d9__inner_calls_tell(struct d9__inner_calls *calls, struct d9__definitions *set, bool enters,
			 struct d9_event *event)
{
	struct inner_type *type = type_of(calls, set, event->schema);
	const struct d9_value *name = d9_event_known(event, D9_SPAN_CALL_SPAN_NAME);
	uint64_t worker = d9_event_known_u64(event, D9_SPAN_CALL_WORKER_ID, 0);
	uint64_t id = d9_event_known_u64(event, D9_SPAN_CALL_SPAN_INSTANCE_ID, 0), parent = 0;
	struct d9_value *to = calls->values;

	if (!type)
		return -ENOMEM;
	if (!id)
		id = OWN_ID | (uint64_t)event->segment << 40 |
		     (event->offset & ((UINT64_C(1) << 40) - 1));
	if (enters)
		parent = enter(calls, worker, id);
	else
		leave(calls, id);
	*to++ = number(worker);
	*to++ = number(id);
	if (enters) {
		*to = number(parent);
		to++->present = parent != 0;
	}
	*to++ = name ? *name : (struct d9_value) { .type = D9_FIELD_STRING };
	*to = number(id);
	event->schema = enters ? type->enter : type->exit;
	event->kind = enters ? D9_EVENT_SPAN_ENTER : D9_EVENT_SPAN_EXIT;
	event->values = calls->values;
	return 0;
}

void d9__inner_calls_release(struct d9__inner_calls *calls)
{
	void *type;

	for (size_t place = 0; (place = d9__table_next(&calls->types, place, &type));)
		free(type);
	d9__table_release(&calls->types);
	*calls = (struct d9__inner_calls) { 0 };
}
