/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that spans inherit.  A span is known from its enter on; its values are those of its latest enter or
 * exit.  It is forgotten when it was closed and no child of it is known any more.
 */
#include "config.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "read/span_fields.h"

#define DEPTH_MAX  64   /* of parents; a circle ends there, too */
#define BYTES_MAX  ((uint64_t)64 << 20) /* of all spans that were not closed: no trace has so many */
#define SPAN_BYTES (sizeof(struct span) + 64) /* with its place in the tree */
#define VALUE_BYTES (2 * sizeof(struct value)) /* with what malloc(3) takes for its texts */
#define LOOKED_MAX 1024 /* values of parents, the nearest first, that one event has a look at */

struct value {
	char *name;
	char *text; /* of texts and bytes, else NULL */
	struct d9_value value;
};

struct span {
	uint64_t process, id;
	struct span *parent;
	unsigned uses; /* 1 while it is not closed, and 1 for each child */
	bool closed;
	size_t n;
	struct value *values;         /* in the order of the fields */
	const struct value **by_name; /* the same, sorted; of one name the first field first */
};

struct d9_span_fields {
	void *tree; /* of spans, tsearch(3) */
	uint64_t bytes, left_out; /* that spans take; spans that had no room */
	struct d9_span_field *inherited;
	size_t n, capacity;
};

/* Fields that say which span it is; all others are the program's. */
static bool is_base(const char *name)
{
	static const char *const names[] = { "worker_id", "span_id", "parent_span_id",
					     "span_name", "span_instance_id", "tid" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static int compare(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static struct span *find(const struct d9_span_fields *fields, uint64_t process, uint64_t id)
{
	const struct span key = { .process = process, .id = id };
	void *node = tfind(&key, &fields->tree, compare);

	return node ? *(struct span **)node : NULL;
}

static uint64_t bytes_of(const struct value *value)
{
	return VALUE_BYTES + strlen(value->name) + (value->text ? value->value.u.text.len : 0);
}

static void release_values(struct d9_span_fields *fields, struct span *span)
{
	for (size_t i = 0; fields && i < span->n; i++)
		fields->bytes -= bytes_of(&span->values[i]);
	for (size_t i = 0; i < span->n; i++) {
		free(span->values[i].name);
		free(span->values[i].text);
	}
	free(span->values);
	free(span->by_name);
	span->values = NULL;
	span->by_name = NULL;
	span->n = 0;
}

static void free_span(void *span)
{
	release_values(NULL, span);
	free(span);
}

/* Drop one use of |span|; without a use it goes, and then perhaps its parent. */
static void drop(struct d9_span_fields *fields, struct span *span)
{
	while (span && --span->uses == 0) {
		struct span *parent = span->parent;

		tdelete(span, &fields->tree, compare);
		release_values(fields, span);
		fields->bytes -= SPAN_BYTES;
		free_span(span);
		span = parent;
	}
}

static struct span *add(struct d9_span_fields *fields, uint64_t process, uint64_t id)
{
	struct span *span = calloc(1, sizeof(*span));

	if (!span)
		return NULL;
	fields->bytes += SPAN_BYTES;
	*span = (struct span){ .process = process, .id = id, .uses = 1 };
	if (tsearch(span, &fields->tree, compare))
		return span;
	free(span);
	return NULL;
}

/* ---- values ---- */

/* Texts, bytes, numbers and bools; not what points to more. */
static bool is_plain(const struct d9_value *value)
{
	switch (value->type) {
	case D9_FIELD_STACK:
	case D9_FIELD_POOLED_STACK:
	case D9_FIELD_STRING_MAP:
	case D9_FIELD_LIST:
	case D9_FIELD_MAP:
		return false;
	default:
		return value->present;
	}
}

static bool is_text(const struct d9_value *value)
{
	return value->type == D9_FIELD_STRING || value->type == D9_FIELD_BYTES ||
	       value->type == D9_FIELD_POOLED_STRING;
}

static int keep_value(struct value *kept, const char *name, const struct d9_value *value)
{
	*kept = (struct value){ .name = strdup(name), .value = *value };
	if (kept->name && is_text(value)) {
		kept->text = malloc(value->u.text.len + 1);
		if (kept->text)
			memcpy(kept->text, value->u.text.data, value->u.text.len);
		kept->value.u.text.data = kept->text;
	}
	if (kept->name && (kept->text || !is_text(value)))
		return 0;
	free(kept->name);
	free(kept->text);
	return -ENOMEM;
}

static int compare_names(const void *left, const void *right)
{
	const struct value *a = *(const struct value *const *)left;
	const struct value *b = *(const struct value *const *)right;
	int order = strcmp(a->name, b->name);

	return order ? order : (a > b) - (a < b);
}

static int set_values(struct d9_span_fields *fields, struct span *span, const struct d9_event *event)
{
	size_t n = fields->bytes < BYTES_MAX ? d9_schema_fields(event->schema) : 0;
	struct value *values = calloc(n + 1, sizeof(*values));
	const struct value **by_name = calloc(n + 1, sizeof(*by_name));
	int err = 0;

	if (!values || !by_name) {
		free(values);
		free(by_name);
		return -ENOMEM;
	}
	fields->left_out += fields->bytes >= BYTES_MAX;
	release_values(fields, span);
	span->values = values;
	span->by_name = by_name;
	for (size_t i = 0; !err && i < n; i++) {
		const char *name = d9_schema_field_name(event->schema, i);

		if (is_base(name) || !is_plain(&event->values[i]))
			continue;
		err = keep_value(&values[span->n], name, &event->values[i]);
		by_name[span->n] = &values[span->n];
		fields->bytes += err ? 0 : bytes_of(&values[span->n]);
		span->n += !err;
	}
	qsort(by_name, span->n, sizeof(*by_name), compare_names);
	return err;
}

/* ---- inheriting ---- */

/* The first value of |span| that is called |name|, or NULL. */
static const struct value *find_value(const struct span *span, const char *name)
{
	size_t low = 0, high = span->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a value that counts was kept */
		if (strcmp(span->by_name[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < span->n && !strcmp(span->by_name[low]->name, name) ? span->by_name[low] : NULL;
}

/* Whether |span|, or one of the |n| - 1 parents nearest to it, has a value that is called |name|. */
static bool is_nearer(const struct span *span, unsigned n, const char *name)
{
	for (; n; n--, span = span->parent)
		if (find_value(span, name))
			return true;
	return false;
}

static int append(struct d9_span_fields *fields, const struct value *value, uint64_t span_id)
{
	if (!d9__array_reserve(fields->inherited, &fields->capacity, fields->n, 1))
		return -ENOMEM;
	fields->inherited[fields->n++] = (struct d9_span_field){ value->name, &value->value, span_id };
	return 0;
}

static int inherit(struct d9_span_fields *fields, const struct span *span)
{
	const struct span *parent = span->parent;
	size_t left = LOOKED_MAX;
	int err = 0;

	for (unsigned depth = 1; parent && depth <= DEPTH_MAX; depth++, parent = parent->parent)
		for (size_t i = 0; i < parent->n && left && !err; i++, left--) {
			const struct value *value = &parent->values[i];

			if (find_value(parent, value->name) == value &&
			    !is_nearer(span, depth, value->name))
				err = append(fields, value, parent->id);
		}
	return err;
}

/* ---- events ---- */

/* |span| is a child of |parent| from now on: it was not known before, or the id is used again. */
static void set_parent(struct d9_span_fields *fields, struct span *span, struct span *parent)
{
	struct span *old = span->parent;

	if (!parent || parent == old)
		return;
	span->parent = parent;
	parent->uses++;
	drop(fields, old);
}

static int enter(struct d9_span_fields *fields, uint64_t process, const struct d9_event *event)
{
	uint64_t id = d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0);
	uint64_t parent_id = d9_event_known_u64(event, D9_SPAN_PARENT_SPAN_ID, 0);
	struct span *span = find(fields, process, id);

	if (!span && fields->bytes >= BYTES_MAX) {
		fields->left_out++;
		return 0;
	}
	if (!span) {
		span = add(fields, process, id);
	} else if (span->closed) {
		span->closed = false;
		span->uses++;
	}
	if (!span || set_values(fields, span, event))
		return -ENOMEM;
	if (parent_id && parent_id != id)
		set_parent(fields, span, find(fields, process, parent_id));
	return inherit(fields, span);
}

static int leave(struct d9_span_fields *fields, uint64_t process, const struct d9_event *event)
{
	struct span *span = find(fields, process, d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0));

	if (!span)
		return 0;
	if (set_values(fields, span, event))
		return -ENOMEM;
	return inherit(fields, span);
}

static void close_span(struct d9_span_fields *fields, uint64_t process,
		       const struct d9_event *event)
{
	struct span *span =
		find(fields, process, d9_event_known_u64(event, D9_SPAN_CLOSE_SPAN_ID, 0));

	if (!span || span->closed)
		return;
	span->closed = true;
	drop(fields, span);
}

uint64_t d9__span_fields_left_out(const struct d9_span_fields *fields)
{
	return fields->left_out;
}

int d9_span_fields_take(struct d9_span_fields *fields, uint64_t process,
			const struct d9_event *event)
{
	fields->n = 0;
	switch (event->kind) {
	case D9_EVENT_SPAN_ENTER:
		return enter(fields, process, event);
	case D9_EVENT_SPAN_EXIT:
		return leave(fields, process, event);
	case D9_EVENT_SPAN_CLOSE:
		close_span(fields, process, event);
		return 0;
	default:
		return 0;
	}
}

const struct d9_span_field *d9_span_fields_inherited(const struct d9_span_fields *fields, size_t *n)
{
	*n = fields->n;
	return fields->inherited;
}

int d9_span_fields_new(struct d9_span_fields **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void d9_span_fields_free(struct d9_span_fields *fields)
{
	if (!fields)
		return;
	tdestroy(fields->tree, free_span);
	free(fields->inherited);
	free(fields);
}
