/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket as a source.  Each user with write access to the bucket wrote a part of it, perhaps to
 * do harm: stored_key.c parses keys, and bodies are parsed in other processes.
 */
#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/bucket_dump.h"
#include "serve/bucket_fetch.h"
#include "serve/bucket_item.h"
#include "serve/bucket_list.h"
#include "serve/bucket_parts.h"
#include "serve/bucket_request.h"
#include "serve/bucket_services.h"
#include "serve/bucket_source.h"
#include "text/json.h"

#define FETCHED_BYTES ((uint64_t)2 << 30)
#define FIRST_WAIT_MS 10000 /* for the first answer; later ones appear in the page */
#define TRANSFERS     16
#define LONGEST_MS    600000

/* ---- answers ---- */

static void forget(void *context, void *ready_context)
{
	struct d9__bucket_source *source = context;

	for (struct d9__bucket_wish *wish = source->wishes; wish; wish = wish->next)
		d9__bucket_forget(&wish->waiters, ready_context);
	for (struct d9__bucket_fetch *fetch = source->fetches; fetch; fetch = fetch->next)
		d9__bucket_forget(&fetch->waiters, ready_context);
}

static void take_answers(struct d9__bucket_source *source, int timeout_ms)
{
	const struct d9__bucket_answer *answer;

	d9__bucket_deliver_unsent(source);
	while (d9__bucket_wait(source->bucket, timeout_ms, &answer) == 1) {
		d9__bucket_deliver(source, answer);
		timeout_ms = 0;
		d9__bucket_pump_fetches(source);
		d9__bucket_pump_lists(source);
	}
}

static void on_event(evutil_socket_t fd, short what, void *context)
{
	struct d9__bucket_source *source = context;

	(void)fd;
	(void)what;
	take_answers(source, 0);
	d9__bucket_pump_fetches(source);
	d9__bucket_pump_lists(source);
	d9__bucket_watch(source);
}

/* ---- the list ---- */

static int compare_items(const void *left, const void *right)
{
	const struct d9__bucket_item *a = *(const struct d9__bucket_item *const *)left;
	const struct d9__bucket_item *b = *(const struct d9__bucket_item *const *)right;
	int order = strcmp(a->process, b->process);

	if (!order)
		order = strcmp(a->parsed.boot_id, b->parsed.boot_id);
	if (!order)
		order = a->parsed.begins_s < b->parsed.begins_s ? -1 : a->parsed.begins_s > b->parsed.begins_s;
	if (!order)
		order = a->parsed.index < b->parsed.index ? -1 : a->parsed.index > b->parsed.index;
	return order;
}

static int64_t hour_of(const struct d9__bucket_item *item)
{
	return item->parsed.begins_s - item->parsed.begins_s % D9__STORED_HOUR_S;
}

/* Behind the items of the process and hour of |first|, which stand together. */
static size_t hour_end(const struct d9__bucket_source *source, size_t first)
{
	const struct d9__bucket_item *item = source->items[first];
	size_t end = first;

	while (end < source->n && hour_of(source->items[end]) == hour_of(item) &&
	       !strcmp(source->items[end]->process, item->process) &&
	       !strcmp(source->items[end]->parsed.boot_id, item->parsed.boot_id))
		end++;
	return end;
}

/*
 * Nothing counts twice: either the summary of an hour tells of its segments, or these tell for themselves.  A process that ends
 * leaves a summary of the hour that runs; one that has fewer segments than are listed here is not the last one of its hour.
 */
static void set_told(struct d9__bucket_source *source, size_t first, size_t end)
{
	bool is_over = hour_of(source->items[first]) + D9__STORED_HOUR_S <= d9__bucket_now_s(), whole = false;
	uint64_t n = 0;

	for (size_t i = first; i < end; i++)
		n += source->items[i]->parsed.kind == D9__STORED_SEGMENT;
	for (size_t i = first; i < end; i++)
		if (source->items[i]->parsed.kind == D9__STORED_HOUR)
			whole = is_over || source->items[i]->parsed.segments >= n;
	for (size_t i = first; i < end; i++)
		source->items[i]->facts.told = whole == (source->items[i]->parsed.kind == D9__STORED_SEGMENT);
}

/* It ends where the next one of its process begins, if that is soon: items are in their order. */
static void set_end(const struct d9__bucket_source *source, size_t i)
{
	struct d9__bucket_item *item = source->items[i], *next = i + 1 < source->n ? source->items[i + 1] : NULL;
	int64_t from_ms = item->facts.from_ms, next_ms;

	if (!next || next->parsed.kind != D9__STORED_SEGMENT || strcmp(next->process, item->process) ||
	    strcmp(next->parsed.boot_id, item->parsed.boot_id))
		return;
	next_ms = next->facts.from_ms;
	if (next_ms > from_ms && next_ms - from_ms <= LONGEST_MS)
		item->facts.to_ms = next_ms;
}

static int list(void *context, int (*take)(void *listing, const struct d9__source_segment *segment), void *listing, bool *left_out)
{
	struct d9__bucket_source *source = context;
	int err = 0;

	if (!source->sorted && source->n)
		qsort(source->items, source->n, sizeof(struct d9__bucket_item *), compare_items);
	source->sorted = true;
	*left_out = source->truncated || source->sampled;
	for (size_t i = 0, end; i < source->n; i = end) {
		end = hour_end(source, i);
		set_told(source, i, end);
	}
	for (size_t i = 0; i < source->n && !err; i++) {
		struct d9__bucket_item *item = source->items[i];
		bool is_hour = item->parsed.kind == D9__STORED_HOUR;
		struct d9__source_segment segment = { .name = item->name,
						      .bytes = is_hour ? item->parsed.bytes : item->object_bytes,
						      .modified_ns = item->modified_s * 1000000000,
						      .facts = &item->facts };

		if (item->parsed.kind == D9__STORED_DUMP)
			continue;
		if (!is_hour)
			set_end(source, i);
		err = take(listing, &segment);
	}
	return err;
}

static uint64_t version(void *context)
{
	return ((struct d9__bucket_source *)context)->version;
}

/* ---- what is told of the place ---- */

static void tell_dumps(struct d9__json *json, const struct d9__bucket_source *source)
{
	d9__json_open(json, "dumps", '[');
	for (size_t i = 0; i < source->n; i++) {
		const struct d9__bucket_item *item = source->items[i];

		if (item->parsed.kind != D9__STORED_DUMP)
			continue;
		d9__json_open(json, NULL, '{');
		d9__json_string(json, "id", item->parsed.id);
		d9__json_i64(json, "modified_ms", item->modified_s * 1000);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
}

static void tell(void *context, struct d9__json *json)
{
	const struct d9__bucket_source *source = context;

	d9__json_open(json, "place", '{');
	d9__json_string(json, "name", source->name);
	d9__json_string(json, "url", d9__bucket_url(source->bucket));
	d9__json_text(json, "prefix", source->prefix, strlen(source->prefix) - (*source->prefix != '\0'));
	d9__json_string(json, "error", *source->error ? source->error : NULL);
	d9__json_bool(json, "listing", source->wishes != NULL);
	d9__json_bool(json, "truncated", source->truncated);
	d9__json_bool(json, "sampled", source->sampled);
	d9__json_u64(json, "strange", source->n_strange);
	d9__json_u64(json, "lists", source->n_lists);
	d9__json_u64(json, "gets", source->n_gets);
	tell_dumps(json, source);
	d9__json_close(json, '}');
}

/* ---- life ---- */

static int attach(void *context, struct event_base *base)
{
	struct d9__bucket_source *source = context;

	source->base = base;
	source->readable = event_new(base, -1, EV_READ | EV_PERSIST, on_event, source);
	source->soon = evtimer_new(base, on_event, source);
	if (!source->readable || !source->soon)
		return -ENOMEM;
	d9__bucket_watch(source);
	return 0;
}

static void end(void *context)
{
	d9__bucket_end_lists(context);
	d9__bucket_end_fetches(context);
}

static void free_bucket(void *context)
{
	struct d9__bucket_source *source = context;

	end(source);
	d9__bucket_free_lists(source);
	d9__bucket_free_services(source);
	d9__bucket_free_dumps(source);
	if (source->readable)
		event_free(source->readable);
	if (source->soon)
		event_free(source->soon);
	d9__bucket_free(source->bucket);
	for (size_t i = 0; i < source->n; i++)
		d9__bucket_item_free(source->items[i]);
	free(source->items);
	d9__table_release(&source->by_name);
	d9__fetched_free(source->fetched);
	free(source->name);
	free(source);
}

/* Ask the first question and wait: a lasting fault of the store ends the command. */
static int look_first(struct d9__bucket_source *source, char *why, size_t why_size)
{
	struct d9__source_scope scope = { 0 };

	source->wishes = NULL;
	d9__bucket_look(source, &scope, NULL, NULL);
	take_answers(source, FIRST_WAIT_MS);
	snprintf(why, why_size, "%s", source->n_lists && !source->root_s && !*source->error ? "the store does not answer yet" : source->error);
	return source->refused ? -EACCES : 0;
}

static int set_up(struct d9__bucket_source *source, const struct d9__bucket_options *options, const char *prefix, char *why, size_t why_size)
{
	struct d9__bucket_options own = *options;
	size_t len = strlen(prefix);
	int err;

	while (len && prefix[len - 1] == '/')
		len--;
	snprintf(source->prefix, sizeof(source->prefix), "%.*s%s", (int)len, prefix, len ? "/" : "");
	if (asprintf(&source->name, "%s%s%.*s", options->bucket, len ? "/" : "", (int)len, prefix) < 0) {
		source->name = NULL;
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	own.parallel = TRANSFERS;
	err = d9__bucket_start(&own, &source->bucket, why, why_size);
	return err ? err : look_first(source, why, why_size);
}

int d9__bucket_source(const struct d9__bucket_options *options, const char *prefix, int folder, const char *folder_path,
		      struct d9__segment_source *out, const char **name, char *why, size_t why_size)
{
	struct d9__bucket_source *source = calloc(1, sizeof(*source));
	int err;

	if (source)
		source->fetched = d9__fetched_new(folder, folder_path, FETCHED_BYTES);
	else
		close(folder);
	if (!source || !source->fetched) {
		free(source);
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	err = set_up(source, options, prefix, why, why_size);
	if (err) {
		free_bucket(source);
		return err;
	}
	*out = (struct d9__segment_source) { .context = source, .list = list, .open = d9__bucket_open, .path = d9__bucket_path,
				     .free = free_bucket, .attach = attach, .version = version, .look = d9__bucket_look,
				     .fetch = d9__bucket_fetch, .end = end, .forget = forget, .is_of_dump = d9__bucket_is_of_dump,
				     .tell = tell };
	*name = source->name;
	return 0;
}
