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
#define NAME_MAX   UINT16_MAX
#define FIELDS_MAX 192u /* bytes of the fields of a definition */

/* Of calls that nothing refers to: no recorder gives out such ids. */
#define OWN_ID (UINT64_C(1) << 63)

struct inner_type {
	const struct d9_schema *enter, *exit, *close;
};

/* ---- the beginning ---- */

/* Pass a field; |*value| becomes that of an integer, else UINT64_MAX. */
static bool pass(struct d9__cursor *in, const struct d9__field_definition *field, uint64_t *value)
{
	uint8_t present = 1, u8;
	uint16_t u16;
	uint32_t u32;

	*value = UINT64_MAX;
	if (field->optional && !d9__cursor_u8(in, &present))
		return false;
	if (!present)
		return true;
	switch (field->type) {
	case D9_FIELD_VARINT:
		return d9__cursor_varint(in, value) == 1;
	case D9_FIELD_POOLED_STRING:
	case D9_FIELD_POOLED_STACK:
		return d9__cursor_skip(in, 4);
	case D9_FIELD_U32:
		if (!d9__cursor_u32(in, &u32))
			return false;
		*value = u32;
		return true;
	case D9_FIELD_U16:
		if (!d9__cursor_u16(in, &u16))
			return false;
		*value = u16;
		return true;
	case D9_FIELD_U8:
		if (!d9__cursor_u8(in, &u8))
			return false;
		*value = u8;
		return true;
	default:
		return false;
	}
}

/* Of what the recorder writes, and of what has its fields in another order or width. */
bool d9__inner_call_start(const struct d9__frame *frame, uint64_t *start_ns)
{
	const struct d9_schema *schema = frame->schema;
	struct d9__cursor in = { frame->payload, frame->end, 0 };
	int32_t length_at = schema->known[D9_SPAN_CALL_DURATION_NS],
		worker_at = schema->known[D9_SPAN_CALL_WORKER_ID];
	uint64_t worker = UINT64_MAX, length = UINT64_MAX, value;

	for (int32_t i = 0; i <= length_at || i <= worker_at; i++) {
		if (!pass(&in, &schema->fields[i], &value))
			return false;
		if (i == worker_at)
			worker = value;
		if (i == length_at)
			length = value;
	}
	if (worker == UINT64_MAX || length > frame->timestamp_ns)
		return false;
	*start_ns = frame->timestamp_ns - length;
	/* 0 is no time. */
	return *start_ns != 0;
}

/* ---- the events ---- */

static uint8_t *put_field(uint8_t *p, const char *name, uint8_t type)
{
	size_t len = strlen(name);

	p = d9__wire_put_bytes(d9__wire_put_u16(p, (uint16_t)len), name, len);
	*p++ = type;
	return p;
}

struct inner_field {
	const char *name;
	uint8_t type;
};

#define FIELDS(...)                                                                                \
	(const struct inner_field[])                                                               \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			NULL, 0                                                                    \
		}                                                                                  \
	}

/*
 * The definition of an event that is made of those of |written|, with a time and |fields|, out of
 * |set|.  Its name is |name|, with the library's behind it if |library|.  0, -ENOMEM, -EFBIG.
 */
static int define(struct d9__definitions *set, const struct d9_schema *written, const char *name,
		  bool library, const struct inner_field *fields, const struct d9_schema **out)
{
	const char *tail = library ? written->name + strlen(CALL) : "";
	size_t head = strlen(name), len = strnlen(tail, NAME_MAX - head);
	uint8_t *bytes = malloc(2 + head + len + FIELDS_MAX), *p;
	uint16_t n = 0;
	int err;

	if (!bytes)
		return -ENOMEM;
	while (fields[n].name)
		n++;
	p = d9__wire_put_u16(bytes, (uint16_t)(head + len));
	p = d9__wire_put_bytes(d9__wire_put_bytes(p, name, head), tail, len);
	*p++ = true;
	p = d9__wire_put_u16(p, n);
	for (; fields->name; fields++)
		p = put_field(p, fields->name, fields->type);
	err = d9__definitions_intern(set, bytes, (size_t)(p - bytes), NULL, 0, out);
	free(bytes);
	if (!err)
		set->list[(*out)->id]->written_as = written;
	return err;
}

static int define_all(struct inner_type *type, struct d9__definitions *set,
		      const struct d9_schema *written)
{
	int err = define(set, written, "SpanEnter:", true,
			 FIELDS({ "worker_id", D9__FIELD_VARINT }, { "span_id", D9__FIELD_VARINT },
				{ "parent_span_id", D9__FIELD_VARINT | D9__WIRE_OPTIONAL },
				{ "span_name", D9__FIELD_POOLED_STRING },
				{ "span_instance_id", D9__FIELD_VARINT }),
			 &type->enter);

	if (!err)
		err = define(set, written, "SpanExit:", true,
			     FIELDS({ "worker_id", D9__FIELD_VARINT },
				    { "span_id", D9__FIELD_VARINT },
				    { "span_name", D9__FIELD_POOLED_STRING },
				    { "span_instance_id", D9__FIELD_VARINT }),
			     &type->exit);
	if (!err)
		err = define(set, written, "SpanCloseEvent", false,
			     FIELDS({ "span_id", D9__FIELD_VARINT },
				    { "span_instance_id", D9__FIELD_VARINT },
				    { "start_timestamp_ns", D9__FIELD_VARINT },
				    { "span_name", D9__FIELD_POOLED_STRING },
				    { "first_enter_timestamp_ns", D9__FIELD_VARINT },
				    { "active_ns", D9__FIELD_VARINT }),
			     &type->close);
	return err;
}

static struct inner_type *type_of(struct d9__inner_calls *calls, struct d9__definitions *set,
				  const struct d9_schema *schema)
{
	struct inner_type *type = d9__table_find(&calls->types, schema->id);

	if (type)
		return type;
	type = calloc(1, sizeof(*type));
	if (type && !define_all(type, set, schema) &&
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
	calls->written = *event;
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
	calls->close = enters ? NULL : type->close;
	event->schema = enters ? type->enter : type->exit;
	event->kind = enters ? D9_EVENT_SPAN_ENTER : D9_EVENT_SPAN_EXIT;
	event->values = calls->values;
	return 0;
}

bool d9__inner_calls_close(struct d9__inner_calls *calls, struct d9_event *event)
{
	uint64_t ns = calls->written.timestamp_ns, id = calls->values[1].u.u64, length;
	struct d9_value name = calls->values[2];

	if (!calls->close)
		return false;
	length = d9_event_known_u64(&calls->written, D9_SPAN_CALL_DURATION_NS, 0);
	*event = calls->written;
	event->schema = calls->close;
	event->kind = D9_EVENT_SPAN_CLOSE;
	event->values = calls->values;
	calls->values[0] = calls->values[1] = number(id);
	calls->values[2] = calls->values[4] = number(ns - length);
	calls->values[3] = name;
	calls->values[5] = number(length);
	calls->close = NULL;
	return true;
}

const struct d9_event *d9__inner_calls_written(const struct d9_event *event)
{
	const struct d9__inner_calls *calls;

	if (!event->schema->written_as)
		return event;
	/* Events with such a schema have their values there, see d9__inner_calls_tell(). */
	calls = (const struct d9__inner_calls *)(const void *)((const uint8_t *)event->values -
							       offsetof(struct d9__inner_calls,
									values));
	return event->kind == D9_EVENT_SPAN_EXIT ? &calls->written : NULL;
}

void d9__inner_calls_release(struct d9__inner_calls *calls)
{
	void *type;

	for (size_t place = 0; (place = d9__table_next(&calls->types, place, &type));)
		free(type);
	d9__table_release(&calls->types);
	*calls = (struct d9__inner_calls) { 0 };
}
