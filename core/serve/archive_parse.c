/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parse a summary with distrust: a segment may have taken over the process that read it.  Negative
 * numbers and those of a wrong type count as 0.
 */
#include "config.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "serve/archive_parse.h"
#include "serve/archive_parts.h"
#include "serve/stored_key.h"
#include "text/json.h"

#define DEPTH_MAX 8

static uint64_t number_of(struct json_object *value)
{
	int64_t n = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;

	return n > 0 ? (uint64_t)n : 0;
}

static uint64_t number(struct json_object *of, const char *key)
{
	return number_of(json_object_object_get(of, key));
}

/* NULL: there is none. */
static const char *text(struct json_object *of, const char *key)
{
	struct json_object *value = json_object_object_get(of, key);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static bool flag(struct json_object *of, const char *key)
{
	struct json_object *value = json_object_object_get(of, key);

	return json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

/* The array |key|; |*n| is 0 where there is none. */
static struct json_object *array(struct json_object *of, const char *key, size_t *n)
{
	struct json_object *value = json_object_object_get(of, key);

	*n = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
	return value;
}

static uint64_t number_at(struct json_object *values, size_t i)
{
	return number_of(json_object_array_get_idx(values, i));
}

/* ---- what is told about one segment ---- */

static void put_bins(struct d9__json *json, struct json_object *of)
{
	size_t n;
	struct json_object *bins = array(of, "bins", &n);

	d9__json_u64(json, "bin_ns", number(of, "bin_ns"));
	/* After the first event: small enough for any reader of JSON. */
	d9__json_i64(json, "bins_after_ns",
		     (int64_t)(number(of, "bins_from_ns") - number(of, "first_ns")));
	d9__json_open(json, "bins", '[');
	for (size_t i = 0; i < n; i++)
		d9__json_u64(json, NULL, number_at(bins, i));
	d9__json_close(json, ']');
}

static void put_text(struct d9__json *json, const char *key, struct json_object *of)
{
	const char *value = text(of, key);

	if (value)
		d9__json_string(json, key, value);
}

static void put_findings(struct d9__json *json, struct json_object *of)
{
	static const char *const keys[] = { "check", "severity", "message", "name", "brief" };
	size_t n;
	struct json_object *findings = array(of, "findings", &n);

	d9__json_open(json, "findings", '[');
	for (size_t i = 0; i < n; i++) {
		struct json_object *finding = json_object_array_get_idx(findings, i);

		if (!json_object_is_type(finding, json_type_object))
			continue;
		d9__json_open(json, NULL, '{');
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			put_text(json, keys[k], finding);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
}

static void put_longest(struct d9__json *json, struct json_object *of)
{
	struct json_object *longest = NULL;
	size_t n;
	struct json_object *callbacks = array(of, "callbacks", &n);

	for (size_t i = 0; i < n; i++) {
		struct json_object *callback = json_object_array_get_idx(callbacks, i);

		if (json_object_is_type(callback, json_type_object) &&
		    (!longest || number(callback, "longest_ns") > number(longest, "longest_ns")))
			longest = callback;
	}
	if (!longest)
		return;
	d9__json_u64(json, "longest_ns", number(longest, "longest_ns"));
	if (text(longest, "name"))
		d9__json_string(json, "longest_in", text(longest, "name"));
}

static void put_exact(struct d9__json *json, const char *key, uint64_t ns)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)ns);
	d9__json_string(json, key, digits);
}

/* How many numbers "41-57,60" is. */
static uint64_t count_ranges(const char *ranges)
{
	uint64_t n = 0;

	while (ranges && *ranges) {
		char *end;
		uint64_t first = strtoull(ranges, &end, 10), last = first;

		if (end == ranges)
			return n;
		if (*end == '-')
			last = strtoull(end + 1, &end, 10);
		n += last >= first && last - first < UINT32_MAX ? last - first + 1 : 0;
		ranges = *end == ',' ? end + 1 : "";
	}
	return n;
}

/* Write a figure of an hour's key that differs from its summary; false: they agree. */
static bool put_figure(struct d9__json *json, const char *what, uint64_t claimed, uint64_t said)
{
	char lie[160];

	if (claimed == said)
		return false;
	snprintf(lie, sizeof(lie), "its key tells of %llu %s, its summary of %llu", (unsigned long long)claimed, what,
		 (unsigned long long)said);
	d9__json_string(json, "lie", lie);
	return true;
}

/* Write the difference between the key of an hour and its summary.  The summary counts. */
static void put_lie(struct d9__json *json, struct json_object *of, const struct d9__source_facts *facts)
{
	const char *hour = text(of, "hour");
	char lie[160], begins[32] = "";
	time_t at = (time_t)(facts->from_ms / 1000);
	struct tm tm;

	if (gmtime_r(&at, &tm))
		strftime(begins, sizeof(begins), "%Y-%m-%dT%H", &tm);
	if (!hour || strcmp(hour, begins)) {
		snprintf(lie, sizeof(lie), "its key is of the hour %s, its summary of another", begins);
		d9__json_string(json, "lie", lie);
		return;
	}
	if (!put_figure(json, "segments", facts->segments, number(of, "segments")) &&
	    !put_figure(json, "bytes", facts->bytes, number(of, "bytes")))
		put_figure(json, "missing segments", facts->missing, count_ranges(text(of, "missing")));
}

static void put_hour(struct d9__json *json, struct json_object *of, const struct d9__source_facts *facts)
{
	d9__json_string(json, "kind", "hour");
	/* The bins' beginning: of an hour the whole hour is shown. */
	if (number(of, "wall_ns"))
		d9__json_double(json, "first_ms", (double)number(of, "wall_ns") / 1e6);
	d9__json_u64(json, "segments", number(of, "segments"));
	d9__json_u64(json, "stored_bytes", number(of, "bytes"));
	d9__json_u64(json, "missing", count_ranges(text(of, "missing")));
	put_lie(json, of, facts);
}

static void put_map(struct d9__json *json, struct json_object *of, const struct d9__archived *said, const struct d9__source_facts *facts)
{
	d9__json_string(json, "process", said->process);
	d9__json_string(json, "service", said->service);
	d9__json_string(json, "host", said->host);
	put_text(json, "boot_id", of);
	put_text(json, "pid", of);
	d9__json_double(json, "from_ms", said->from_ms);
	d9__json_double(json, "to_ms", said->to_ms);
	d9__json_bool(json, "clocked", number(of, "wall_ns") > 0);
	put_exact(json, "first_ns", number(of, "first_ns"));
	d9__json_u64(json, "events", number(of, "events"));
	d9__json_u64(json, "lost", number(of, "lost"));
	d9__json_u64(json, "loops", number(of, "loops"));
	d9__json_u64(json, "busy_ns", number(of, "busy_ns"));
	d9__json_bool(json, "truncated", flag(of, "truncated"));
	d9__json_bool(json, "damaged", flag(of, "damaged"));
	put_text(json, "message", of);
	put_longest(json, of);
	put_bins(json, of);
	put_findings(json, of);
	if (facts && facts->segments)
		put_hour(json, of, facts);
}

static int make_map(struct json_object *of, struct d9__archived *said, const struct d9__source_facts *facts)
{
	size_t len;
	struct d9__json json = { .out = open_memstream(&said->map, &len) };

	if (!json.out)
		return -ENOMEM;
	put_map(&json, of, said, facts);
	if (fclose(json.out))
		return -ENOMEM;
	said->bytes += len;
	return 0;
}

/* ---- what is added up ---- */

static int take_durations(struct d9__archived *said, struct d9__archived_callback *callback,
			  struct json_object *of)
{
	size_t n;
	struct json_object *pairs = array(of, "durations", &n);

	n = n / 2 < D9__DURATION_STEPS ? n / 2 : D9__DURATION_STEPS;
	callback->durations = calloc(n ? n : 1, sizeof(*callback->durations));
	if (!callback->durations)
		return -ENOMEM;
	said->bytes += n * sizeof(*callback->durations);
	for (size_t i = 0; i < n; i++) {
		uint64_t step = number_at(pairs, 2 * i);

		callback->durations[i].step =
			step < D9__DURATION_STEPS ? (uint32_t)step : D9__DURATION_STEPS - 1;
		callback->durations[i].calls = number_at(pairs, 2 * i + 1);
	}
	callback->n_durations = n;
	return 0;
}

/* Which segment of an hour has the longest call, as the page calls it: the summary has its key. */
static int take_segment(struct d9__archived_callback *callback, struct json_object *of)
{
	const char *key = text(of, "segment");
	struct d9__stored_key parsed;
	char name[D9__STORED_NAME];

	/* Behind the prefix of the bucket's part, whatever that is. */
	key = key ? strstr(key, "version=1/") : NULL;
	if (!key || !d9__stored_key_parse(key, &parsed))
		return 0;
	d9__stored_key_name(&parsed, name);
	callback->segment = strdup(name);
	return callback->segment ? 0 : -ENOMEM;
}

static int take_callback(struct d9__texts *names, struct d9__archived *said,
			 struct d9__archived_callback *callback, struct json_object *of)
{
	const char *name = text(of, "name"), *source = text(of, "source");
	char *key;
	int err, len = asprintf(&key, "%s\x1f%s\x1f%s", said->service, name ? name : "",
				source ? source : "");

	if (len < 0)
		return -ENOMEM;
	err = d9__texts_number(names, key, (size_t)len, &callback->number);
	free(key);
	if (err)
		return err;
	callback->calls = number(of, "calls");
	callback->total_ns = number(of, "total_ns");
	callback->longest_ns = number(of, "longest_ns");
	callback->at_ns = number(of, "at_ns");
	callback->worker = number(of, "worker");
	err = take_segment(callback, of);
	return err ? err : take_durations(said, callback, of);
}

/* Read the list under |key| of |of| into |*out|. */
static int take_each(struct d9__texts *names, struct d9__archived *said, struct json_object *of, const char *key,
		     struct d9__archived_callback **out, size_t *n_out)
{
	size_t n;
	struct json_object *callbacks = array(of, key, &n);
	int err = 0;

	*out = calloc(n ? n : 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	said->bytes += n * sizeof(**out);
	for (size_t i = 0; i < n && !err; i++) {
		struct json_object *callback = json_object_array_get_idx(callbacks, i);

		if (json_object_is_type(callback, json_type_object))
			err = take_callback(names, said, &(*out)[(*n_out)++], callback);
	}
	return err;
}

static int take_callbacks(struct d9__archive *archive, struct d9__archived *said,
			  struct json_object *of)
{
	int err = take_each(&archive->callbacks, said, of, "callbacks", &said->callbacks, &said->n_callbacks);

	said->left_out_calls = number(of, "left_out_calls");
	said->left_out_ns = number(of, "left_out_ns");
	return err ? err : take_each(&archive->spans, said, of, "spans", &said->spans, &said->n_spans);
}

/* The child of |parent| called |name|, made at its first sight; |parent| itself where the budget
 * does not allow it. */
static int node_at(struct d9__archive *archive, uint32_t parent, uint8_t kind, const char *name,
		   uint32_t *out)
{
	uint32_t number;
	uint64_t edge;
	uintptr_t known;

	if (d9__texts_number(&archive->names, name, strlen(name), &number))
		return -ENOMEM;
	edge = (uint64_t)parent << 32 | number;
	known = (uintptr_t)d9__table_find(&archive->by_edge, edge);
	*out = known ? (uint32_t)(known - 1) : parent;
	if (known || !d9__budget_take(D9__KEPT_STACKS,
				      sizeof(*archive->nodes) + 3 * sizeof(struct d9__table_entry)))
		return 0;
	if (!d9__array_grow(archive->nodes, archive->n_nodes))
		return -ENOMEM;
	archive->n_nodes += !archive->n_nodes; /* the root; there is room for eight at first */
	*out = (uint32_t)archive->n_nodes++;
	archive->nodes[*out] =
		(struct d9__archive_node) { .parent = parent, .name = number, .kind = kind };
	return d9__table_add(&archive->by_edge, edge, (void *)(uintptr_t)(*out + 1));
}

/* Nodes come as (parent, kind, own samples, name), parents first, counted from 1. */
static int take_node(struct d9__archive *archive, struct d9__archived *said,
		     struct json_object *nodes, size_t i, uint32_t *numbers)
{
	uint64_t parent = number_at(nodes, 4 * i), samples = number_at(nodes, 4 * i + 2);
	const char *name = json_object_get_string(json_object_array_get_idx(nodes, 4 * i + 3));
	int err = node_at(archive, numbers[parent <= i ? parent : 0],
			  (uint8_t)number_at(nodes, 4 * i + 1), name ? name : "", &numbers[i + 1]);

	if (!err && samples)
		said->selves[said->n_selves++] =
			(struct d9__archived_self) { .node = numbers[i + 1], .samples = samples };
	return err;
}

static int take_nodes(struct d9__archive *archive, struct d9__archived *said,
		      struct json_object *of)
{
	size_t n;
	struct json_object *nodes = array(of, "nodes", &n);
	uint32_t *numbers;
	int err = 0;

	n /= 4;
	numbers = calloc(n + 1, sizeof(*numbers));
	said->selves = calloc(n ? n : 1, sizeof(*said->selves));
	if (!numbers || !said->selves)
		err = -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = take_node(archive, said, nodes, i, numbers);
	free(numbers);
	said->samples = number(of, "samples");
	said->bytes += n * sizeof(*said->selves);
	return err;
}

/* ---- the whole ---- */

static char *process_of(const char *name, const char *boot_id)
{
	char *process;

	return asprintf(&process, "%.*s%s%s", (int)d9__listing_folder(name), name,
			boot_id ? "@" : "", boot_id ? boot_id : "") < 0
		       ? NULL
		       : process;
}

/* A trace without a clock of the day is taken to have ended when its file did. */
static void set_times(struct d9__archived *said, struct json_object *of, int64_t modified_ns)
{
	uint64_t wall_ns = number(of, "wall_ns"), first_ns = number(of, "first_ns"),
		 last_ns = number(of, "last_ns");
	double length_ms = last_ns > first_ns ? (double)(last_ns - first_ns) / 1e6 : 0;

	said->from_ms = wall_ns ? (double)wall_ns / 1e6 : (double)modified_ns / 1e6 - length_ms;
	said->to_ms = said->from_ms + length_ms;
}

/* Take the facts in the object's name, because its content may claim any process and time. */
static int take_facts(struct d9__archived *said, const struct d9__source_facts *facts)
{
	double from_ms = (double)facts->from_ms, most_ms = from_ms + D9__STORED_HOUR_S * 1000.0;

	said->service = strdup(facts->service);
	said->host = strdup(facts->host);
	said->process = strdup(facts->process);
	/* An hour's times are of its hour, so that none of it is counted in the next. */
	if (facts->segments || !(said->from_ms >= from_ms - 60000 && said->from_ms <= most_ms))
		said->from_ms = from_ms;
	if (facts->segments || !(said->to_ms >= said->from_ms && said->to_ms <= most_ms + D9__STORED_HOUR_S * 1000.0))
		said->to_ms = said->from_ms > (double)facts->to_ms ? said->from_ms : (double)facts->to_ms;
	return said->service && said->host && said->process ? 0 : -ENOMEM;
}

static int take_place(const struct d9__archive_entry *entry, struct json_object *of, struct d9__archived *said)
{
	const char *service = text(of, "service"), *host = text(of, "host");

	set_times(said, of, entry->modified_ns);
	if (entry->facts)
		return take_facts(said, entry->facts);
	said->service = strdup(service && *service ? service : "(no name)");
	said->host = strdup(host ? host : "");
	said->process = process_of(entry->name, text(of, "boot_id"));
	return said->service && said->host && said->process ? 0 : -ENOMEM;
}

static int fill(struct d9__archive *archive, const struct d9__archive_entry *entry,
		struct json_object *of, struct d9__archived *said)
{
	int err = take_place(entry, of, said);

	if (!err)
		err = make_map(of, said, entry->facts);
	if (!err)
		err = take_callbacks(archive, said, of);
	if (!err)
		err = take_nodes(archive, said, of);
	return err;
}

static void free_callbacks(struct d9__archived_callback *callbacks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(callbacks[i].durations);
		free(callbacks[i].segment);
	}
	free(callbacks);
}

static void forget_counts(struct d9__archived *said)
{
	free_callbacks(said->callbacks, said->n_callbacks);
	free_callbacks(said->spans, said->n_spans);
	free(said->selves);
	said->callbacks = said->spans = NULL;
	said->selves = NULL;
	said->n_callbacks = said->n_spans = said->n_selves = 0;
}

int d9__archived_parse(struct d9__archive *archive, const struct d9__archive_entry *entry,
		       const char *text, size_t len, struct d9__archived **out)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *of = tokener ? json_tokener_parse_ex(tokener, text, (int)len) : NULL;
	struct d9__archived *said = calloc(1, sizeof(*said));
	int err = !tokener || !said			      ? -ENOMEM
		  : json_object_is_type(of, json_type_object) ? 0
							      : -EBADMSG;

	if (!err)
		err = fill(archive, entry, of, said);
	if (!err) {
		said->counts = d9__budget_take(D9__KEPT_SEGMENTS, said->bytes);
		if (!said->counts) {
			forget_counts(said);
			said->bytes = 0;
		}
		*out = said;
	} else {
		if (said)
			said->bytes = 0;
		d9__archived_free(said);
	}
	json_object_put(of);
	if (tokener)
		json_tokener_free(tokener);
	return err;
}

static void put_listed(struct d9__json *json, const struct d9__archived *said, const struct d9__source_facts *facts)
{
	d9__json_string(json, "process", said->process);
	d9__json_string(json, "service", said->service);
	d9__json_string(json, "host", said->host);
	d9__json_double(json, "from_ms", said->from_ms);
	d9__json_double(json, "to_ms", said->to_ms);
	if (facts->segments) {
		d9__json_string(json, "kind", "hour");
		d9__json_u64(json, "segments", facts->segments);
		d9__json_u64(json, "missing", facts->missing);
	}
	if (facts->worst_ms >= 0)
		d9__json_u64(json, "longest_ns", (uint64_t)facts->worst_ms * 1000000);
}

int d9__archived_listed(const struct d9__archive_entry *entry, struct d9__archived **out)
{
	const struct d9__source_facts *facts = entry->facts;
	struct d9__archived *said = calloc(1, sizeof(*said));
	struct d9__json json = { 0 };
	size_t len;

	if (!said)
		return -ENOMEM;
	said->from_ms = (double)facts->from_ms;
	said->to_ms = (double)facts->to_ms;
	said->service = strdup(facts->service);
	said->host = strdup(facts->host);
	said->process = strdup(facts->process);
	json.out = open_memstream(&said->map, &len);
	if (json.out && said->service && said->host && said->process)
		put_listed(&json, said, facts);
	if (!json.out || fclose(json.out) || !said->process || !said->host || !said->service) {
		d9__archived_free(said);
		return -ENOMEM;
	}
	*out = said;
	return 0;
}

void d9__archived_free(struct d9__archived *said)
{
	if (!said)
		return;
	if (said->bytes)
		d9__budget_give(said->bytes);
	forget_counts(said);
	free(said->service);
	free(said->host);
	free(said->process);
	free(said->map);
	free(said);
}
