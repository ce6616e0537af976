/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/explained.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "format/values.h"
#include "stage/frames.h"
#include "text/shown.h"

/* ---- sets of names ---- */

/* The set |name| of |in|, made at its first sight; NULL: out of memory. */
static struct json_object *set_of(struct json_object *in, const char *name)
{
	struct json_object *set = json_object_object_get(in, name);

	if (set)
		return set;
	set = json_object_new_object();
	if (!set || !json_object_object_add(in, name, set))
		return set;
	json_object_put(set);
	return NULL;
}

static int put(struct json_object *set, const char *name)
{
	return set && !json_object_object_add(set, name, NULL) ? 0 : -ENOMEM;
}

/* ---- a segment ---- */

static int take_schema(struct d9__explained *explained, const struct d9_schema *schema)
{
	struct json_object *fields = set_of(explained->types, schema->name);
	int err = fields ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < schema->n_fields && !err; i++)
		err = put(fields, schema->fields[i].name);
	return err;
}

static int take_metadata(struct d9__explained *explained, struct d9__values *values, struct d9__frames_in *in,
			 const struct d9__frame *frame)
{
	int32_t at = frame->schema->known[D9_SEGMENT_METADATA_ENTRIES];
	int err = d9__values_build(values, &in->reader.decoder, frame);
	const struct d9_value *entries = at < 0 ? NULL : &values->items[at];

	for (size_t i = 0; !err && entries && entries->present && i < entries->u.string_map.n; i++) {
		const struct d9_text *key = &entries->u.string_map.pairs[2 * i];
		char *name = strndup(key->data, key->len);

		err = name ? put(explained->metadata, name) : -ENOMEM;
		free(name);
	}
	return err;
}

static int take_all(struct d9__explained *explained, int fd)
{
	struct d9__frames_in in;
	struct d9__values values = { 0 };
	struct d9__frame frame;
	int err = d9__frames_open(&in, fd), got = 0;

	while (!err && (got = d9__frames_next(&in, &frame)) == 1) {
		if (frame.kind != D9__FRAME_EVENT)
			continue;
		err = take_schema(explained, frame.schema);
		if (!err && frame.schema->kind == D9_EVENT_SEGMENT_METADATA)
			err = take_metadata(explained, &values, &in, &frame);
	}
	d9__values_release(&values);
	d9__frames_release(&in);
	return err ? err : got;
}

static struct json_object *made(struct json_object **set)
{
	if (!*set)
		*set = json_object_new_object();
	return *set;
}

int d9__explained_add(struct d9__explained *explained, int fd, const struct d9__bucket_pair *pairs, size_t n)
{
	int err = made(&explained->types) && made(&explained->metadata) && made(&explained->pairs) ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		err = put(explained->pairs, pairs[i].name);
	return err ? err : take_all(explained, fd);
}

/* ---- telling ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Its names, sorted, borrowed; NULL: out of memory. */
static const char **sorted(struct json_object *set, size_t *n)
{
	const char **names = calloc((size_t)json_object_object_length(set) + 1, sizeof(*names));

	*n = 0;
	if (!names)
		return NULL;
	json_object_object_foreach(set, name, value) {
		(void)value;
		names[(*n)++] = name;
	}
	qsort(names, *n, sizeof(*names), compare);
	return names;
}

static void print_name(const char *name, FILE *out)
{
	d9__shown_write(out, name, strlen(name));
}

static void print_set(const char *title, struct json_object *set, FILE *out)
{
	size_t n;
	const char **names = sorted(set, &n);

	print_name(title, out);
	for (size_t i = 0; names && i < n; i++) {
		fputs(i ? ", " : ": ", out);
		print_name(names[i], out);
	}
	putc('\n', out);
	free(names);
}

void d9__explained_print(const struct d9__explained *explained, FILE *out)
{
	size_t n;
	const char **types = explained->types ? sorted(explained->types, &n) : NULL;

	for (size_t i = 0; types && i < n; i++)
		print_set(types[i], json_object_object_get(explained->types, types[i]), out);
	free(types);
	if (explained->metadata)
		print_set("metadata of segments", explained->metadata, out);
	if (explained->pairs)
		print_set("beside objects", explained->pairs, out);
}

void d9__explained_release(struct d9__explained *explained)
{
	json_object_put(explained->types);
	json_object_put(explained->metadata);
	json_object_put(explained->pairs);
	*explained = (struct d9__explained) { 0 };
}
