/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/latency.h"
#include "base/array.h"
#include "read/stack_role.h"
#include "symbol/symbolizer.h"
#include "tool/event_line.h"

/* Numbers that are addresses of the recorded process. */
static const char *const address_fields[] = { "addr", "base", "callback", "spawn_addr", "start" };

/* ---- shapes ---- */

void d9__event_lines_init(struct d9__event_lines *lines, struct d9__text_out *out,
			  struct d9__symbolizer *symbols)
{
	*lines = (struct d9__event_lines){ .out = out, .symbols = symbols };
}

static void release_shape(struct d9__line_shape *shape)
{
	for (size_t i = 0; i < shape->n_fields; i++) {
		free(shape->fields[i].json);
		free(shape->fields[i].text);
	}
	free(shape->fields);
	free(shape->json);
}

void d9__event_lines_release(struct d9__event_lines *lines)
{
	for (size_t i = 0; i < lines->n_shapes; i++)
		release_shape(&lines->shapes[i]);
	free(lines->shapes);
}

/* |before| |name|, escaped, |after|, allocated.  NULL if out of memory. */
static char *spell(const char *before, const char *name, const char *after, size_t *len)
{
	static struct d9__text_out scratch;

	/* Names are cut where the escaped one might not fit; 64 KiB are legal on the wire. */
	scratch.fd = -1;
	scratch.err = 0;
	scratch.len = 0;
	d9__text_string(&scratch, before);
	d9__text_escaped(&scratch, name, strnlen(name, 8192));
	d9__text_string(&scratch, after);
	*len = scratch.len;
	return strndup(scratch.data, scratch.len);
}

static bool is_address_field(const char *name)
{
	for (size_t i = 0; i < sizeof(address_fields) / sizeof(address_fields[0]); i++)
		if (!strcmp(address_fields[i], name))
			return true;
	return false;
}

/* A field that is called like one of the keys of every line. */
static bool is_taken(const struct d9__event_lines *lines, const char *name)
{
	return !strcmp(name, "event") || !strcmp(name, "timestamp_ns") ||
	       (lines->process && !strcmp(name, "process")) ||
	       (lines->spans && !strcmp(name, "inherited"));
}

static int make_field(const struct d9__event_lines *lines, const struct d9_schema *schema,
		      size_t i, struct d9__line_field *field)
{
	const char *name = d9_schema_field_name(schema, i);
	char *renamed = NULL;
	int err = 0;

	if (is_taken(lines, name)) {
		if (asprintf(&renamed, "field.%s", name) < 0)
			return -ENOMEM;
		name = renamed;
	}
	field->json = spell(",\"", name, "\":", &field->json_len);
	field->text = spell(" ", name, "=", &field->text_len);
	field->unit = d9_schema_annotation(schema, i, "unit");
	field->is_address = is_address_field(name);
	/*
	 * Sampled stacks begin with the instruction being executed; an allocation's begins with the
	 * address behind its call.
	 */
	field->is_return = !strcmp(name, "spawn_addr") || !strcmp(d9_schema_name(schema), "AllocEvent");
	field->is_reason = !strcmp(name, "reason") && !strcmp(d9_schema_name(schema), "WakeEventEvent");
	field->is_spawn_loc = !strcmp(name, "spawn_loc") || !strcmp(name, "span_name");
	if (!field->json || !field->text)
		err = -ENOMEM;
	free(renamed);
	return err;
}

static int make_shape(const struct d9__event_lines *lines, const struct d9_schema *schema,
		      struct d9__line_shape *shape)
{
	size_t n = d9_schema_fields(schema);
	int err = 0;

	shape->name = d9_schema_name(schema);
	shape->name_len = strlen(shape->name);
	shape->worker = d9_schema_find(schema, "worker_id");
	shape->json = spell("{\"event\":\"", shape->name, "\",\"timestamp_ns\":", &shape->json_len);
	shape->fields = calloc(n ? n : 1, sizeof(*shape->fields));
	if (!shape->json || !shape->fields)
		return -ENOMEM;
	for (; !err && shape->n_fields < n; shape->n_fields++)
		err = make_field(lines, schema, shape->n_fields, &shape->fields[shape->n_fields]);
	shape->ready = !err;
	return err;
}

/* The shape of |schema|, made at its first event.  NULL if out of memory. */
static const struct d9__line_shape *find_shape(struct d9__event_lines *lines,
					       const struct d9_schema *schema)
{
	uint32_t id = d9_schema_id(schema);

	while (id >= lines->n_shapes) {
		if (!d9__array_grow(lines->shapes, lines->n_shapes))
			return NULL;
		lines->shapes[lines->n_shapes++] = (struct d9__line_shape) { .ready = false };
	}
	if (!lines->shapes[id].ready && make_shape(lines, schema, &lines->shapes[id]))
		return NULL;
	return &lines->shapes[id];
}

/* ---- JSON ---- */

static void json_value(struct d9__text_out *out, const struct d9_value *value);

static void json_stack(struct d9__text_out *out, const struct d9_value *value)
{
	d9__text_char(out, '[');
	for (size_t i = 0; i < value->u.stack.n; i++) {
		d9__text_string(out, i ? ",\"" : "\"");
		d9__text_hex(out, value->u.stack.addresses[i]);
		d9__text_char(out, '"');
	}
	d9__text_char(out, ']');
}

static void json_string_map(struct d9__text_out *out, const struct d9_value *value)
{
	d9__text_char(out, '{');
	for (size_t i = 0; i < 2 * value->u.string_map.n; i++) {
		const struct d9_text *text = &value->u.string_map.pairs[i];

		if (i)
			d9__text_char(out, i & 1 ? ':' : ',');
		d9__text_json(out, text->data, text->len);
	}
	d9__text_char(out, '}');
}

static void json_list(struct d9__text_out *out, const struct d9_value *value)
{
	d9__text_char(out, '[');
	for (size_t i = 0; i < value->u.list.n; i++) {
		if (i)
			d9__text_char(out, ',');
		json_value(out, &value->u.list.items[i]);
	}
	d9__text_char(out, ']');
}

/* Keys may be anything, and repeat: an array of pairs. */
static void json_map(struct d9__text_out *out, const struct d9_value *value)
{
	d9__text_char(out, '[');
	for (size_t i = 0; i < value->u.map.n; i++) {
		d9__text_string(out, i ? ",[" : "[");
		json_value(out, &value->u.map.entries[i].key);
		d9__text_char(out, ',');
		json_value(out, &value->u.map.entries[i].value);
		d9__text_char(out, ']');
	}
	d9__text_char(out, ']');
}

static void json_value(struct d9__text_out *out, const struct d9_value *value)
{
	switch (value->type) {
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		d9__text_u64(out, value->u.u64);
		break;
	case D9_FIELD_I64:
		d9__text_i64(out, value->u.i64);
		break;
	case D9_FIELD_F64:
		d9__text_f64(out, value->u.f64);
		break;
	case D9_FIELD_BOOL:
		d9__text_string(out, value->u.boolean ? "true" : "false");
		break;
	case D9_FIELD_POOLED_STRING:
	case D9_FIELD_STRING:
		d9__text_json(out, value->u.text.data, value->u.text.len);
		break;
	case D9_FIELD_BYTES:
		d9__text_char(out, '"');
		d9__text_hex_bytes(out, value->u.text.data, value->u.text.len);
		d9__text_char(out, '"');
		break;
	case D9_FIELD_POOLED_STACK:
	case D9_FIELD_STACK:
		json_stack(out, value);
		break;
	case D9_FIELD_STRING_MAP:
		json_string_map(out, value);
		break;
	case D9_FIELD_LIST:
		json_list(out, value);
		break;
	case D9_FIELD_MAP:
		json_map(out, value);
		break;
	}
}

/* Return the fields that a span inherits from its parents. */
static const struct d9_span_field *find_inherited(const struct d9__event_lines *lines, size_t *n)
{
	*n = 0;
	return lines->spans ? d9_span_fields_inherited(lines->spans, n) : NULL;
}

static void json_inherited(const struct d9__event_lines *lines)
{
	struct d9__text_out *out = lines->out;
	const struct d9_span_field *inherited;
	size_t n;

	inherited = find_inherited(lines, &n);
	for (size_t i = 0; i < n; i++) {
		d9__text_string(out, i ? "," : ",\"inherited\":{");
		d9__text_json(out, inherited[i].name, strlen(inherited[i].name));
		d9__text_char(out, ':');
		json_value(out, inherited[i].value);
	}
	if (n)
		d9__text_char(out, '}');
}

int d9__event_lines_json(struct d9__event_lines *lines, const struct d9_event *event)
{
	const struct d9__line_shape *shape = find_shape(lines, event->schema);
	struct d9__text_out *out = lines->out;

	if (!shape)
		return -ENOMEM;
	d9__text_bytes(out, shape->json, shape->json_len);
	if (event->has_timestamp)
		d9__text_u64(out, event->timestamp_ns);
	else
		d9__text_string(out, "null");
	if (lines->process) {
		d9__text_string(out, ",\"process\":");
		d9__text_json(out, lines->process, strlen(lines->process));
	}
	for (size_t i = 0; i < shape->n_fields; i++) {
		d9__text_bytes(out, shape->fields[i].json, shape->fields[i].json_len);
		if (event->values[i].present)
			json_value(out, &event->values[i]);
		else
			d9__text_string(out, "null");
	}
	json_inherited(lines);
	d9__text_bytes(out, "}\n", 2);
	return 0;
}

/* ---- text ---- */

/* "conn_new memcached.c:712"; the line only |with_line|. */
static void text_symbol(struct d9__text_out *out, const struct d9__symbol *symbol, bool with_line)
{
	const char *function = symbol->function ? symbol->function : "?";

	d9__text_escaped(out, function, strlen(function));
	if (!with_line || !symbol->file)
		return;
	d9__text_char(out, ' ');
	d9__text_escaped(out, symbol->file, strlen(symbol->file));
	if (symbol->line) {
		d9__text_char(out, ':');
		d9__text_u64(out, symbol->line);
	}
}

/*
 * Write every function at |address|, the innermost first: functions inlined there precede the one
 * that contains them.
 */
static void text_address(struct d9__event_lines *lines, uint64_t address, enum d9__address_role role)
{
	struct d9__frames frames;

	if (!lines->symbols) {
		d9__text_hex(lines->out, address);
		return;
	}
	d9__symbolizer_resolve(lines->symbols, address, lines->at_ns, role, &frames);
	for (size_t i = 0; i < frames.n; i++) {
		if (i)
			d9__text_string(lines->out, ", ");
		text_symbol(lines->out, &frames.items[i], true);
	}
}

/* One half of CALLBACK @ SITE. */
static void text_place(struct d9__event_lines *lines, const char *text, size_t len, bool is_site)
{
	enum d9__address_role role = is_site ? D9__RETURN : D9__ENTRY;
	struct d9__frames frames = { 0 };

	if (lines->symbols && d9__symbolizer_resolve_name(lines->symbols, text, len, role, &frames) && frames.known)
		text_symbol(lines->out, d9__frames_one(&frames, role), is_site);
	else
		d9__text_escaped(lines->out, text, len);
}

static void text_spawn_loc(struct d9__event_lines *lines, const struct d9_text *text)
{
	const char *at = memmem(text->data, text->len, " @ ", 3);
	size_t len = at ? (size_t)(at - text->data) : 0;

	if (!at) {
		d9__text_word(lines->out, text->data, text->len);
		return;
	}
	d9__text_char(lines->out, '"');
	text_place(lines, text->data, len, false);
	d9__text_string(lines->out, " @ ");
	text_place(lines, at + 3, text->len - len - 3, true);
	d9__text_char(lines->out, '"');
}

static void text_stack(struct d9__event_lines *lines, const struct d9_value *value, bool is_return)
{
	d9__text_char(lines->out, '[');
	for (size_t i = 0; i < value->u.stack.n; i++) {
		if (i)
			d9__text_string(lines->out, ", ");
		text_address(lines, value->u.stack.addresses[i],
			     !is_return && d9__address_is_executing(value->u.stack.addresses, i) ? D9__EXECUTING
												  : D9__RETURN);
	}
	d9__text_char(lines->out, ']');
}

/* An address as the value of a field: in quotes if it became words. */
static void text_place_of(struct d9__event_lines *lines, uint64_t address, bool is_return)
{
	enum d9__address_role role = is_return ? D9__RETURN : D9__ENTRY;
	struct d9__frames frames = { 0 };

	if (lines->symbols)
		d9__symbolizer_resolve(lines->symbols, address, lines->at_ns, role, &frames);
	if (frames.known) {
		d9__text_char(lines->out, '"');
		text_symbol(lines->out, d9__frames_one(&frames, role), true);
		d9__text_char(lines->out, '"');
	} else {
		text_address(lines, address, role);
	}
}

static void text_value(struct d9__event_lines *lines, const struct d9__line_field *field,
		       const struct d9_value *value)
{
	uint64_t n;

	if (field->is_address && d9__value_u64(value, &n))
		text_place_of(lines, n, field->is_return);
	else if (field->is_reason && d9__value_u64(value, &n) && n < D9__WAKE_REASONS)
		d9__text_string(lines->out, d9__wake_reason_name((unsigned)n));
	else if (value->type == D9_FIELD_STACK)
		text_stack(lines, value, field->is_return);
	else if (value->type == D9_FIELD_STRING && field->is_spawn_loc)
		text_spawn_loc(lines, &value->u.text);
	else if (value->type == D9_FIELD_STRING)
		d9__text_word(lines->out, value->u.text.data, value->u.text.len);
	else
		json_value(lines->out, value);
	if (field->unit && d9__value_u64(value, &n)) {
		d9__text_char(lines->out, ' ');
		d9__text_escaped(lines->out, field->unit, strlen(field->unit));
	}
}

/* Seconds since the first event, 9 decimals; times before it, as of symbol rows, show "-". */
static void text_time(struct d9__event_lines *lines, const struct d9_event *event)
{
	uint64_t ns = event->timestamp_ns;
	char buf[32], *p = buf + sizeof(buf);

	if (!event->has_timestamp || !ns) {
		d9__text_bytes(lines->out, "             -", 14);
		return;
	}
	if (!lines->has_origin) {
		lines->has_origin = true;
		lines->origin_ns = ns;
	}
	ns -= lines->origin_ns;
	for (int i = 0; i < 9; i++, ns /= 10)
		*--p = (char)('0' + ns % 10);
	*--p = '.';
	do
		*--p = (char)('0' + ns % 10);
	while (ns /= 10);
	while (buf + sizeof(buf) - p < 14)
		*--p = ' ';
	d9__text_bytes(lines->out, p, (size_t)(buf + sizeof(buf) - p));
}

/* From column |used| to |width|, at least one space. */
static void pad(struct d9__text_out *out, size_t used, size_t width)
{
	static const char spaces[] = "                        ";

	d9__text_bytes(out, spaces, used < width ? width - used : 1);
}

static void text_process(struct d9__event_lines *lines)
{
	size_t start;

	if (!lines->process)
		return;
	d9__text_reserve(lines->out, 8192);
	start = lines->out->len;
	d9__text_string(lines->out, "  ");
	d9__text_escaped(lines->out, lines->process, strnlen(lines->process, 1024));
	for (size_t used = lines->out->len - start; used < 2 + lines->process_width; used++)
		d9__text_char(lines->out, ' ');
}

static void text_worker(struct d9__text_out *out, const struct d9__line_shape *shape,
			const struct d9_event *event)
{
	size_t start;
	uint64_t worker;

	d9__text_reserve(out, 64);
	start = out->len;
	if (shape->worker >= 0 && d9__value_u64(&event->values[shape->worker], &worker)) {
		d9__text_string(out, "  w");
		d9__text_u64(out, worker);
	} else {
		d9__text_string(out, "  -");
	}
	pad(out, out->len - start, 7);
}

/* Values of parents: marked, so that they are not taken for the event's own. */
static void text_inherited(struct d9__event_lines *lines)
{
	const struct d9__line_field plain = { .json = NULL };
	const struct d9_span_field *inherited;
	size_t n;

	inherited = find_inherited(lines, &n);
	for (size_t i = 0; i < n; i++) {
		d9__text_string(lines->out, " ^");
		d9__text_escaped(lines->out, inherited[i].name, strnlen(inherited[i].name, 1024));
		d9__text_char(lines->out, '=');
		text_value(lines, &plain, inherited[i].value);
	}
}

static bool is_empty_map(const struct d9_value *value)
{
	return (value->type == D9_FIELD_STRING_MAP && value->u.string_map.n == 0) ||
	       (value->type == D9_FIELD_MAP && value->u.map.n == 0);
}

/* All fields but |skipped| and empty maps, and a newline. */
static void text_fields(struct d9__event_lines *lines, const struct d9__line_shape *shape,
			const struct d9_event *event, int skipped)
{
	lines->at_ns = event->has_timestamp ? event->timestamp_ns : D9__NO_TIME;
	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct d9__line_field *field = &shape->fields[i];

		if ((int)i == skipped || !event->values[i].present || is_empty_map(&event->values[i]))
			continue;
		d9__text_bytes(lines->out, field->text, field->text_len);
		text_value(lines, field, &event->values[i]);
	}
	text_inherited(lines);
	d9__text_char(lines->out, '\n');
}

int d9__event_lines_fields(struct d9__event_lines *lines, const struct d9_event *event)
{
	const struct d9__line_shape *shape = find_shape(lines, event->schema);

	if (!shape)
		return -ENOMEM;
	text_fields(lines, shape, event, -1);
	return 0;
}

int d9__event_lines_text(struct d9__event_lines *lines, const struct d9_event *event)
{
	const struct d9__line_shape *shape = find_shape(lines, event->schema);
	struct d9__text_out *out = lines->out;

	if (!shape)
		return -ENOMEM;
	text_time(lines, event);
	text_process(lines);
	text_worker(out, shape, event);
	d9__text_word(out, shape->name, shape->name_len);
	if (shape->n_fields > (shape->worker >= 0))
		pad(out, shape->name_len, 20);
	text_fields(lines, shape, event, shape->worker);
	return 0;
}
