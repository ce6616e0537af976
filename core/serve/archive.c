/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/archive.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/archive_parts.h"

/* One process for the loop, one for the machine's other users. */
#define READERS_MAX 2

/* A segment that grows is read again after so long. */
#define ACTIVE_MS 5000

static const struct d9__child_options limits = { .seconds = 120, .bytes_max = (size_t)16 << 20 };

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- reading ---- */

static void on_done(void *context, struct d9__child_answer *answer);

static void set_failed(struct d9__archive_entry *entry, const char *why)
{
	free(entry->why);
	entry->why = strdup(why);
	entry->state = D9__KNOWN_FAILED;
	entry->version = ++entry->archive->version;
}

static void start(struct d9__archive *archive, struct d9__archive_entry *entry)
{
	char *path = archive->source->path(archive->source->context, entry->name);
	const char *argv[] = { "serve", "--summary", "--", path, NULL };
	int err =
		path ? d9__child_start(archive->base, argv, &limits, on_done, entry, &entry->child)
		     : -ENOMEM;

	free(path);
	entry->reading = entry->identity;
	entry->read_at_ms = now_ms();
	if (err) {
		set_failed(entry, strerror(-err));
		return;
	}
	entry->state = D9__KNOWN_READING;
	archive->running++;
}

static bool is_due(const struct d9__archive_entry *entry)
{
	return entry->state == D9__KNOWN_WAITING &&
	       (!entry->read_at_ms || !entry->active || now_ms() - entry->read_at_ms >= ACTIVE_MS);
}

/* The newest first: it is what people ask for. */
static void start_some(struct d9__archive *archive)
{
	while (archive->running < READERS_MAX) {
		struct d9__archive_entry *next = NULL;

		for (size_t i = 0; i < archive->n; i++)
			if (is_due(archive->entries[i]) &&
			    (!next || archive->entries[i]->modified_ns > next->modified_ns))
				next = archive->entries[i];
		if (!next)
			return;
		start(archive, next);
	}
}

static void take_answer(struct d9__archive_entry *entry, const struct d9__child_answer *answer)
{
	struct d9__archived *said;
	int err = answer->out ? d9__archived_parse(entry->archive, entry, answer->out, answer->len,
						   &said)
			      : -EBADMSG;

	if (err) {
		set_failed(entry, answer->out ? strerror(-err) : answer->why);
		return;
	}
	d9__archived_free(entry->said);
	entry->said = said;
	entry->state = D9__KNOWN;
	entry->version = ++entry->archive->version;
}

static void on_done(void *context, struct d9__child_answer *answer)
{
	struct d9__archive_entry *entry = context;
	struct d9__archive *archive = entry->archive;

	entry->child = NULL;
	archive->running--;
	take_answer(entry, answer);
	if (entry->reading != entry->identity)
		entry->state = D9__KNOWN_WAITING;
	start_some(archive);
}

/* ---- entries ---- */

static void free_entry(struct d9__archive_entry *entry)
{
	if (entry->child)
		entry->archive->running--;
	d9__child_free(entry->child);
	d9__archived_free(entry->said);
	free(entry->name);
	free(entry->why);
	free(entry);
}

static struct d9__archive_entry *find(const struct d9__archive *archive, const char *name,
				      size_t hint)
{
	/* Listings come in one order, so that mostly the next one is meant. */
	for (size_t k = 0; k < archive->n; k++) {
		struct d9__archive_entry *entry = archive->entries[(hint + k) % archive->n];

		if (!strcmp(entry->name, name))
			return entry;
	}
	return NULL;
}

static struct d9__archive_entry *add(struct d9__archive *archive, const char *name)
{
	struct d9__archive_entry *entry, **grown;

	if (archive->n == archive->capacity) {
		size_t capacity = archive->capacity ? 2 * archive->capacity : 64;

		grown = reallocarray(archive->entries, capacity, sizeof(*grown));
		if (!grown)
			return NULL;
		archive->entries = grown;
		archive->capacity = capacity;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->archive = archive;
	entry->name = strdup(name);
	if (!entry->name) {
		free(entry);
		return NULL;
	}
	archive->entries[archive->n++] = entry;
	return entry;
}

static int take(struct d9__archive *archive, const struct d9__listed *item, size_t hint)
{
	struct d9__archive_entry *entry = find(archive, item->name, hint);

	if (!entry)
		entry = add(archive, item->name);
	if (!entry)
		return -ENOMEM;
	entry->listed = true;
	if (entry->identity == item->identity)
		return 0;
	entry->identity = item->identity;
	entry->bytes = item->bytes;
	entry->modified_ns = item->modified_ns;
	entry->active = item->active;
	entry->version = ++archive->version;
	if (entry->state != D9__KNOWN_READING)
		entry->state = D9__KNOWN_WAITING;
	return 0;
}

static void remove_gone(struct d9__archive *archive)
{
	size_t kept = 0;

	for (size_t i = 0; i < archive->n; i++) {
		struct d9__archive_entry *entry = archive->entries[i];

		if (entry->listed) {
			archive->entries[kept++] = entry;
			continue;
		}
		free_entry(entry);
		archive->removed = ++archive->version;
	}
	archive->n = kept;
}

int d9__archive_sync(struct d9__archive *archive, const struct d9__listing *listing)
{
	int err = 0;

	for (size_t i = 0; i < archive->n; i++)
		archive->entries[i]->listed = false;
	for (size_t i = 0; i < listing->n && !err; i++)
		err = take(archive, &listing->items[i], i);
	if (!err)
		remove_gone(archive);
	start_some(archive);
	return err;
}

/* ---- life ---- */

static void on_again(evutil_socket_t fd, short what, void *archive)
{
	(void)fd;
	(void)what;
	start_some(archive);
}

struct d9__archive *d9__archive_new(struct event_base *base, const struct d9__source *source)
{
	static const struct timeval every = { .tv_sec = 1 };
	struct d9__archive *archive = calloc(1, sizeof(*archive));

	if (!archive)
		return NULL;
	archive->base = base;
	archive->source = source;
	archive->again = event_new(base, -1, EV_PERSIST, on_again, archive);
	if (!archive->again || event_add(archive->again, &every)) {
		d9__archive_free(archive);
		return NULL;
	}
	return archive;
}

void d9__archive_free(struct d9__archive *archive)
{
	if (!archive)
		return;
	for (size_t i = 0; i < archive->n; i++)
		free_entry(archive->entries[i]);
	free(archive->entries);
	if (archive->again)
		event_free(archive->again);
	d9__texts_release(&archive->callbacks);
	d9__texts_release(&archive->names);
	d9__table_release(&archive->by_edge);
	free(archive->nodes);
	free(archive);
}
