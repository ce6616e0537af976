/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/archive.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/time.h"
#include "serve/aggregate.h"
#include "serve/archive_parse.h"
#include "serve/archive_parts.h"

#define SENSELESS "its summary cannot be read"

/* One process for the loop, one for the machine's other users. */
#define READERS_MAX 2

/* Of a place far away; the network waits, not the machine. */
#define FETCHES_MAX 8

/* The most bytes of segments that one question fetches. */
#define WANTED_BYTES_MAX ((uint64_t)512 << 20)
#define WANTED_MAX	 4000 /* and of them and hours together */

/* Of an hour's summary. */
#define SUMMARY_MAX (8 << 20)

/* The time until a failed fetch is tried again. */
#define AGAIN_MS 30000

/* A segment that grows is read again after so long. */
#define ACTIVE_MS 5000

static const struct d9__child_options limits = { .seconds = 120, .bytes_max = (size_t)16 << 20 };

static uint64_t now_ms(void)
{
	return d9__mono_ns() / D9__MS_NS;
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

static void take_answer(struct d9__archive_entry *entry, const struct d9__child_answer *answer);

/* All of the summary |name| of an hour, in new memory; NULL: it cannot be read. */
static char *read_summary(const struct d9__segment_source *source, const char *name, size_t *len)
{
	int fd = source->open(source->context, name);
	char *text = fd < 0 ? NULL : malloc(SUMMARY_MAX + 1);
	ssize_t n = 1;

	*len = 0;
	while (text && *len < SUMMARY_MAX && (n = read(fd, text + *len, SUMMARY_MAX - *len)) > 0)
		*len += (size_t)n;
	if (fd >= 0)
		close(fd);
	if (text && n == 0) {
		text[*len] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

/* Take a fetched hour, parsed with distrust: anybody could have written it. */
static void take_hour(struct d9__archive_entry *entry)
{
	struct d9__child_answer answer = { .why = SENSELESS };

	entry->reading = entry->identity;
	answer.out = read_summary(entry->archive->source, entry->name, &answer.len);
	/* If the file is gone, a later fetch may bring it back. */
	entry->here = answer.out != NULL;
	take_answer(entry, &answer);
	free(answer.out);
}

static void start_child(struct d9__archive *archive, struct d9__archive_entry *entry)
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

static void on_fetched(void *context, const char *why)
{
	struct d9__archive_entry *entry = context;

	entry->archive->fetching -= entry->fetching;
	entry->fetching = false;
	entry->here = !why;
	entry->read_at_ms = now_ms();
	if (why)
		set_failed(entry, why);
	else
		entry->state = D9__KNOWN_WAITING;
	event_active(entry->archive->again, EV_TIMEOUT, 0);
}

static void start_fetch(struct d9__archive *archive, struct d9__archive_entry *entry)
{
	entry->state = D9__KNOWN_READING;
	entry->fetching = true;
	archive->fetching++;
	archive->source->fetch(archive->source->context, entry->name, on_fetched, entry);
}

static void start(struct d9__archive *archive, struct d9__archive_entry *entry)
{
	if (entry->facts && !entry->here)
		start_fetch(archive, entry);
	else if (entry->facts && entry->facts->segments)
		take_hour(entry);
	else
		start_child(archive, entry);
}

static bool has_room(const struct d9__archive *archive, const struct d9__archive_entry *entry)
{
	return entry->facts && !entry->here ? archive->fetching < FETCHES_MAX : archive->running < READERS_MAX;
}

static bool is_due(const struct d9__archive_entry *entry)
{
	return entry->state == D9__KNOWN_WAITING &&
	       (!entry->read_at_ms || !entry->active || now_ms() - entry->read_at_ms >= ACTIVE_MS);
}

/* Start readers for the newest segments first, because users look at those. */
static void start_some(struct d9__archive *archive)
{
	for (;;) {
		struct d9__archive_entry *next = NULL;

		for (size_t i = 0; i < archive->n; i++)
			if (is_due(archive->entries[i]) && has_room(archive, archive->entries[i]) &&
			    (!next || archive->entries[i]->modified_ns > next->modified_ns))
				next = archive->entries[i];
		if (!next)
			return;
		start(archive, next);
	}
}

/* Return |why| without the path of the fetched copy, because users know the object's name alone. */
static const char *without_place(const struct d9__archive_entry *entry, const char *why)
{
	const struct d9__segment_source *source = entry->archive->source;
	char *path = entry->facts ? source->path(source->context, entry->name) : NULL;
	size_t len = path ? strlen(path) : 0;

	if (len && !strncmp(why, path, len) && !strncmp(why + len, ": ", 2))
		why += len + 2;
	free(path);
	return why;
}

static void take_answer(struct d9__archive_entry *entry, const struct d9__child_answer *answer)
{
	struct d9__archived *said;
	int err = answer->out ? d9__archived_parse(entry->archive, entry, answer->out, answer->len,
						   &said)
			      : -EBADMSG;

	if (err) {
		set_failed(entry, !answer->out ? without_place(entry, answer->why) : err == -EBADMSG ? SENSELESS : strerror(-err));
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
	if (entry->reading != entry->identity) {
		entry->state = D9__KNOWN_WAITING;
		entry->here = false;
	}
	start_some(archive);
}

/* ---- entries ---- */

static void free_entry(struct d9__archive_entry *entry)
{
	if (entry->child)
		entry->archive->running--;
	if (entry->fetching)
		entry->archive->source->forget(entry->archive->source->context, entry);
	entry->archive->fetching -= entry->fetching;
	d9__child_free(entry->child);
	d9__archived_free(entry->said);
	free(entry->name);
	free(entry->why);
	free(entry);
}

static struct d9__archive_entry *find(const struct d9__archive *archive, const char *name)
{
	struct d9__archive_entry *entry = d9__table_find(&archive->by_name, d9__hash_text(name));

	if (!entry || !strcmp(entry->name, name))
		return entry;
	/* Two names have one sum. */
	for (size_t i = 0; i < archive->n; i++)
		if (!strcmp(archive->entries[i]->name, name))
			return archive->entries[i];
	return NULL;
}

static struct d9__archive_entry *add(struct d9__archive *archive, const char *name)
{
	struct d9__archive_entry *entry;

	if (!d9__array_grow(archive->entries, archive->n))
		return NULL;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->archive = archive;
	entry->name = strdup(name);
	if (!entry->name) {
		free(entry);
		return NULL;
	}
	if (!d9__table_find(&archive->by_name, d9__hash_text(name)) &&
	    d9__table_add(&archive->by_name, d9__hash_text(name), entry)) {
		free(entry->name);
		free(entry);
		return NULL;
	}
	archive->entries[archive->n++] = entry;
	return entry;
}

/* Use the facts in the name of |entry| until a question needs its content. */
static int take_facts(struct d9__archive_entry *entry)
{
	struct d9__archived *said;
	int err = d9__archived_listed(entry, &said);

	if (err)
		return err;
	d9__archived_free(entry->said);
	entry->said = said;
	entry->here = false;
	entry->state = D9__KNOWN_LISTED;
	return 0;
}

static int take(struct d9__archive *archive, const struct d9__listed *item)
{
	struct d9__archive_entry *entry = find(archive, item->name);

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
	entry->facts = item->facts;
	entry->version = ++archive->version;
	if (entry->state == D9__KNOWN_READING)
		return 0;
	entry->state = D9__KNOWN_WAITING;
	return entry->facts ? take_facts(entry) : 0;
}

static void forget(struct d9__archive *archive, struct d9__archive_entry *entry)
{
	uint64_t sum = d9__hash_text(entry->name);

	if (d9__table_find(&archive->by_name, sum) == entry)
		d9__table_remove(&archive->by_name, sum);
	free_entry(entry);
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
		forget(archive, entry);
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
		if (!listing->items[i].facts || !listing->items[i].facts->told)
			err = take(archive, &listing->items[i]);
	if (!err)
		remove_gone(archive);
	start_some(archive);
	return err;
}

/* True if |entry| may be fetched.  A failed one may be there a while later. */
static bool is_askable(const struct d9__archive_entry *entry)
{
	return entry->state == D9__KNOWN_LISTED ||
	       (entry->facts && entry->state == D9__KNOWN_FAILED && !entry->here && now_ms() - entry->read_at_ms >= AGAIN_MS);
}

void d9__archive_want(struct d9__archive *archive, const struct d9__archive_scope *scope)
{
	uint64_t bytes = 0;
	size_t n = 0;

	for (size_t i = archive->n; i-- > 0 && n < WANTED_MAX;) {
		struct d9__archive_entry *entry = archive->entries[i];

		if (!is_askable(entry) || !d9__archive_is_wanted(scope, entry->said))
			continue;
		bytes += entry->facts->segments ? 0 : entry->bytes;
		if (bytes > WANTED_BYTES_MAX)
			break;
		n++;
		entry->state = D9__KNOWN_WAITING;
		entry->version = ++archive->version;
	}
	start_some(archive);
}

/* ---- life ---- */

static void on_again(evutil_socket_t fd, short what, void *archive)
{
	(void)fd;
	(void)what;
	start_some(archive);
}

struct d9__archive *d9__archive_new(struct event_base *base, const struct d9__segment_source *source)
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
	d9__table_release(&archive->by_name);
	d9__texts_release(&archive->callbacks);
	d9__texts_release(&archive->spans);
	d9__texts_release(&archive->names);
	d9__table_release(&archive->by_edge);
	free(archive->nodes);
	free(archive);
}
