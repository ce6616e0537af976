/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "serve/bucket_item.h"
#include "serve/bucket_parts.h"
#include "serve/bucket_services.h"

#define ITEMS_MAX 100000 /* about 200 MB with the server's own memory for them */
#define USUAL_MS  60000	 /* that a segment lasts, where nothing tells more */

struct d9__bucket_item *d9__bucket_item_find(const struct d9__bucket_source *source,
					     const char *name)
{
	struct d9__bucket_item *item = d9__table_find(&source->by_name, d9__hash_text(name));

	return item && !strcmp(item->name, name) ? item : NULL;
}

void d9__bucket_item_free(struct d9__bucket_item *item)
{
	free(item->name);
	free(item->key);
	free(item->process);
	free(item);
}

static void set_facts(struct d9__bucket_item *item)
{
	const struct d9__stored_key *parsed = &item->parsed;
	int64_t from_ms = parsed->begins_s * 1000, to_ms = from_ms + D9__STORED_HOUR_S * 1000 - 1,
		stored_ms = item->modified_s * 1000;

	/* How long a segment lasts its key does not tell; it was stored after its end. */
	if (parsed->kind == D9__STORED_SEGMENT) {
		to_ms = from_ms + USUAL_MS;
		if (stored_ms < to_ms)
			to_ms = stored_ms > from_ms ? stored_ms : from_ms;
	} else if (stored_ms > from_ms && stored_ms < to_ms) {
		/* A summary that a process has left in the middle of an hour tells of nothing
		 * later. */
		to_ms = stored_ms;
	}
	item->facts = (struct d9__source_facts) { .service = parsed->service,
						  .host = parsed->instance,
						  .process = item->process,
						  .from_ms = from_ms,
						  .to_ms = to_ms,
						  .segments = parsed->segments,
						  .missing = parsed->missing,
						  .bytes = parsed->bytes,
						  .worst_ms = parsed->worst_ms };
	/* An hour is one even if it claims to be empty. */
	if (parsed->kind == D9__STORED_HOUR && !parsed->segments)
		item->facts.segments = 1;
}

/* True if summary |one| of an hour replaces |other|: it has more segments, or as many and more
 * missing ones. */
static bool tells_more(const struct d9__stored_key *one, const struct d9__stored_key *other)
{
	return one->segments != other->segments ? one->segments > other->segments
						: one->missing > other->missing;
}

/* |key| is another object under the name of |item|. */
static struct d9__bucket_item *replace(struct d9__bucket_source *source,
				       struct d9__bucket_item *item, const char *key,
				       const struct d9__stored_key *parsed, uint64_t bytes,
				       int64_t modified_s)
{
	bool same = !strcmp(item->key, key);
	char *copy;

	if (same && item->object_bytes == bytes && item->modified_s == modified_s)
		return item;
	if (!same && (parsed->kind != D9__STORED_HOUR || !tells_more(parsed, &item->parsed))) {
		source->n_strange += parsed->kind != D9__STORED_HOUR;
		return item;
	}
	copy = strdup(key);
	if (!copy)
		return NULL;
	free(item->key);
	item->key = copy;
	item->parsed = *parsed;
	item->object_bytes = bytes;
	item->modified_s = modified_s;
	set_facts(item);
	source->version++;
	return item;
}

static struct d9__bucket_item *new_item(const char *name, const char *key,
					const struct d9__stored_key *parsed)
{
	struct d9__bucket_item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->name = strdup(name);
	item->key = strdup(key);
	item->parsed = *parsed;
	if (asprintf(&item->process, "%s/%s", parsed->service, parsed->instance) < 0)
		item->process = NULL;
	if (item->name && item->key && item->process)
		return item;
	d9__bucket_item_free(item);
	return NULL;
}

struct d9__bucket_item *d9__bucket_item_add(struct d9__bucket_source *source, const char *key,
					    uint64_t bytes, int64_t modified_s)
{
	struct d9__stored_key parsed;
	char name[D9__STORED_NAME];
	struct d9__bucket_item *item;
	size_t skip = strlen(source->prefix);

	if (strncmp(key, source->prefix, skip) || !d9__stored_key_parse(key + skip, &parsed)) {
		source->n_strange++;
		return NULL;
	}
	d9__stored_key_name(&parsed, name);
	item = d9__table_find(&source->by_name, d9__hash_text(name));
	if (item)
		return replace(source, item, key, &parsed, bytes, modified_s);
	source->truncated |= source->n >= ITEMS_MAX;
	item = source->n < ITEMS_MAX && d9__array_grow(source->items, source->n)
		       ? new_item(name, key, &parsed)
		       : NULL;
	if (!item || d9__table_add(&source->by_name, d9__hash_text(name), item)) {
		if (item)
			d9__bucket_item_free(item);
		return NULL;
	}
	item->object_bytes = bytes;
	item->modified_s = modified_s;
	set_facts(item);
	if (parsed.kind == D9__STORED_HOUR)
		d9__bucket_service_told(source, &parsed);
	source->items[source->n++] = item;
	source->sorted = false;
	source->version++;
	return item;
}
