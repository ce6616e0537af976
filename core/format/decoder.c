/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame has no length, so passing it means understanding it.  Each frame is passed completely
 * before it changes anything: a frame that is not complete yet can be decoded again from its
 * start, and nothing is allocated for a count or a length that the input does not back.
 */
#include "config.h"

#include "format/decoder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <dial9/reader.h>

#include "format/varint.h"

__attribute__((format(printf, 3, 4), cold)) static int fail(struct d9__decoder *decoder, int err,
							    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(decoder->message, sizeof(decoder->message), format, args);
	va_end(args);
	return err;
}

static int more(struct d9__decoder *decoder, const struct d9__cursor *cursor)
{
	decoder->missing = cursor->missing;
	return 0;
}

/* Whether |bytes| more for pools are within the limit. */
static int charge(struct d9__decoder *decoder, uint64_t bytes)
{
	uint64_t tables = ((uint64_t)decoder->strings.capacity + decoder->stacks.capacity +
			   decoder->types.capacity) *
			  sizeof(struct d9__pool_entry);

	if (decoder->limit_bytes &&
	    decoder->arena.given_bytes + tables + bytes > decoder->limit_bytes)
		return fail(decoder, -EFBIG,
			    "the batch needs more than %" PRIu64 " bytes of memory",
			    decoder->limit_bytes);
	return 0;
}

static int pool_failed(struct d9__decoder *decoder, int err)
{
	if (err == -ENOMEM)
		return fail(decoder, err, "out of memory");
	return fail(decoder, err, "the batch needs more than %" PRIu64 " bytes of memory",
		    decoder->limit_bytes);
}

static uint64_t table_limit(const struct d9__decoder *decoder)
{
	return decoder->limit_bytes ? decoder->limit_bytes : UINT64_MAX;
}

/* ---- passing values: 1, 0 more input needed, -EBADMSG ---- */

static int pass_value(struct d9__cursor *in, uint8_t type, unsigned depth);

static int pass_string_map(struct d9__cursor *in)
{
	const uint8_t *text;
	uint32_t n, len;

	if (!d9__cursor_u32(in, &n) || !d9__cursor_holds(in, n, 8))
		return 0;
	for (uint64_t i = 0; i < 2 * (uint64_t)n; i++)
		if (!d9__cursor_blob(in, &text, &len))
			return 0;
	return 1;
}

/* List: |per_entry| 1; map: 2 tagged values per entry. */
static int pass_tagged(struct d9__cursor *in, unsigned per_entry, unsigned depth)
{
	uint32_t n;

	if (depth >= D9__DECODER_DEPTH_MAX)
		return -ELOOP;
	if (!d9__cursor_u32(in, &n) || !d9__cursor_holds(in, n, 2 * per_entry))
		return 0;
	for (uint64_t i = 0; i < (uint64_t)n * per_entry; i++) {
		uint8_t type;
		int got;

		if (!d9__cursor_u8(in, &type))
			return 0;
		got = pass_value(in, type, depth + 1);
		if (got != 1)
			return got;
	}
	return 1;
}

static int pass_value(struct d9__cursor *in, uint8_t type, unsigned depth)
{
	const uint8_t *bytes;
	uint64_t value;
	uint32_t n;

	switch (type) {
	case D9_FIELD_I64:
	case D9_FIELD_F64:
		return d9__cursor_skip(in, 8);
	case D9_FIELD_BOOL:
	case D9_FIELD_U8:
		return d9__cursor_skip(in, 1);
	case D9_FIELD_U16:
		return d9__cursor_skip(in, 2);
	case D9_FIELD_U32:
	case D9_FIELD_POOLED_STACK:
	case D9_FIELD_POOLED_STRING:
		return d9__cursor_skip(in, 4);
	case D9_FIELD_STRING:
	case D9_FIELD_BYTES:
		return d9__cursor_blob(in, &bytes, &n);
	case D9_FIELD_STACK:
		return d9__cursor_u32(in, &n) && d9__cursor_skip(in, (uint64_t)n * 8);
	case D9_FIELD_VARINT:
		return d9__cursor_varint(in, &value);
	case D9_FIELD_STRING_MAP:
		return pass_string_map(in);
	case D9_FIELD_LIST:
		return pass_tagged(in, 1, depth);
	case D9_FIELD_MAP:
		return pass_tagged(in, 2, depth);
	default:
		return -EBADMSG;
	}
}

static int pass_step(struct d9__cursor *in, const struct d9__step *step)
{
	uint64_t value;
	uint8_t present = 1;

	if (step->optional && !d9__cursor_u8(in, &present))
		return 0;
	if (!present)
		return 1;
	switch (step->op) {
	case D9__STEP_FIXED:
		return d9__cursor_skip(in, step->n);
	case D9__STEP_VARINT:
		return d9__cursor_varint(in, &value);
	default:
		return pass_value(in, (uint8_t)step->n, 0);
	}
}

static int pass_steps(struct d9__cursor *in, const struct d9_schema *schema)
{
	for (uint32_t i = 0; i < schema->n_steps; i++) {
		int got = pass_step(in, &schema->steps[i]);

		if (got != 1)
			return got;
	}
	return 1;
}

/* pass_steps() without tests against the end: the caller has made sure of quick_bytes. */
static inline const uint8_t *quick_steps(const uint8_t *p, const struct d9_schema *schema)
{
	const struct d9__step *step = schema->steps, *end = step + schema->n_steps;

	for (; step < end; step++) {
		if (__builtin_expect(step->optional, 0) && !*p++)
			continue;
		/* Lengths that are in the code need not be waited for. */
		if (step->op == D9__STEP_VARINT) {
			p = d9__varint_pass(p);
			if (__builtin_expect(!p, 0))
				return NULL;
		} else if (step->n == 1) {
			p++;
		} else if (step->n == 4) {
			p += 4;
		} else {
			p += step->n;
		}
	}
	return p;
}

/* ---- frames ---- */

static int bad_value(struct d9__decoder *decoder, const struct d9_schema *schema, int err)
{
	if (err == -ELOOP)
		return fail(decoder, -EBADMSG, "event %.60s nests values deeper than %d",
			    schema->name, D9__DECODER_DEPTH_MAX);
	return fail(decoder, -EBADMSG, "event %.60s holds a malformed value", schema->name);
}

static int unusable(struct d9__decoder *decoder, const struct d9_schema *schema)
{
	const struct d9__field_definition *field = &schema->fields[schema->unusable_field];

	return fail(decoder, -EBADMSG, "event %.60s: its field %.40s has the unknown type %u",
		    schema->name, field->name,
		    field->type | (field->optional ? D9__WIRE_OPTIONAL : 0u));
}

static int next_event(struct d9__decoder *decoder, struct d9__cursor *in, struct d9__frame *out)
{
	const struct d9__pool_entry *type;
	const struct d9_schema *schema;
	uint32_t delta = 0;
	uint16_t type_id;

	if (!d9__cursor_u16(in, &type_id))
		return more(decoder, in);
	type = d9__pool_find(&decoder->types, type_id);
	if (__builtin_expect(!type, 0))
		return fail(decoder, -EBADMSG, "event of the undefined type %u", type_id);
	schema = type->data;
	if (__builtin_expect(schema->unusable, 0))
		return unusable(decoder, schema);
	if (schema->has_timestamp && !d9__cursor_u24(in, &delta))
		return more(decoder, in);
	out->payload = in->p;
	if (schema->quick_bytes &&
	    d9__cursor_left(in) >= schema->quick_bytes + D9__VARINT_SLACK) {
		in->p = quick_steps(in->p, schema);
		if (__builtin_expect(!in->p, 0))
			return bad_value(decoder, schema, -EBADMSG);
	} else {
		int got = pass_steps(in, schema);

		if (got < 0)
			return bad_value(decoder, schema, got);
		if (got == 0)
			return more(decoder, in);
	}
	out->kind = D9__FRAME_EVENT;
	out->schema = schema;
	out->timestamp_ns = 0;
	if (!schema->has_timestamp)
		return 1;
	if (__builtin_expect(decoder->base_ns > UINT64_MAX - delta, 0))
		return fail(decoder, -EBADMSG, "the time of an event does not fit in 64 bits");
	decoder->base_ns += delta;
	out->timestamp_ns = decoder->base_ns;
	return 1;
}

void d9__times_see(struct d9__times *times, const struct d9__decoder *decoder,
		   const struct d9__frame *frame)
{
	struct d9__poll_wake wake;
	int got = times->seen ? d9__decoder_wake(decoder, frame, times->seen, &wake) : 0;

	times->out_of_memory |= got < 0;
	if (got != 1)
		return;
	times->wakes++;
	if (wake.ns < times->first_ns)
		times->first_ns = wake.ns;
}

void d9__decoder_pass_events(struct d9__decoder *decoder, struct d9__cursor *in,
			     struct d9__times *times)
{
	struct d9__times sum = *times;
	const struct d9_schema *schema;
	const uint8_t *next;
	uint64_t time_ns;

	while (decoder->started && (schema = d9__decoder_quick(decoder, in, &time_ns)) &&
	       !schema->begins_earlier &&
	       (next = quick_steps(in->p + D9__EVENT_HEAD_LEN, schema))) {
		d9__times_add(&sum, time_ns);
		if (schema->tells_wakes && decoder->tells_wakes)
			d9__times_see(&sum, decoder,
				      &(struct d9__frame) { .kind = D9__FRAME_EVENT,
							    .end = in->end,
							    .schema = schema,
							    .payload = in->p + D9__EVENT_HEAD_LEN,
							    .timestamp_ns = time_ns });
		in->p = next;
		decoder->base_ns = time_ns;
	}
	*times = sum;
}

static int next_header(struct d9__decoder *decoder, struct d9__cursor *in, struct d9__frame *out)
{
	const uint8_t *magic = in->p - 1;
	size_t left = d9__cursor_left(in) + 1;

	if (memcmp(magic, D9__WIRE_MAGIC, left < D9__WIRE_MAGIC_LEN ? left : D9__WIRE_MAGIC_LEN))
		return fail(decoder, -EBADMSG, "%s",
			    decoder->started ? "unknown frame tag 0x54"
					     : "this is not a TRC stream");
	if (!d9__cursor_skip(in, D9__WIRE_HEADER_LEN - 1))
		return more(decoder, in);
	if (magic[4] != D9__WIRE_VERSION)
		return fail(decoder, -EPROTONOSUPPORT,
			    "TRC version %u; this reader knows version %u", magic[4],
			    D9__WIRE_VERSION);
	decoder->started = true;
	decoder->base_ns = 0;
	decoder->tells_wakes = false;
	d9__pool_reset(&decoder->types);
	d9__pool_reset(&decoder->strings);
	d9__pool_reset(&decoder->stacks);
	d9__arena_reset(&decoder->arena);
	out->kind = D9__FRAME_HEADER;
	return 1;
}

static int schema_failed(struct d9__decoder *decoder, int err)
{
	if (err == -ENOMEM)
		return fail(decoder, err, "out of memory");
	return fail(decoder, err, "the schemas need more than %" PRIu64 " bytes of memory",
		    decoder->schemas->limit_bytes);
}

static bool same_definition(const struct d9_schema *schema, const uint8_t *definition, size_t len)
{
	return schema->definition_len == len && memcmp(schema->definition, definition, len) == 0;
}

static int next_schema(struct d9__decoder *decoder, struct d9__cursor *in, struct d9__frame *out)
{
	struct d9__pool_entry *type;
	const uint8_t *definition;
	uint16_t type_id;
	size_t len;
	int err;

	if (!d9__cursor_u16(in, &type_id) || d9__definition_pass(in, &definition, &len) == 0)
		return more(decoder, in);
	out->kind = D9__FRAME_SCHEMA;
	type = d9__pool_find(&decoder->types, type_id);
	if (type) {
		out->schema = type->data;
		if (same_definition(out->schema, definition, len))
			return 1;
		return fail(decoder, -EBADMSG, "type %u, event %.60s, is defined again differently",
			    type_id, out->schema->name);
	}
	err = d9__definitions_intern(decoder->schemas, definition, len, NULL, 0, &out->schema);
	if (err)
		return schema_failed(decoder, err);
	decoder->tells_wakes |=
		out->schema->tells_wakes && out->schema->kind == D9_EVENT_POLL_START;
	err = d9__pool_add(&decoder->types, type_id, out->schema, 0, table_limit(decoder));
	return err ? pool_failed(decoder, err) : 1;
}

static int next_annotations(struct d9__decoder *decoder, struct d9__cursor *in,
			    struct d9__frame *out)
{
	struct d9__pool_entry *type;
	const uint8_t *entries, *bytes;
	const struct d9_schema *schema;
	uint16_t n, len;
	uint32_t value_len;
	uint64_t type_id;
	int got = d9__cursor_varint(in, &type_id);

	if (got < 0)
		return fail(decoder, got, "the type of an annotation does not fit in 64 bits");
	if (got == 0 || !d9__cursor_u16(in, &n) || !d9__cursor_holds(in, n, 8))
		return more(decoder, in);
	entries = in->p;
	for (unsigned i = 0; i < n; i++)
		if (!d9__cursor_skip(in, 2) || !d9__cursor_u16(in, &len) ||
		    !d9__cursor_skip(in, len) || !d9__cursor_blob(in, &bytes, &value_len))
			return more(decoder, in);
	out->kind = D9__FRAME_ANNOTATIONS;
	out->schema = NULL;
	type = type_id <= UINT16_MAX ? d9__pool_find(&decoder->types, (uint32_t)type_id) : NULL;
	if (!type)
		return 1;
	schema = type->data;
	got = d9__definitions_annotate(decoder->schemas, schema, entries, (size_t)(in->p - entries),
				       n, &schema);
	if (got)
		return schema_failed(decoder, got);
	type->data = out->schema = schema;
	return 1;
}

/* Pass the entries of a pool frame, each an id, a count and |unit| bytes per count. */
static bool pass_pool(struct d9__cursor *in, uint32_t n, unsigned unit)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t count;

		if (!d9__cursor_skip(in, 4) || !d9__cursor_u32(in, &count) ||
		    !d9__cursor_skip(in, (uint64_t)count * unit))
			return false;
	}
	return true;
}

static void copy_entry(void *to, const uint8_t *from, uint32_t count, unsigned unit)
{
	uint64_t *addresses = to;

	if (unit == 1) {
		if (count)
			/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the frame was passed, so |from| is in it */
			memcpy(to, from, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		addresses[i] = d9__wire_get_u64(from + (size_t)i * 8);
}

static int define(struct d9__decoder *decoder, struct d9__pool *pool, struct d9__cursor *in,
		  unsigned unit)
{
	const uint8_t *bytes = NULL;
	uint32_t id = 0, count = 0;
	void *copy;
	int err;

	(void)(d9__cursor_u32(in, &id) && d9__cursor_u32(in, &count) &&
	       d9__cursor_take(in, (uint64_t)count * unit, &bytes));
	err = charge(decoder, (uint64_t)count * unit);
	if (err)
		return err;
	copy = d9__arena_alloc(&decoder->arena, (size_t)count * unit);
	if (!copy)
		return fail(decoder, -ENOMEM, "out of memory");
	copy_entry(copy, bytes, count, unit);
	err = d9__pool_add(pool, id, copy, count, table_limit(decoder));
	return err ? pool_failed(decoder, err) : 0;
}

static int next_pool(struct d9__decoder *decoder, struct d9__cursor *in, struct d9__frame *out,
		     struct d9__pool *pool, unsigned unit)
{
	struct d9__cursor entries;
	uint32_t n;

	if (!d9__cursor_u32(in, &n) || !d9__cursor_holds(in, n, 8))
		return more(decoder, in);
	entries = *in;
	if (!pass_pool(in, n, unit))
		return more(decoder, in);
	for (uint32_t i = 0; i < n; i++) {
		int err = define(decoder, pool, &entries, unit);

		if (err)
			return err;
	}
	out->kind = unit == 1 ? D9__FRAME_STRING_POOL : D9__FRAME_STACK_POOL;
	return 1;
}

static int next_reset(struct d9__decoder *decoder, struct d9__cursor *in, struct d9__frame *out)
{
	uint64_t base_ns;

	if (!d9__cursor_u64(in, &base_ns))
		return more(decoder, in);
	decoder->base_ns = base_ns;
	out->kind = D9__FRAME_TIME_RESET;
	return 1;
}

static int next_frame(struct d9__decoder *decoder, struct d9__cursor *in, struct d9__frame *out)
{
	uint8_t tag;

	if (!d9__cursor_u8(in, &tag))
		return more(decoder, in);
	if (__builtin_expect(tag == D9__WIRE_EVENT && decoder->started, 1))
		return next_event(decoder, in, out);
	if (tag == D9__WIRE_MAGIC[0])
		return next_header(decoder, in, out);
	if (!decoder->started)
		return fail(decoder, -EBADMSG, "this is not a TRC stream");
	switch (tag) {
	case D9__WIRE_SCHEMA:
		return next_schema(decoder, in, out);
	case D9__WIRE_STRING_POOL:
		return next_pool(decoder, in, out, &decoder->strings, 1);
	case D9__WIRE_STACK_POOL:
		return next_pool(decoder, in, out, &decoder->stacks, 8);
	case D9__WIRE_TIME_RESET:
		return next_reset(decoder, in, out);
	case D9__WIRE_ANNOTATIONS:
		return next_annotations(decoder, in, out);
	default:
		return fail(decoder, -EBADMSG, "unknown frame tag 0x%02x", tag);
	}
}

void d9__decoder_init(struct d9__decoder *decoder, struct d9__definitions *schemas,
		      uint64_t limit_bytes)
{
	*decoder = (struct d9__decoder) { .schemas = schemas, .limit_bytes = limit_bytes };
}

void d9__decoder_reset(struct d9__decoder *decoder)
{
	decoder->started = false;
	decoder->base_ns = 0;
	decoder->tells_wakes = false;
	d9__pool_reset(&decoder->types);
	d9__pool_reset(&decoder->strings);
	d9__pool_reset(&decoder->stacks);
	d9__arena_reset(&decoder->arena);
}

void d9__decoder_release(struct d9__decoder *decoder)
{
	d9__pool_release(&decoder->types);
	d9__pool_release(&decoder->strings);
	d9__pool_release(&decoder->stacks);
	d9__arena_release(&decoder->arena);
}

/* Aligned, because its place in a cache line alone changes the rate of decoding by 13 %. */
__attribute__((aligned(64))) int d9__decoder_next(struct d9__decoder *decoder,
						  struct d9__cursor *in, struct d9__frame *out)
{
	const struct d9_schema *schema = NULL;
	const uint8_t *start = in->p, *end;
	uint64_t time_ns;
	int got;

	if (decoder->started)
		schema = d9__decoder_quick(decoder, in, &time_ns);
	end = schema ? quick_steps(start + D9__EVENT_HEAD_LEN, schema) : NULL;
	if (__builtin_expect(end != NULL, 1)) {
		decoder->base_ns = time_ns;
		in->p = end;
		*out = (struct d9__frame) { .kind = D9__FRAME_EVENT,
					    .start = start,
					    .end = end,
					    .schema = schema,
					    .payload = start + D9__EVENT_HEAD_LEN,
					    .timestamp_ns = time_ns };
		return 1;
	}
	got = next_frame(decoder, in, out);
	if (got == 1) {
		out->start = start;
		out->end = in->p;
	} else {
		in->p = start;
	}
	return got;
}

const struct d9_schema *d9__decoder_schema(const struct d9__decoder *decoder, uint16_t type_id)
{
	const struct d9__pool_entry *type = d9__pool_find(&decoder->types, type_id);

	return type ? type->data : NULL;
}
