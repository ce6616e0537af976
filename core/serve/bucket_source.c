/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket as a source.  Each user with write access to the bucket wrote a part of it, perhaps to
 * do harm: stored_key.c parses keys, and bodies are parsed in other processes.
 */
#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve/bucket_parts.h"
#include "serve/text_hash.h"
#include "text/json.h"

#define ITEMS_MAX     100000 /* about 200 MB with the server's own memory for them */
#define FETCHED_BYTES ((uint64_t)2 << 30)
#define FIRST_WAIT_MS 10000 /* for the first answer; later ones appear in the page */
#define REST_S	      2	    /* after a failure; then twice as long each time */
#define REST_MAX_S    60
#define TRANSFERS     16
#define LONGEST_MS    600000
#define USUAL_MS      60000 /* that a segment lasts, where nothing tells more */

int64_t d9__bucket_now_s(void)
{
	return (int64_t)time(NULL);
}

/* ---- who waits ---- */

void d9__bucket_wake(struct d9__bucket_waiter **waiters, const char *why)
{
	while (*waiters) {
		struct d9__bucket_waiter *waiter = *waiters;

		*waiters = waiter->next;
		waiter->ready(waiter->context, why);
		free(waiter);
	}
}

void d9__bucket_forget(struct d9__bucket_waiter **waiters, const void *context)
{
	while (*waiters) {
		struct d9__bucket_waiter *waiter = *waiters;

		if (waiter->context != context) {
			waiters = &waiter->next;
			continue;
		}
		*waiters = waiter->next;
		free(waiter);
	}
}

static void forget(void *context, void *ready_context)
{
	struct d9__bucket_source *source = context;

	for (struct d9__bucket_wish *wish = source->wishes; wish; wish = wish->next)
		d9__bucket_forget(&wish->waiters, ready_context);
	for (struct d9__bucket_fetch *fetch = source->fetches; fetch; fetch = fetch->next)
		d9__bucket_forget(&fetch->waiters, ready_context);
}

/* ---- requests ---- */

/* Look again at which descriptor answers come: each child has its own, if with the number of the one before. */
static void watch(struct d9__bucket_source *source)
{
	int fd = d9__bucket_fd(source->bucket);

	if (!source->base)
		return;
	event_del(source->readable);
	if (fd < 0)
		return;
	event_assign(source->readable, source->base, fd, EV_READ | EV_PERSIST, event_get_callback(source->readable), source);
	event_add(source->readable, NULL);
}

struct d9__bucket_request *d9__bucket_request(struct d9__bucket_source *source,
					      void (*take)(struct d9__bucket_source *, void *, const struct d9__bucket_answer *),
					      void *of)
{
	for (size_t i = 0; i < D9__BUCKET_OUTSTANDING_MAX; i++) {
		struct d9__bucket_request *request = &source->requests[i];

		if (request->token)
			continue;
		*request = (struct d9__bucket_request) { .token = ++source->serial * D9__BUCKET_OUTSTANDING_MAX + i,
							 .take = take,
							 .of = of };
		return request;
	}
	return NULL;
}

void d9__bucket_requested(struct d9__bucket_source *source, struct d9__bucket_request *request, int err)
{
	static const struct timeval now = { 0 };

	request->err = err;
	watch(source);
	/* A child that ended wakes no descriptor, so a timer delivers its requests. */
	if (source->base)
		evtimer_add(source->soon, &now);
}

static void deliver(struct d9__bucket_source *source, const struct d9__bucket_answer *answer)
{
	struct d9__bucket_request *request = &source->requests[answer->token % D9__BUCKET_OUTSTANDING_MAX], taken = *request;

	if (request->token != answer->token)
		return;
	request->token = 0;
	taken.take(source, taken.of, answer);
}

/* Deliver an error for each request that could not be sent. */
static void deliver_unsent(struct d9__bucket_source *source)
{
	for (size_t i = 0; i < D9__BUCKET_OUTSTANDING_MAX; i++) {
		struct d9__bucket_answer answer = { .token = source->requests[i].token, .class = D9__BUCKET_REFUSED,
						    .code = "", .message = strerror(-source->requests[i].err) };

		if (answer.token && source->requests[i].err)
			deliver(source, &answer);
	}
}

static void take_answers(struct d9__bucket_source *source, int timeout_ms)
{
	const struct d9__bucket_answer *answer;

	deliver_unsent(source);
	while (d9__bucket_wait(source->bucket, timeout_ms, &answer) == 1) {
		deliver(source, answer);
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
	watch(source);
}

static const char *advice(const struct d9__bucket_answer *answer)
{
	static const struct {
		const char *code, *advice;
	} known[] = {
		{ "NoSuchBucket", "there is no such bucket: see --bucket, and --endpoint for a store that is not AWS" },
		{ "SignatureDoesNotMatch", "the secret key is not the one of this key id" },
		{ "InvalidAccessKeyId", "the store does not know this key id" },
		{ "AccessDenied", "these credentials may not read here: s3:ListBucket and s3:GetObject are needed" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(answer->code, known[i].code))
			return known[i].advice;
	return NULL;
}

/* Write the line that the page shows for |answer|. */
static void tell_error(struct d9__bucket_source *source, const struct d9__bucket_answer *answer)
{
	const char *told = advice(answer), *url = d9__bucket_url(source->bucket);

	if (told)
		snprintf(source->error, sizeof(source->error), "%s: %s; it answers: %s", url, told, answer->code);
	else
		snprintf(source->error, sizeof(source->error), "%s: %s", url, answer->message);
}

bool d9__bucket_is_good(struct d9__bucket_source *source, const struct d9__bucket_answer *answer)
{
	int64_t rest_s = REST_S;

	if (answer->class == D9__BUCKET_DONE) {
		source->failures = 0;
		source->refused = false;
		source->error[0] = '\0';
		return true;
	}
	for (unsigned i = 0; i < source->failures && rest_s < REST_MAX_S; i++)
		rest_s *= 2;
	source->failures++;
	source->refused = answer->class != D9__BUCKET_RETRY;
	source->rest_until_s = d9__bucket_now_s() + (rest_s < REST_MAX_S ? rest_s : REST_MAX_S);
	tell_error(source, answer);
	return false;
}

/* ---- items ---- */

struct d9__bucket_item *d9__bucket_item_find(const struct d9__bucket_source *source, const char *name)
{
	struct d9__bucket_item *item = d9__table_find(&source->by_name, d9__hash_text(name));

	return item && !strcmp(item->name, name) ? item : NULL;
}

static void free_item(struct d9__bucket_item *item)
{
	free(item->name);
	free(item->key);
	free(item->process);
	free(item);
}

static void set_facts(struct d9__bucket_item *item)
{
	const struct d9__stored_key *parsed = &item->parsed;
	int64_t from_ms = parsed->begins_s * 1000, to_ms = from_ms + D9__STORED_HOUR_S * 1000 - 1, stored_ms = item->modified_s * 1000;

	/* How long a segment lasts its key does not tell; it was stored after its end. */
	if (parsed->kind == D9__STORED_SEGMENT) {
		to_ms = from_ms + USUAL_MS;
		if (stored_ms < to_ms)
			to_ms = stored_ms > from_ms ? stored_ms : from_ms;
	} else if (stored_ms > from_ms && stored_ms < to_ms) {
		/* A summary that a process has left in the middle of an hour tells of nothing later. */
		to_ms = stored_ms;
	}
	item->facts = (struct d9__source_facts) { .service = parsed->service, .host = parsed->instance, .process = item->process,
						  .from_ms = from_ms, .to_ms = to_ms, .segments = parsed->segments,
						  .missing = parsed->missing, .bytes = parsed->bytes, .worst_ms = parsed->worst_ms };
	/* An hour is one even if it claims to be empty. */
	if (parsed->kind == D9__STORED_HOUR && !parsed->segments)
		item->facts.segments = 1;
}

/* True if summary |one| of an hour replaces |other|: it has more segments, or as many and more missing ones. */
static bool tells_more(const struct d9__stored_key *one, const struct d9__stored_key *other)
{
	return one->segments != other->segments ? one->segments > other->segments : one->missing > other->missing;
}

/* |key| is another object under the name of |item|. */
static struct d9__bucket_item *replace(struct d9__bucket_source *source, struct d9__bucket_item *item, const char *key,
				       const struct d9__stored_key *parsed, uint64_t bytes, int64_t modified_s)
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

static struct d9__bucket_item *new_item(const char *name, const char *key, const struct d9__stored_key *parsed)
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
	free_item(item);
	return NULL;
}

static int make_room(struct d9__bucket_source *source)
{
	size_t capacity = source->capacity ? 2 * source->capacity : 1024;
	struct d9__bucket_item **grown;

	if (source->n < source->capacity)
		return 0;
	grown = reallocarray(source->items, capacity, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	source->items = grown;
	source->capacity = capacity;
	return 0;
}

struct d9__bucket_item *d9__bucket_item_add(struct d9__bucket_source *source, const char *key, uint64_t bytes, int64_t modified_s)
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
	item = source->n < ITEMS_MAX && !make_room(source) ? new_item(name, key, &parsed) : NULL;
	if (!item || d9__table_add(&source->by_name, d9__hash_text(name), item)) {
		if (item)
			free_item(item);
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
	watch(source);
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
		free_item(source->items[i]);
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

int d9__source_bucket(const struct d9__bucket_options *options, const char *prefix, int folder, const char *folder_path,
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
