/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps of a bucket: which segments one has, by its manifest, in which anybody could have written anything. */
#include "config.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "serve/bucket_dump.h"
#include "serve/bucket_fetch.h"
#include "serve/bucket_item.h"
#include "serve/bucket_parts.h"
#include "serve/bucket_request.h"

#define MANIFEST_MAX (1 << 20)
#define SEGMENTS_MAX 200
#define DUMPS_MAX    1000
#define DEPTH_MAX    16

static struct d9__bucket_dump *dump_of(struct d9__bucket_source *source, const char *id)
{
	struct d9__bucket_dump *added;

	for (size_t i = 0; i < source->n_dumps; i++)
		if (!strcmp(source->dumps[i].id, id))
			return &source->dumps[i];
	if (source->n_dumps == DUMPS_MAX || !d9__array_grow(source->dumps, source->n_dumps))
		return NULL;
	added = &source->dumps[source->n_dumps];
	*added = (struct d9__bucket_dump) { .id = strdup(id) };
	source->n_dumps += added->id != NULL;
	return added->id ? added : NULL;
}

/* A pending question about a segment; |key| of it is owned. */
struct question {
	char *id, *key; /* of the dump; owned */
};

static void free_question(struct question *question)
{
	free(question->id);
	free(question->key);
	free(question);
}

/* Its size: no list has told it. */
static void take_head(struct d9__bucket_source *source, void *of, const struct d9__bucket_answer *answer)
{
	struct question *question = of;
	struct d9__bucket_dump *dump = dump_of(source, question->id);
	struct d9__bucket_item *item = NULL;

	source->listing--;
	if (answer->class == D9__BUCKET_ABSENT || answer->class == D9__BUCKET_REFUSED || d9__bucket_is_good(source, answer))
		item = answer->class == D9__BUCKET_DONE ? d9__bucket_item_add(source, question->key, answer->bytes, answer->modified) : NULL;
	else
		source->failed = true;
	if (dump) {
		dump->asked--;
		if (item && item->parsed.kind == D9__STORED_SEGMENT && (dump->names[dump->n] = strdup(item->name)))
			dump->n++;
	}
	free_question(question);
}

static void ask_head(struct d9__bucket_source *source, struct d9__bucket_dump *dump, const char *key)
{
	struct question *question = calloc(1, sizeof(*question));
	struct d9__bucket_request *request = question ? d9__bucket_request(source, take_head, question) : NULL;

	if (!request) {
		free(question);
		source->truncated = true;
		return;
	}
	question->id = strdup(dump->id);
	question->key = strdup(key);
	if (!question->id || !question->key) {
		request->token = 0;
		free_question(question);
		return;
	}
	dump->asked++;
	source->listing++;
	source->n_lists++;
	d9__bucket_requested(source, request, d9__bucket_head(source->bucket, request->token, key));
}

/* The segments that |text| lists. */
static void take_manifest(struct d9__bucket_source *source, struct d9__bucket_dump *dump, const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *of = tokener ? json_tokener_parse_ex(tokener, text, (int)len) : NULL;
	struct json_object *keys = json_object_is_type(of, json_type_object) ? json_object_object_get(of, "keys") : NULL;
	size_t n = json_object_is_type(keys, json_type_array) ? json_object_array_length(keys) : 0;

	source->truncated |= n > SEGMENTS_MAX;
	dump->names = calloc(SEGMENTS_MAX, sizeof(*dump->names));
	for (size_t i = 0; dump->names && i < n && i < SEGMENTS_MAX; i++) {
		struct json_object *key = json_object_array_get_idx(keys, i);
		const char *own = json_object_is_type(key, json_type_string) ? json_object_get_string(key) : "";
		struct d9__stored_key parsed;
		size_t skip = strlen(source->prefix);

		if (!strncmp(own, source->prefix, skip) && d9__stored_key_parse(own + skip, &parsed))
			ask_head(source, dump, own);
		else
			source->n_strange++;
	}
	json_object_put(of);
	if (tokener)
		json_tokener_free(tokener);
}

static void read_manifest(struct d9__bucket_source *source, struct d9__bucket_dump *dump, const char *name)
{
	int fd = d9__bucket_open(source, name);
	char *text = fd < 0 ? NULL : malloc(MANIFEST_MAX);
	ssize_t len = text ? pread(fd, text, MANIFEST_MAX, 0) : 0;

	if (fd >= 0)
		close(fd);
	if (len > 0)
		take_manifest(source, dump, text, (size_t)len);
	free(text);
	dump->read = true;
}

static void fail(struct d9__bucket_source *source, const char *why)
{
	source->failed = true;
	snprintf(source->why, sizeof(source->why), "%s", why);
}

static void on_manifest(void *context, const char *why)
{
	struct d9__bucket_source *source = context;

	source->manifest_asked = false;
	if (why)
		fail(source, why);
}

/* Look for the manifest |key| of |dump|; false: its name is none. */
static bool look_for(struct d9__bucket_source *source, struct d9__bucket_dump *dump, const char *name)
{
	struct d9__stored_key parsed;
	char key[D9__BUCKET_PREFIX + D9__STORED_NAME];

	dump->looked = true;
	if (!d9__stored_key_parse(name, &parsed) || parsed.kind != D9__STORED_DUMP)
		return false;
	snprintf(key, sizeof(key), "%s%s", source->prefix, name);
	ask_head(source, dump, key);
	return dump->asked;
}

/* True if the manifest is here, or never will be. */
static bool manifest_step(struct d9__bucket_source *source, struct d9__bucket_dump *dump, const char *name)
{
	int fd;

	if (!d9__bucket_item_find(source, name)) {
		if (!dump->looked && look_for(source, dump, name))
			return false;
		dump->looked = false;
		fail(source, "there is no such dump in the bucket");
		return true;
	}
	fd = d9__bucket_open(source, name);
	if (fd >= 0) {
		close(fd);
		read_manifest(source, dump, name);
		return !dump->asked;
	}
	source->manifest_asked = true;
	d9__bucket_fetch(source, name, on_manifest, source);
	return source->failed;
}

bool d9__bucket_dump_step(struct d9__bucket_source *source, const char *id)
{
	struct d9__bucket_dump *dump = dump_of(source, id);
	char name[D9__STORED_PART + 16];

	if (source->manifest_asked || (dump && dump->asked))
		return false;
	if (!dump || dump->read)
		return true;
	if (snprintf(name, sizeof(name), "dumps/%s.json", id) >= (int)sizeof(name)) {
		fail(source, "there is no such dump in the bucket");
		return true;
	}
	return manifest_step(source, dump, name);
}

bool d9__bucket_is_of_dump(void *context, const char *id, const char *name)
{
	const struct d9__bucket_source *source = context;

	for (size_t i = 0; i < source->n_dumps; i++)
		for (size_t k = 0; !strcmp(source->dumps[i].id, id) && k < source->dumps[i].n; k++)
			if (!strcmp(source->dumps[i].names[k], name))
				return true;
	return false;
}

void d9__bucket_free_dumps(struct d9__bucket_source *source)
{
	for (size_t i = 0; i < source->n_dumps; i++) {
		for (size_t k = 0; k < source->dumps[i].n; k++)
			free(source->dumps[i].names[k]);
		free(source->dumps[i].names);
		free(source->dumps[i].id);
	}
	free(source->dumps);
}
