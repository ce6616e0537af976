/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "analyze/span_roles.h"
#include "base/time.h"

struct roles {
	size_t start, length, name; /* fields; SIZE_MAX: none */
	const char *family;
	bool bad; /* two fields have one role, or a field has a type that does not fit its role */
};

static bool is_number(const struct d9_schema *schema, size_t i)
{
	switch (d9_schema_field_type(schema, i, NULL)) {
	case D9_FIELD_I64:
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		return true;
	default:
		return false;
	}
}

static bool is_text(const struct d9_schema *schema, size_t i)
{
	enum d9_field_type type = d9_schema_field_type(schema, i, NULL);

	return type == D9_FIELD_STRING || type == D9_FIELD_POOLED_STRING;
}

static void take(struct roles *roles, size_t *field, size_t i, bool fits)
{
	roles->bad |= *field != SIZE_MAX || !fits;
	*field = i;
}

static struct roles roles_of(const struct d9_schema *schema)
{
	struct roles roles = { SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL, false };

	for (size_t i = 0; i < d9_schema_fields(schema); i++) {
		const char *role = d9_schema_annotation(schema, i, "dial9.role");
		const char *family;

		if (!role)
			continue;
		if (!strcmp(role, "span.start"))
			take(&roles, &roles.start, i, is_number(schema, i));
		else if (!strcmp(role, "span.duration"))
			take(&roles, &roles.length, i, is_number(schema, i));
		else if (!strcmp(role, "span.name"))
			take(&roles, &roles.name, i, is_text(schema, i));
		family = d9_schema_annotation(schema, i, "dial9.span.type");
		if (family)
			roles.family = family;
	}
	return roles;
}

/* Field |i| in ns.  False: it is absent or negative, or its unit is not one of time. */
static bool time_of(const struct d9_event *event, size_t i, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", D9__US_NS }, { "ms", D9__MS_NS }, { "s", D9__SECOND_NS } };
	const char *unit = i == SIZE_MAX ? NULL : d9_schema_annotation(event->schema, i, "unit");
	uint64_t n;

	if (i == SIZE_MAX || !event->values[i].present ||
	    (event->values[i].type == D9_FIELD_I64 && event->values[i].u.i64 < 0))
		return false;
	n = event->values[i].type == D9_FIELD_I64 ? (uint64_t)event->values[i].u.i64 : event->values[i].u.u64;
	for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++)
		if (!unit ? k == 0 : !strcmp(unit, units[k].name))
			return !__builtin_mul_overflow(n, units[k].ns, ns);
	return false;
}

static bool is_blank(struct d9_text text)
{
	size_t i = 0;

	while (i < text.len && isspace((unsigned char)text.data[i]))
		i++;
	return i == text.len;
}

int d9__span_whole(struct d9__spans *spans, const struct d9_event *event)
{
	struct roles roles = roles_of(event->schema);
	const char *schema = d9_event_name(event);
	struct d9__span_end end = { .ns = event->timestamp_ns,
				    .origin = roles.family ? roles.family : "single-event",
				    .name = schema, .name_len = strlen(schema) };
	uint64_t took_ns = 0;
	bool started = !roles.bad && time_of(event, roles.start, &end.start_ns);
	bool took = !roles.bad && time_of(event, roles.length, &took_ns);

	if (!started && !took)
		return 0;
	if (!event->has_timestamp && __builtin_add_overflow(end.start_ns, took_ns, &end.ns))
		return 0;
	if (!event->has_timestamp && !(started && took))
		return 0;
	if (!started)
		end.start_ns = took_ns > end.ns ? 0 : end.ns - took_ns;
	if (end.start_ns > end.ns)
		return 0;
	end.active_ns = end.ns - end.start_ns;
	if (roles.name != SIZE_MAX && event->values[roles.name].present && !is_blank(event->values[roles.name].u.text)) {
		end.name = event->values[roles.name].u.text.data;
		end.name_len = event->values[roles.name].u.text.len;
	}
	return d9__span_add(spans, &end);
}
