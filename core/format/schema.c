/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "format/encoder.h"
#include "format/schema.h"

static bool text_equal(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

static unsigned annotation_count(const struct d9__schema *schema)
{
	unsigned n = schema->more_count;

	for (uint16_t i = 0; i < schema->field_count; i++)
		n += (schema->fields[i].unit ? 1u : 0u) + (schema->fields[i].kind ? 1u : 0u);
	return n;
}

bool d9__schema_valid(const struct d9__schema *schema)
{
	if (!schema->name || strlen(schema->name) > UINT16_MAX ||
	    (schema->field_count && !schema->fields))
		return false;
	for (uint16_t i = 0; i < schema->field_count; i++) {
		const struct d9__field *field = &schema->fields[i];
		unsigned type = field->type & ~(unsigned)D9__WIRE_OPTIONAL;

		if (!field->name || strlen(field->name) > UINT16_MAX || type < D9__FIELD_I64 ||
		    type > D9__FIELD_MAP)
			return false;
		if ((field->unit && strlen(field->unit) > UINT16_MAX) ||
		    (field->kind && strlen(field->kind) > UINT16_MAX))
			return false;
	}
	for (uint16_t i = 0; i < schema->more_count; i++)
		if (schema->more[i].field >= schema->field_count ||
		    strlen(schema->more[i].key) > UINT16_MAX ||
		    strlen(schema->more[i].value) > UINT16_MAX)
			return false;
	return annotation_count(schema) <= UINT16_MAX;
}

static size_t annotation_len(const char *key, const char *value)
{
	return value ? 8 + strlen(key) + strlen(value) : 0;
}

size_t d9__schema_encoded_len(const struct d9__schema *schema, uint16_t type_id)
{
	size_t len = 8 + strlen(schema->name);

	for (uint16_t i = 0; i < schema->field_count; i++) {
		len += 3 + strlen(schema->fields[i].name);
		len += annotation_len("unit", schema->fields[i].unit);
		len += annotation_len("kind", schema->fields[i].kind);
	}
	for (uint16_t i = 0; i < schema->more_count; i++)
		len += annotation_len(schema->more[i].key, schema->more[i].value);
	if (annotation_count(schema))
		len += 1 + d9__varint_len(type_id) + 2;
	return len;
}

static uint8_t *put_name(uint8_t *p, const char *name)
{
	size_t len = strlen(name);

	return d9__wire_put_bytes(d9__wire_put_u16(p, (uint16_t)len), name, len);
}

static uint8_t *put_annotation(uint8_t *p, uint16_t field, const char *key, const char *value)
{
	if (!value)
		return p;
	p = put_name(d9__wire_put_u16(p, field), key);
	return d9__wire_put_text(p, value, strlen(value));
}

uint8_t *d9__schema_encode(uint8_t *p, const struct d9__schema *schema, uint16_t type_id)
{
	unsigned annotations = annotation_count(schema);

	*p++ = D9__WIRE_SCHEMA;
	p = put_name(d9__wire_put_u16(p, type_id), schema->name);
	*p++ = 1; /* has_timestamp */
	p = d9__wire_put_u16(p, schema->field_count);
	for (uint16_t i = 0; i < schema->field_count; i++) {
		p = put_name(p, schema->fields[i].name);
		*p++ = schema->fields[i].type;
	}
	if (!annotations)
		return p;
	*p++ = D9__WIRE_ANNOTATIONS;
	p = d9__wire_put_u16(d9__varint_put(p, type_id), (uint16_t)annotations);
	for (uint16_t i = 0; i < schema->field_count; i++) {
		p = put_annotation(p, i, "unit", schema->fields[i].unit);
		p = put_annotation(p, i, "kind", schema->fields[i].kind);
	}
	for (uint16_t i = 0; i < schema->more_count; i++)
		p = put_annotation(p, schema->more[i].field, schema->more[i].key,
				   schema->more[i].value);
	return p;
}

bool d9__schema_equal(const struct d9__schema *a, const struct d9__schema *b)
{
	if (!text_equal(a->name, b->name) || a->field_count != b->field_count ||
	    a->more_count != b->more_count)
		return false;
	for (uint16_t i = 0; i < a->field_count; i++)
		if (a->fields[i].type != b->fields[i].type ||
		    !text_equal(a->fields[i].name, b->fields[i].name) ||
		    !text_equal(a->fields[i].unit, b->fields[i].unit) ||
		    !text_equal(a->fields[i].kind, b->fields[i].kind))
			return false;
	for (uint16_t i = 0; i < a->more_count; i++)
		if (a->more[i].field != b->more[i].field ||
		    !text_equal(a->more[i].key, b->more[i].key) ||
		    !text_equal(a->more[i].value, b->more[i].value))
			return false;
	return true;
}
