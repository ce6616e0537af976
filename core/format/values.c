/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/sort.h"
#include "format/varint.h"

struct build {
	struct d9__values *values;
	const struct d9__decoder *decoder;
	struct d9__cursor in;
	int err; /* quick_value() */
};

static int read_value(struct build *build, uint8_t type, struct d9_value *value, unsigned depth);

/* "<unresolved pool#7>": what the original's readers show. */
static int unresolved_text(struct build *build, uint32_t id, struct d9_value *value)
{
	size_t room = sizeof("<unresolved pool#4294967295>");
	char *text = d9__arena_alloc(&build->values->arena, room);

	if (!text)
		return -ENOMEM;
	value->u.text.len = (size_t)snprintf(text, room, "<unresolved pool#%u>", id);
	value->u.text.data = text;
	value->unresolved = true;
	build->values->unresolved++;
	return 0;
}

static int read_pooled_string(struct build *build, struct d9_value *value)
{
	const struct d9__pool_entry *entry;
	uint32_t id;

	if (!d9__cursor_u32(&build->in, &id))
		return -EBADMSG;
	value->type = D9_FIELD_STRING;
	entry = d9__pool_find(&build->decoder->strings, id);
	if (!entry)
		return unresolved_text(build, id, value);
	value->u.text.data = entry->data;
	value->u.text.len = entry->n;
	return 0;
}

static int read_pooled_stack(struct build *build, struct d9_value *value)
{
	const struct d9__pool_entry *entry;
	uint32_t id;

	if (!d9__cursor_u32(&build->in, &id))
		return -EBADMSG;
	value->type = D9_FIELD_STACK;
	value->u.stack.addresses = NULL;
	value->u.stack.n = 0;
	entry = d9__pool_find(&build->decoder->stacks, id);
	if (entry) {
		value->u.stack.addresses = entry->data;
		value->u.stack.n = entry->n;
	} else {
		value->unresolved = true;
		build->values->unresolved++;
	}
	return 0;
}

static int read_stack(struct build *build, struct d9_value *value)
{
	const uint8_t *bytes;
	uint64_t *addresses;
	uint32_t n;

	if (!d9__cursor_u32(&build->in, &n) ||
	    !d9__cursor_take(&build->in, (uint64_t)n * 8, &bytes))
		return -EBADMSG;
	addresses = d9__arena_alloc(&build->values->arena, (size_t)n * 8);
	if (!addresses)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		addresses[i] = d9__wire_get_u64(bytes + (size_t)i * 8);
	value->u.stack.addresses = addresses;
	value->u.stack.n = n;
	return 0;
}

static int read_text(struct build *build, struct d9_text *text)
{
	const uint8_t *bytes;
	uint32_t len;

	if (!d9__cursor_blob(&build->in, &bytes, &len))
		return -EBADMSG;
	text->data = (const char *)bytes;
	text->len = len;
	return 0;
}

static int compare_keys(const void *left, const void *right)
{
	const struct d9_text *a = *(const struct d9_text *const *)left;
	const struct d9_text *b = *(const struct d9_text *const *)right;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return a->len ? memcmp(a->data, b->data, a->len) : 0;
}

/*
 * Add to |*repeats| how many of the |n| |pairs| of a StringMap have the key of an earlier one: all
 * are kept, and the last counts.  By sorting, because a damaged trace may have a million.  0 or
 * -ENOMEM.
 */
static int count_repeats(const struct d9_text *pairs, size_t n, struct d9__arena *arena, uint64_t *repeats)
{
	const struct d9_text **keys;

	if (n < 2)
		return 0;
	keys = d9__arena_alloc(arena, n * sizeof(struct d9_text *));
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		keys[i] = &pairs[2 * i];
	d9__sort(keys, n, sizeof(struct d9_text *), compare_keys);
	for (size_t i = 1; i < n; i++)
		*repeats += !compare_keys(&keys[i - 1], &keys[i]);
	return 0;
}

static int read_string_map(struct build *build, struct d9_value *value)
{
	struct d9_text *pairs;
	uint32_t n;
	int err = 0;

	if (!d9__cursor_u32(&build->in, &n) || !d9__cursor_holds(&build->in, n, 8))
		return -EBADMSG;
	pairs = d9__arena_alloc(&build->values->arena, 2 * (size_t)n * sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; i < 2 * (size_t)n && !err; i++)
		err = read_text(build, &pairs[i]);
	value->u.string_map.pairs = pairs;
	value->u.string_map.n = n;
	return err ? err : count_repeats(pairs, n, &build->values->arena, &build->values->repeats);
}

static int read_tagged(struct build *build, struct d9_value *value, unsigned depth)
{
	uint8_t type;

	if (!d9__cursor_u8(&build->in, &type))
		return -EBADMSG;
	return read_value(build, type, value, depth + 1);
}

static int read_list(struct build *build, struct d9_value *value, unsigned depth)
{
	struct d9_value *items;
	uint32_t n;
	int err = 0;

	if (depth >= D9__DECODER_DEPTH_MAX || !d9__cursor_u32(&build->in, &n) ||
	    !d9__cursor_holds(&build->in, n, 2))
		return -EBADMSG;
	items = d9__arena_alloc(&build->values->arena, n * sizeof(*items));
	if (!items)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !err; i++)
		err = read_tagged(build, &items[i], depth);
	value->u.list.items = items;
	value->u.list.n = n;
	return err;
}

static int read_map(struct build *build, struct d9_value *value, unsigned depth)
{
	struct d9_map_entry *entries;
	uint32_t n;
	int err = 0;

	if (depth >= D9__DECODER_DEPTH_MAX || !d9__cursor_u32(&build->in, &n) ||
	    !d9__cursor_holds(&build->in, n, 4))
		return -EBADMSG;
	entries = d9__arena_alloc(&build->values->arena, n * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !err; i++) {
		err = read_tagged(build, &entries[i].key, depth);
		if (!err)
			err = read_tagged(build, &entries[i].value, depth);
	}
	value->u.map.entries = entries;
	value->u.map.n = n;
	return err;
}

static int read_number(struct d9__cursor *in, uint8_t type, struct d9_value *value)
{
	const uint8_t *p;

	switch (type) {
	case D9_FIELD_VARINT:
		return d9__cursor_varint(in, &value->u.u64) == 1 ? 0 : -EBADMSG;
	case D9_FIELD_U8:
	case D9_FIELD_BOOL:
		if (!d9__cursor_take(in, 1, &p))
			return -EBADMSG;
		if (type == D9_FIELD_BOOL)
			value->u.boolean = *p != 0;
		else
			value->u.u64 = *p;
		return 0;
	case D9_FIELD_U16:
		if (!d9__cursor_take(in, 2, &p))
			return -EBADMSG;
		value->u.u64 = d9__wire_get_u16(p);
		return 0;
	case D9_FIELD_U32:
		if (!d9__cursor_take(in, 4, &p))
			return -EBADMSG;
		value->u.u64 = d9__wire_get_u32(p);
		return 0;
	default: /* I64 and F64: the same eight bytes */
		return d9__cursor_u64(in, &value->u.u64) ? 0 : -EBADMSG;
	}
}

static int read_value(struct build *build, uint8_t type, struct d9_value *value, unsigned depth)
{
	value->type = (enum d9_field_type)type;
	value->present = true;
	value->unresolved = false;
	switch (type) {
	case D9_FIELD_I64:
	case D9_FIELD_F64:
	case D9_FIELD_BOOL:
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		return read_number(&build->in, type, value);
	case D9_FIELD_POOLED_STRING:
		return read_pooled_string(build, value);
	case D9_FIELD_POOLED_STACK:
		return read_pooled_stack(build, value);
	case D9_FIELD_STRING:
	case D9_FIELD_BYTES:
		return read_text(build, &value->u.text);
	case D9_FIELD_STACK:
		return read_stack(build, value);
	case D9_FIELD_STRING_MAP:
		return read_string_map(build, value);
	case D9_FIELD_LIST:
		return read_list(build, value, depth);
	case D9_FIELD_MAP:
		return read_map(build, value, depth);
	default:
		return -EBADMSG;
	}
}

static void set_absent(const struct d9__field_definition *field, struct d9_value *value)
{
	*value = (struct d9_value) { .type = (enum d9_field_type)field->type };
	if (field->type == D9_FIELD_POOLED_STRING)
		value->type = D9_FIELD_STRING;
	if (field->type == D9_FIELD_POOLED_STACK)
		value->type = D9_FIELD_STACK;
}

static int read_field(struct build *build, const struct d9__field_definition *field,
		      struct d9_value *value)
{
	uint8_t present = 1;

	if (field->optional && !d9__cursor_u8(&build->in, &present))
		return -EBADMSG;
	if (present)
		return read_value(build, field->type, value, 0);
	set_absent(field, value);
	return 0;
}

int d9__values_room_slow(struct d9__values *values, size_t n)
{
	if (!d9__array_reserve(values->own, &values->own_capacity, 0, n))
		return -ENOMEM;
	d9__values_put_at(values, values->own, values->own_capacity);
	return 0;
}

int d9__values_build(struct d9__values *values, const struct d9__decoder *decoder,
		     const struct d9__frame *frame)
{
	struct build build = { values, decoder, { frame->payload, frame->end, 0 }, 0 };
	const struct d9_schema *schema = frame->schema;
	int err = d9__values_room(values, schema->n_fields);

	d9__arena_reset(&values->arena);
	for (uint32_t i = 0; i < schema->n_fields && !err; i++)
		err = read_field(&build, &schema->fields[i], &values->items[i]);
	return err;
}

/* ---- without tests against the end: it is far enough ---- */

/* Of a type that has a fixed size.  Behind it; NULL after an error. */
static inline const uint8_t *quick_value(struct build *build, uint8_t type, const uint8_t *p,
					 struct d9_value *value)
{
	const struct d9__pool_entry *entry;

	switch (type) {
	case D9_FIELD_BOOL:
		value->u.boolean = *p != 0;
		return p + 1;
	case D9_FIELD_U8:
		value->u.u64 = *p;
		return p + 1;
	case D9_FIELD_U16:
		value->u.u64 = d9__wire_get_u16(p);
		return p + 2;
	case D9_FIELD_U32:
		value->u.u64 = d9__wire_get_u32(p);
		return p + 4;
	case D9_FIELD_POOLED_STRING:
		entry = d9__pool_find(&build->decoder->strings, d9__wire_get_u32(p));
		if (__builtin_expect(entry != NULL, 1)) {
			value->type = D9_FIELD_STRING;
			value->u.text.data = entry->data;
			value->u.text.len = entry->n;
			return p + 4;
		}
		build->in = (struct d9__cursor) { p, p + 4, 0 };
		build->err = read_pooled_string(build, value);
		return build->err ? NULL : p + 4;
	case D9_FIELD_POOLED_STACK:
		build->in = (struct d9__cursor) { p, p + 4, 0 };
		build->err = read_pooled_stack(build, value);
		return build->err ? NULL : p + 4;
	default: /* I64 and F64: the same eight bytes */
		value->u.u64 = d9__wire_get_u64(p);
		return p + 8;
	}
}

int d9__values_quick(struct d9__values *values, const struct d9__decoder *decoder,
		     struct d9__frame *frame)
{
	const struct d9_schema *schema = frame->schema;
	const struct d9__field_definition *field = schema->fields, *end = field + schema->n_fields;
	struct build build = { .values = values, .decoder = decoder };
	const uint8_t *p = frame->payload;
	struct d9_value *value;

	if (d9__values_room(values, schema->n_fields))
		return -ENOMEM;
	if (__builtin_expect(values->arena.given_bytes != 0, 0))
		d9__arena_reset(&values->arena);
	for (value = values->items; field < end && p; field++, value++) {
		value->type = (enum d9_field_type)field->type;
		value->present = true;
		value->unresolved = false;
		if (__builtin_expect(field->optional, 0) && !*p++) {
			set_absent(field, value);
			continue;
		}
		if (__builtin_expect(field->type == D9_FIELD_VARINT, 1))
			value->u.u64 = d9__varint_get(&p);
		else
			p = quick_value(&build, field->type, p, value);
	}
	frame->end = p;
	if (__builtin_expect(!p, 0))
		return build.err ? build.err : -EBADMSG;
	return 0;
}

void d9__values_release(struct d9__values *values)
{
	d9__free(values->own);
	d9__arena_release(&values->arena);
	*values = (struct d9__values) { 0 };
}
