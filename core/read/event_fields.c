/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and events as <dial9/reader.h> shows them. */
#include "config.h"

#include <string.h>

#include <dial9/reader.h>

#include "format/definition.h"

/* ---- schemas ---- */

const char *d9_schema_name(const struct d9_schema *schema)
{
	return schema->name;
}

size_t d9_schema_fields(const struct d9_schema *schema)
{
	return schema->n_fields;
}

const char *d9_schema_field_name(const struct d9_schema *schema, size_t i)
{
	return i < schema->n_fields ? schema->fields[i].name : NULL;
}

enum d9_field_type d9_schema_field_type(const struct d9_schema *schema, size_t i, bool *optional)
{
	if (i >= schema->n_fields)
		return (enum d9_field_type)0;
	if (optional)
		*optional = schema->fields[i].optional;
	return (enum d9_field_type)schema->fields[i].type;
}

const char *d9_schema_annotation(const struct d9_schema *schema, size_t i, const char *key)
{
	return d9__definition_annotation(schema, i, key);
}

int d9_schema_find(const struct d9_schema *schema, const char *name)
{
	return d9__definition_find(schema, name);
}

uint32_t d9_schema_id(const struct d9_schema *schema)
{
	return schema->id;
}

/* ---- events ---- */

const char *d9_event_name(const struct d9_event *event)
{
	return event->schema->name;
}

const struct d9_value *d9_event_field(const struct d9_event *event, const char *name)
{
	int i = d9__definition_find(event->schema, name);

	return i >= 0 && event->values[i].present ? &event->values[i] : NULL;
}

static uint64_t integer_of(const struct d9_value *value, uint64_t fallback)
{
	if (!value)
		return fallback;
	switch (value->type) {
	case D9_FIELD_I64:
		return value->u.i64 >= 0 ? (uint64_t)value->u.i64 : fallback;
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		return value->u.u64;
	case D9_FIELD_BOOL:
		return value->u.boolean;
	default:
		return fallback;
	}
}

uint64_t d9_event_u64(const struct d9_event *event, const char *name, uint64_t fallback)
{
	return integer_of(d9_event_field(event, name), fallback);
}

const struct d9_value *d9_event_known(const struct d9_event *event, unsigned k)
{
	int32_t i = k < D9__DEFINITION_KNOWN_MAX ? event->schema->known[k] : -1;

	return i >= 0 && event->values[i].present ? &event->values[i] : NULL;
}

uint64_t d9_event_known_u64(const struct d9_event *event, unsigned k, uint64_t fallback)
{
	return integer_of(d9_event_known(event, k), fallback);
}
