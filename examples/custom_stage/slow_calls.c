/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage of one's own: keeps of a segment the callbacks that took long, and everything that is no
 *callback.
 *
 *	dial9 process --stage 'slow_calls 5' traces
 *
 * A stage reads a segment from standard input and writes another to standard output; it need not be
 *packed.  Exit status 0 lets that take the segment's place, 75 asks for another time, all else
 *leaves the segment as it was. DIAL9_SEGMENT has what is known of it, as JSON: see
 *dial9-process(1).  dial9-format(5) tells what is written here.
 *
 * A program gets the same segments while it runs: d9_options_set_segment_sealed(), in
 *rotating_writer.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#define WORKERS	  64
#define MAX_DELTA 0xffffffu
#define NS_PER_MS 1000000

struct bytes {
	unsigned char *data;
	size_t len, size;
};

/* An event as it will be written; texts and stacks that it refers to go before it. */
struct record {
	struct bytes pools, fields;
	unsigned type;
	int timed, held;
	uint64_t ns;
};

static struct record held[WORKERS]; /* the callback that a worker is in */
static unsigned char known[65536];  /* types that stand in the output */
static uint64_t base_ns;
static uint32_t next_text, next_stack;

/* ---- bytes ---- */

static void put(struct bytes *to, const void *data, size_t len)
{
	if (to->size - to->len < len) {
		to->size = 2 * to->size + len + 256;
		to->data = realloc(to->data, to->size);
		if (!to->data)
			exit(75); /* later there may be memory */
	}
	if (len)
		memcpy(to->data + to->len, data, len);
	to->len += len;
}

static void put_number(struct bytes *to, uint64_t value, size_t len)
{
	unsigned char little[8];

	for (size_t i = 0; i < len; i++)
		little[i] = (unsigned char)(value >> 8 * i);
	put(to, little, len);
}

static void put_varint(struct bytes *to, uint64_t value)
{
	for (; value > 127; value >>= 7)
		put_number(to, (value & 127) | 128, 1);
	put_number(to, value, 1);
}

static void put_text(struct bytes *to, const char *text, size_t len)
{
	put_number(to, len, 4);
	put(to, text, len);
}

static void put_name(struct bytes *to, const char *name)
{
	put_number(to, strlen(name), 2);
	put(to, name, strlen(name));
}

/* ---- values ---- */

static void put_stack(struct bytes *to, const struct d9_value *value)
{
	put_number(to, value->u.stack.n, 4);
	for (size_t i = 0; i < value->u.stack.n; i++)
		put_number(to, value->u.stack.addresses[i], 8);
}

static void put_value(struct bytes *to, const struct d9_value *value);

static void put_tagged(struct bytes *to, const struct d9_value *value)
{
	put_number(to, (uint64_t)value->type, 1);
	put_value(to, value);
}

static void put_many(struct bytes *to, const struct d9_value *value)
{
	size_t n = value->type == D9_FIELD_STRING_MAP ? value->u.string_map.n
		   : value->type == D9_FIELD_LIST     ? value->u.list.n
						      : value->u.map.n;

	put_number(to, n, 4);
	for (size_t i = 0; i < n; i++) {
		if (value->type == D9_FIELD_LIST) {
			put_tagged(to, &value->u.list.items[i]);
		} else if (value->type == D9_FIELD_MAP) {
			put_tagged(to, &value->u.map.entries[i].key);
			put_tagged(to, &value->u.map.entries[i].value);
		} else {
			const struct d9_text *pair = &value->u.string_map.pairs[2 * i];

			put_text(to, pair[0].data, pair[0].len);
			put_text(to, pair[1].data, pair[1].len);
		}
	}
}

static void put_value(struct bytes *to, const struct d9_value *value)
{
	switch (value->type) {
	case D9_FIELD_VARINT:
		put_varint(to, value->u.u64);
		break;
	case D9_FIELD_BOOL:
		put_number(to, value->u.boolean, 1);
		break;
	case D9_FIELD_U8:
		put_number(to, value->u.u64, 1);
		break;
	case D9_FIELD_U16:
		put_number(to, value->u.u64, 2);
		break;
	case D9_FIELD_U32:
		put_number(to, value->u.u64, 4);
		break;
	case D9_FIELD_I64:
	case D9_FIELD_F64:
		put_number(to, value->u.u64, 8);
		break;
	case D9_FIELD_STRING:
	case D9_FIELD_BYTES:
		put_text(to, value->u.text.data, value->u.text.len);
		break;
	case D9_FIELD_STACK:
		put_stack(to, value);
		break;
	default:
		put_many(to, value);
	}
}

/* A pool's frame of one entry, and its number in the event. */
static void put_pooled(struct record *record, const struct d9_value *value, int is_stack)
{
	uint32_t id = is_stack ? next_stack++ : next_text++;

	put_number(&record->pools, is_stack ? 4 : 3, 1);
	put_number(&record->pools, 1, 4);
	put_number(&record->pools, id, 4);
	put_value(&record->pools, value);
	put_number(&record->fields, id, 4);
}

/* ---- events ---- */

static void put_schema(const struct d9_event *event, unsigned type)
{
	const struct d9_schema *schema = event->schema;
	size_t n = d9_schema_fields(schema);
	struct bytes frame = { 0 };

	put_number(&frame, 1, 1);
	put_number(&frame, type, 2);
	put_name(&frame, d9_schema_name(schema));
	put_number(&frame, event->has_timestamp, 1);
	put_number(&frame, n, 2);
	for (size_t i = 0; i < n; i++) {
		bool optional;
		unsigned tag = d9_schema_field_type(schema, i, &optional);

		put_name(&frame, d9_schema_field_name(schema, i));
		put_number(&frame, tag | (optional ? 128u : 0), 1);
	}
	fwrite(frame.data, 1, frame.len, stdout);
	free(frame.data);
	known[type] = 1;
}

/* What it was made for, such as "kind", tells readers what a field means. */
static void put_annotation(const struct d9_schema *schema, unsigned type, size_t field,
			   const char *key)
{
	const char *text = d9_schema_annotation(schema, field, key);
	struct bytes frame = { 0 };

	if (!text)
		return;
	put_number(&frame, 6, 1);
	put_varint(&frame, type);
	put_number(&frame, 1, 2);
	put_number(&frame, field, 2);
	put_name(&frame, key);
	put_text(&frame, text, strlen(text));
	fwrite(frame.data, 1, frame.len, stdout);
	free(frame.data);
}

static void learn_type(const struct d9_event *event, unsigned type)
{
	if (known[type])
		return;
	put_schema(event, type);
	for (size_t i = 0; i < d9_schema_fields(event->schema); i++) {
		put_annotation(event->schema, type, i, "kind");
		put_annotation(event->schema, type, i, "unit");
	}
}

static void make_record(struct record *record, const struct d9_event *event)
{
	record->pools.len = record->fields.len = 0;
	record->type = d9_schema_id(event->schema) & 0xffff;
	record->timed = event->has_timestamp;
	record->ns = event->timestamp_ns;
	learn_type(event, record->type);
	for (size_t i = 0; i < d9_schema_fields(event->schema); i++) {
		const struct d9_value *value = &event->values[i];
		bool optional;
		enum d9_field_type type = d9_schema_field_type(event->schema, i, &optional);

		if (optional)
			put_number(&record->fields, value->present, 1);
		if (!value->present)
			continue;
		if (type == D9_FIELD_POOLED_STRING || type == D9_FIELD_POOLED_STACK)
			put_pooled(record, value, type == D9_FIELD_POOLED_STACK);
		else
			put_value(&record->fields, value);
	}
}

static void write_record(const struct record *record)
{
	struct bytes head = { 0 };

	if (record->timed && (record->ns < base_ns || record->ns - base_ns > MAX_DELTA)) {
		put_number(&head, 5, 1);
		put_number(&head, record->ns, 8);
		base_ns = record->ns;
	}
	put_number(&head, 2, 1);
	put_number(&head, record->type, 2);
	if (record->timed) {
		put_number(&head, record->ns - base_ns, 3);
		base_ns = record->ns;
	}
	fwrite(record->pools.data, 1, record->pools.len, stdout);
	fwrite(head.data, 1, head.len, stdout);
	fwrite(record->fields.data, 1, record->fields.len, stdout);
	free(head.data);
}

/* ---- what stays ---- */

static struct record *worker_of(const struct d9_event *event)
{
	uint64_t worker = d9_event_u64(event, "worker_id", WORKERS);

	return worker < WORKERS ? &held[worker] : NULL;
}

static void release(struct record *call)
{
	if (call->held)
		write_record(call);
	call->held = 0;
}

static void take(const struct d9_event *event, uint64_t limit_ns)
{
	static struct record record;
	struct record *call = worker_of(event);

	if (call && event->kind == D9_EVENT_POLL_START) {
		release(call); /* one inside another: both stay */
		make_record(call, event);
		call->held = 1;
		return;
	}
	if (call && event->kind == D9_EVENT_POLL_END && call->held) {
		if (event->timestamp_ns - call->ns < limit_ns) {
			call->held = 0;
			return;
		}
		release(call);
	}
	make_record(&record, event);
	write_record(&record);
}

int main(int argc, char **argv)
{
	uint64_t limit_ns = strtoull(argc > 1 ? argv[1] : "1", NULL, 10) * NS_PER_MS;
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	int err = d9_reader_new(&reader);

	if (!err)
		err = d9_reader_add(reader, "-");
	if (err) {
		fprintf(stderr, "%s\n", d9_strerror(err));
		return 1;
	}
	d9_reader_set_file_order(reader, true);
	fwrite("TRC\0\1", 1, 5, stdout);
	while ((err = d9_reader_next(reader, &event)) == 1)
		take(event, limit_ns);
	for (size_t i = 0; i < WORKERS; i++)
		release(&held[i]);
	if (err)
		fprintf(stderr, "%s\n", d9_reader_message(reader));
	if (fflush(stdout) || ferror(stdout))
		err = -1;
	d9_reader_free(reader);
	return err ? 1 : 0;
}
