/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every batch repeats its schemas.  A set keeps each distinct one once, so that pointers compare
 * and tables can be indexed by id, and so that the plan below is made once and not per batch.
 */
#include "config.h"

#include "format/definition.h"

#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/sort.h"
#include "format/varint.h"

#define DEDUPE_BYTES_MAX 4096
#define QUICK_FIELDS_MAX 64 /* keeps quick_bytes small against a reader's window */

/* Bytes of a value of fixed size, 0 for others. */
static uint16_t fixed_len(uint8_t type)
{
	switch (type) {
	case D9_FIELD_I64:
	case D9_FIELD_F64:
		return 8;
	case D9_FIELD_BOOL:
	case D9_FIELD_U8:
		return 1;
	case D9_FIELD_U16:
		return 2;
	case D9_FIELD_U32:
	case D9_FIELD_POOLED_STACK:
	case D9_FIELD_POOLED_STRING:
		return 4;
	default:
		return 0;
	}
}

static bool valid_type(uint8_t type)
{
	return type >= D9_FIELD_I64 && type <= D9_FIELD_MAP;
}

int d9__definition_pass(struct d9__cursor *cursor, const uint8_t **out, size_t *len)
{
	const uint8_t *start = cursor->p;
	uint16_t n_fields, name_len;

	if (!d9__cursor_u16(cursor, &name_len) || !d9__cursor_skip(cursor, name_len + 1u) ||
	    !d9__cursor_u16(cursor, &n_fields) || !d9__cursor_holds(cursor, n_fields, 3))
		return 0;
	for (unsigned i = 0; i < n_fields; i++)
		if (!d9__cursor_u16(cursor, &name_len) || !d9__cursor_skip(cursor, name_len + 1u))
			return 0;
	*out = start;
	*len = (size_t)(cursor->p - start);
	return 1;
}

/* One entry of an annotation frame; false behind the last. */
struct note {
	uint16_t field, key_len;
	uint32_t value_len;
	const uint8_t *key, *value;
	const uint8_t *start;
	size_t len;
};

static bool next_note(struct d9__cursor *cursor, struct note *note)
{
	note->start = cursor->p;
	if (!d9__cursor_u16(cursor, &note->field) || !d9__cursor_u16(cursor, &note->key_len) ||
	    !d9__cursor_take(cursor, note->key_len, &note->key) ||
	    !d9__cursor_blob(cursor, &note->value, &note->value_len))
		return false;
	note->len = (size_t)(cursor->p - note->start);
	return true;
}

/* ---- building ---- */

/* Where the pieces of a schema under construction go: one block holds them all. */
struct layout {
	struct d9__field_definition *fields;
	struct d9__annotation_definition *annotations;
	struct d9__step *steps;
	uint8_t *bytes; /* texts, then the identity */
};

static const char *keep_text(struct layout *to, const uint8_t *text, size_t len)
{
	char *kept = (char *)to->bytes;

	if (len)
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the frame was passed, so |text| is in it */
		memcpy(kept, text, len);
	kept[len] = '\0';
	to->bytes += len + 1;
	return kept;
}

static const uint8_t *keep_bytes(struct layout *to, const uint8_t *bytes, size_t len)
{
	uint8_t *kept = to->bytes;

	if (len)
		memcpy(kept, bytes, len);
	to->bytes += len;
	return kept;
}

static void fill_fields(struct d9_schema *schema, struct layout *to)
{
	struct d9__cursor in = { schema->definition, schema->definition + schema->definition_len,
				 0 };
	const uint8_t *text = NULL;
	uint16_t len = 0, n = 0;
	uint8_t byte = 0;

	(void)(d9__cursor_u16(&in, &len) && d9__cursor_take(&in, len, &text) &&
	       d9__cursor_u8(&in, &byte) && d9__cursor_u16(&in, &n));
	schema->name = keep_text(to, text, len);
	schema->has_timestamp = byte != 0;
	schema->fields = to->fields;
	for (unsigned i = 0; i < n; i++) {
		(void)(d9__cursor_u16(&in, &len) && d9__cursor_take(&in, len, &text) &&
		       d9__cursor_u8(&in, &byte));
		to->fields[i] = (struct d9__field_definition) {
			.name = keep_text(to, text, len),
			.type = byte & (uint8_t)~D9__WIRE_OPTIONAL,
			.optional = (byte & D9__WIRE_OPTIONAL) != 0,
		};
		if (!valid_type(to->fields[i].type) && !schema->unusable) {
			schema->unusable = true;
			schema->unusable_field = i;
		}
	}
}

/* By field, and as they came: their texts lie in that order. */
static int compare_annotations(const void *left, const void *right)
{
	const struct d9__annotation_definition *a = left, *b = right;

	if (a->field != b->field)
		return a->field < b->field ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

static void fill_annotations(struct d9_schema *schema, struct layout *to)
{
	struct d9__cursor in = { schema->notes, schema->notes + schema->notes_len, 0 };
	struct note note;

	schema->annotations = to->annotations;
	for (uint32_t i = 0; i < schema->n_annotations && next_note(&in, &note); i++)
		to->annotations[i] = (struct d9__annotation_definition) {
			.key = keep_text(to, note.key, note.key_len),
			.value = keep_text(to, note.value, note.value_len),
			.field = note.field,
		};
	if (schema->n_annotations > 1)
		d9__sort(to->annotations, schema->n_annotations, sizeof(*to->annotations),
			 compare_annotations);
}

static struct d9__step step_of(const struct d9__field_definition *field)
{
	uint16_t fixed = fixed_len(field->type);

	if (fixed)
		return (struct d9__step) { D9__STEP_FIXED, field->optional, fixed };
	if (field->type == D9_FIELD_VARINT)
		return (struct d9__step) { D9__STEP_VARINT, field->optional, 0 };
	return (struct d9__step) { D9__STEP_VALUE, field->optional, field->type };
}

static void fill_steps(struct d9_schema *schema, struct d9__step *steps)
{
	bool quick = schema->n_fields <= QUICK_FIELDS_MAX;
	uint32_t n = 0, max = 0;

	for (uint32_t i = 0; i < schema->n_fields && !schema->unusable; i++) {
		struct d9__step step = step_of(&schema->fields[i]);
		struct d9__step *last = n ? &steps[n - 1] : NULL;

		quick = quick && step.op != D9__STEP_VALUE;
		schema->borrows |= step.op == D9__STEP_VALUE ||
				   schema->fields[i].type == D9_FIELD_POOLED_STRING ||
				   schema->fields[i].type == D9_FIELD_POOLED_STACK;
		max += step.optional +
		       (step.op == D9__STEP_VARINT ? (unsigned)D9__VARINT_MAX : step.n);
		/* 60000: stays within 16 bits after the longest fixed field. */
		if (last && last->op == D9__STEP_FIXED && !last->optional &&
		    step.op == D9__STEP_FIXED && !step.optional && last->n < 60000)
			last->n = (uint16_t)(last->n + step.n);
		else
			steps[n++] = step;
	}
	schema->steps = steps;
	schema->n_steps = n;
	schema->quick_bytes = quick && !schema->unusable ? max + 1 : 0;
}

static uint32_t count_fields(const uint8_t *definition)
{
	const uint8_t *behind_name = definition + 2 + d9__wire_get_u16(definition);

	return d9__wire_get_u16(behind_name + 1);
}

static uint32_t count_notes(const uint8_t *notes, size_t len)
{
	struct d9__cursor in = { notes, notes + len, 0 };
	struct note note;
	uint32_t n = 0;

	while (in.p < in.end && next_note(&in, &note))
		n++;
	return n;
}

static struct d9_schema *build(const uint8_t *definition, size_t len, const uint8_t *notes,
			       size_t notes_len, uint64_t limit, uint64_t *bytes, int *err)
{
	uint32_t n_fields = count_fields(definition);
	uint32_t n_notes = notes_len ? count_notes(notes, notes_len) : 0;
	struct d9_schema *schema;
	struct layout to;

	/* Every text grows by its terminator; their lengths on the wire cover the rest. */
	*bytes = sizeof(*schema) + n_fields * (sizeof(*to.fields) + sizeof(*to.steps) + 1) +
		 n_notes * (sizeof(*to.annotations) + 2) + 2 * (len + notes_len) + 1;
	if (limit && *bytes > limit) {
		*err = -EFBIG;
		return NULL;
	}
	schema = d9__calloc(1, *bytes);
	if (!schema) {
		*err = -ENOMEM;
		return NULL;
	}
	to.fields = (struct d9__field_definition *)(schema + 1);
	to.annotations = (struct d9__annotation_definition *)(to.fields + n_fields);
	to.steps = (struct d9__step *)(to.annotations + n_notes);
	to.bytes = (uint8_t *)(to.steps + n_fields);
	schema->n_fields = n_fields;
	schema->n_annotations = n_notes;
	schema->definition = keep_bytes(&to, definition, len);
	schema->definition_len = len;
	schema->notes = keep_bytes(&to, notes, notes_len);
	schema->notes_len = notes_len;
	fill_fields(schema, &to);
	fill_annotations(schema, &to);
	fill_steps(schema, to.steps);
	return schema;
}

/* ---- the set ---- */

static bool same(const struct d9_schema *schema, const uint8_t *definition, size_t len,
		 const uint8_t *notes, size_t notes_len)
{
	return schema->definition_len == len && schema->notes_len == notes_len &&
	       memcmp(schema->definition, definition, len) == 0 &&
	       (!notes_len || memcmp(schema->notes, notes, notes_len) == 0);
}

static uint64_t hash_of(const uint8_t *definition, size_t len, const uint8_t *notes,
			size_t notes_len)
{
	uint64_t secret = d9__hash_secret();

	return d9__hash_bytes(secret, definition, len) ^ d9__hash_bytes(~secret, notes, notes_len);
}

int d9__definitions_intern(struct d9__definitions *set, const uint8_t *definition, size_t len,
			   const uint8_t *notes, size_t notes_len, const struct d9_schema **out)
{
	uint64_t hash = hash_of(definition, len, notes, notes_len), bytes = 0;
	uint64_t left = set->limit_bytes > set->bytes ? set->limit_bytes - set->bytes : 1;
	struct d9_schema *known = d9__table_find(&set->by_hash, hash), *schema;
	int err = -ENOMEM;

	if (known && same(known, definition, len, notes, notes_len)) {
		*out = known;
		return 0;
	}
	if (!d9__array_grow(set->list, set->n))
		return -ENOMEM;
	schema = build(definition, len, notes, notes_len, set->limit_bytes ? left : 0, &bytes,
		       &err);
	if (!schema)
		return err;
	/* Of two with one hash the table keeps the first; the second is built again each time. */
	if (!known && d9__table_add(&set->by_hash, hash, schema)) {
		d9__free(schema);
		return -ENOMEM;
	}
	schema->id = set->n;
	if (set->classify)
		set->classify(schema);
	set->list[set->n++] = schema;
	set->bytes += bytes;
	*out = schema;
	return 0;
}

static bool has_note(const uint8_t *notes, size_t len, const struct note *wanted)
{
	struct d9__cursor in = { notes, notes + len, 0 };
	struct note note;

	while (in.p < in.end && next_note(&in, &note))
		if (note.len == wanted->len && memcmp(note.start, wanted->start, note.len) == 0)
			return true;
	return false;
}

int d9__definitions_annotate(struct d9__definitions *set, const struct d9_schema *schema,
			     const uint8_t *entries, size_t len, uint32_t n,
			     const struct d9_schema **out)
{
	struct d9__cursor in = { entries, entries + len, 0 };
	uint8_t *notes = d9__malloc(schema->notes_len + len + 1);
	size_t notes_len = schema->notes_len;
	struct note note;
	int err;

	if (!notes)
		return -ENOMEM;
	if (notes_len)
		memcpy(notes, schema->notes, notes_len);
	for (uint32_t i = 0; i < n && next_note(&in, &note); i++) {
		if (note.field >= schema->n_fields)
			continue;
		/* A convenience for schemas that a batch repeats; not worth quadratic time. */
		if (schema->notes_len <= DEDUPE_BYTES_MAX &&
		    has_note(schema->notes, schema->notes_len, &note))
			continue;
		memcpy(notes + notes_len, note.start, note.len);
		notes_len += note.len;
	}
	err = d9__definitions_intern(set, schema->definition, schema->definition_len, notes,
				     notes_len, out);
	d9__free(notes);
	return err;
}

void d9__definitions_release(struct d9__definitions *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		d9__free(set->list[i]);
	d9__free(set->list);
	d9__table_release(&set->by_hash);
	*set = (struct d9__definitions) { .classify = set->classify };
}

const char *d9__definition_annotation(const struct d9_schema *schema, size_t i, const char *key)
{
	const struct d9__annotation_definition *all = schema->annotations;
	size_t low = 0, high = schema->n_annotations;
	const char *value = NULL;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle].field < i)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < schema->n_annotations && all[low].field == i; low++)
		if (strcmp(all[low].key, key) == 0)
			value = all[low].value;
	return value;
}

int d9__definition_find(const struct d9_schema *schema, const char *name)
{
	for (uint32_t i = 0; i < schema->n_fields; i++)
		if (strcmp(schema->fields[i].name, name) == 0)
			return (int)i;
	return -1;
}
