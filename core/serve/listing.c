/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

static int take(void *context, const struct d9__source_segment *segment)
{
	struct d9__listing *listing = context;
	struct d9__listed *item;

	if (!d9__array_grow(listing->items, listing->n))
		return -ENOMEM;
	item = &listing->items[listing->n];
	*item = (struct d9__listed) { .name = strdup(segment->name),
				      .bytes = segment->bytes,
				      .modified_ns = segment->modified_ns,
				      .active = segment->active,
				      .facts = segment->facts };
	if (!item->name)
		return -ENOMEM;
	item->identity = d9__hash_text(item->name);
	item->identity = d9__hash_bytes(item->identity, &item->bytes, sizeof(item->bytes));
	item->identity = d9__hash_bytes(item->identity, &item->modified_ns, sizeof(item->modified_ns));
	if (item->facts)
		item->identity = d9__hash_bytes(item->identity, &item->facts->to_ms, sizeof(item->facts->to_ms));
	listing->identity = d9__hash_bytes(listing->identity, &item->identity, sizeof(item->identity));
	listing->n++;
	return 0;
}

static void release_items(struct d9__listing *listing)
{
	for (size_t i = 0; i < listing->n; i++)
		free(listing->items[i].name);
	listing->n = 0;
}

int d9__listing_refresh(struct d9__listing *listing, const struct d9__segment_source *source)
{
	uint64_t version = source->version ? source->version(source->context) + 1 : 0;

	if (version && version == listing->version)
		return 0;
	release_items(listing);
	listing->version = version;
	listing->identity = 0;
	return source->list(source->context, take, listing, &listing->left_out);
}

const struct d9__listed *d9__listing_find(const struct d9__listing *listing, const char *name)
{
	for (size_t i = 0; i < listing->n; i++)
		if (!strcmp(listing->items[i].name, name))
			return &listing->items[i];
	return NULL;
}

size_t d9__listing_folder(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? (size_t)(slash - name) : 0;
}

bool d9__listing_is_many(const struct d9__listing *listing)
{
	for (size_t i = 1; i < listing->n; i++) {
		size_t len = d9__listing_folder(listing->items[0].name);

		if (d9__listing_folder(listing->items[i].name) != len ||
		    strncmp(listing->items[i].name, listing->items[0].name, len))
			return true;
	}
	return false;
}

void d9__listing_release(struct d9__listing *listing)
{
	release_items(listing);
	free(listing->items);
}
