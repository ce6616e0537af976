/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/definition.h"
#include "read/event_copy.h"

/* |len| bytes at |from|, copied; |*to| is what is borrowed now.  False: out of memory. */
static bool copy_bytes(struct d9__arena *arena, const void *from, size_t len, const void **to)
{
	static const uint64_t none[1];
	void *copy;

	*to = none;
	if (!len)
		return true;
	copy = d9__arena_alloc(arena, len);
	if (!copy)
		return false;
	memcpy(copy, from, len);
	*to = copy;
	return true;
}

static bool copy_text(struct d9__arena *arena, struct d9_text *text)
{
	const void *copy;
	bool done = copy_bytes(arena, text->data, text->len, &copy);

	text->data = copy;
	return done;
}

static bool copy_pairs(struct d9__arena *arena, struct d9_value *value)
{
	size_t n = 2 * value->u.string_map.n;
	struct d9_text *pairs = d9__arena_alloc(arena, (n + 1) * sizeof(*pairs));
	bool done = pairs != NULL;

	for (size_t i = 0; done && i < n; i++) {
		pairs[i] = value->u.string_map.pairs[i];
		done = copy_text(arena, &pairs[i]);
	}
	value->u.string_map.pairs = pairs;
	return done;
}

static bool copy_value(struct d9__arena *arena, struct d9_value *value)
{
	const void *copy;
	bool done = true;

	if (!value->present)
		return true;
	switch (value->type) {
	case D9_FIELD_STRING:
	case D9_FIELD_BYTES:
		return copy_text(arena, &value->u.text);
	case D9_FIELD_STACK:
		done = copy_bytes(arena, value->u.stack.addresses,
				  value->u.stack.n * sizeof(*value->u.stack.addresses), &copy);
		value->u.stack.addresses = copy;
		return done;
	case D9_FIELD_STRING_MAP:
		return copy_pairs(arena, value);
	case D9_FIELD_LIST:
	case D9_FIELD_MAP:
		value->present = false;
		return true;
	default:
		return true;
	}
}

int d9__event_copy_borrowed(struct d9__arena *arena, const struct d9_schema *schema,
			    struct d9_value *values)
{
	for (size_t i = 0; i < schema->n_fields; i++)
		if (!copy_value(arena, &values[i]))
			return -ENOMEM;
	return 0;
}

int d9__event_copy(struct d9__arena *arena, const struct d9_event *event, struct d9_event *out)
{
	size_t n = event->schema->n_fields;
	struct d9_value *values = d9__arena_alloc(arena, (n + 1) * sizeof(*values));

	if (!values)
		return -ENOMEM;
	if (n)
		memcpy(values, event->values, n * sizeof(*values));
	*out = *event;
	out->values = values;
	return d9__event_copy_borrowed(arena, event->schema, values);
}
