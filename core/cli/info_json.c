/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analyze/budget.h"
#include "base/utf8.h"
#include "cli/info_json.h"

const char *d9__wall_text(uint64_t wall_ns, char buf[D9__WALL_LEN])
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(buf, D9__WALL_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, D9__WALL_LEN - n, ".%09uZ", (unsigned)(wall_ns % 1000000000));
	return buf;
}

/* Write "key":, behind a comma unless it is the first of its object. */
static void put_key(struct d9__text_out *out, const char *key, bool first)
{
	if (!first)
		d9__text_char(out, ',');
	d9__text_json(out, key, strlen(key));
	d9__text_char(out, ':');
}

static void put_u64(struct d9__text_out *out, const char *key, uint64_t n)
{
	put_key(out, key, false);
	d9__text_u64(out, n);
}

static void put_bool(struct d9__text_out *out, const char *key, bool on)
{
	put_key(out, key, false);
	d9__text_string(out, on ? "true" : "false");
}

/* |text| or null. */
static void put_text(struct d9__text_out *out, const char *key, const char *text)
{
	put_key(out, key, false);
	if (text)
		d9__text_json(out, text, strlen(text));
	else
		d9__text_string(out, "null");
}

static void put_span(struct d9__text_out *out, uint64_t first_ns, uint64_t last_ns)
{
	put_u64(out, "start_ns", first_ns);
	put_u64(out, "end_ns", last_ns);
	put_u64(out, "duration_ns", last_ns - first_ns);
}

static void put_wall(struct d9__text_out *out, uint64_t wall_ns)
{
	char buf[D9__WALL_LEN];

	put_text(out, "wall_start", wall_ns ? d9__wall_text(wall_ns, buf) : NULL);
}

static void put_tallies(struct d9__text_out *out, const char *key,
			const struct d9__tallies *tallies)
{
	put_key(out, key, false);
	d9__text_char(out, '{');
	for (size_t i = 0; i < tallies->n; i++) {
		put_key(out, tallies->items[i].name, i == 0);
		d9__text_u64(out, tallies->items[i].n);
	}
	d9__text_char(out, '}');
}

static void put_error(struct d9__text_out *out, const struct d9_segment_info *info)
{
	put_key(out, "error", false);
	if (!info->err) {
		d9__text_string(out, "null");
		return;
	}
	d9__text_string(out, "{\"offset\":");
	d9__text_u64(out, info->err_offset);
	put_text(out, "message", info->message);
	d9__text_char(out, '}');
}

static void put_segment(struct d9__text_out *out, const struct d9_segment_info *info)
{
	d9__text_char(out, '{');
	put_key(out, "path", true);
	d9__text_json(out, info->path, strlen(info->path));
	put_text(out, "container", info->container);
	put_u64(out, "stored_bytes", info->stored_bytes);
	put_u64(out, "unpacked_bytes", info->unpacked_bytes);
	put_u64(out, "batches", info->batches);
	put_u64(out, "events", info->events);
	put_span(out, info->first_ns, info->last_ns);
	put_bool(out, "active", info->active);
	put_bool(out, "truncated", info->truncated);
	put_u64(out, "repeated_keys", info->repeated_keys);
	put_u64(out, "unresolved", info->unresolved);
	put_u64(out, "unusable", info->unusable);
	put_error(out, info);
	d9__text_char(out, '}');
}

static void put_segments(struct d9__text_out *out, const struct d9_reader *reader)
{
	struct d9_segment_info info;

	put_key(out, "segments", false);
	d9__text_char(out, '[');
	for (size_t i = 0; i < d9_reader_segments(reader); i++) {
		if (i)
			d9__text_char(out, ',');
		if (!d9_reader_segment(reader, i, &info))
			put_segment(out, &info);
	}
	d9__text_char(out, ']');
}

/* "poll=yes,park=yes" as an array of texts. */
static void put_list(struct d9__text_out *out, const char *key, const char *list)
{
	put_key(out, key, false);
	d9__text_char(out, '[');
	for (const char *end; list && *list; list = *end ? end + 1 : end) {
		end = list + strcspn(list, ",");
		d9__text_json(out, list, (size_t)(end - list));
		if (*end)
			d9__text_char(out, ',');
	}
	d9__text_char(out, ']');
}

/*
 * Write the hooks of one loop library: the metadata keys |prefix|.version, .capabilities,
 * .degraded.
 */
static void put_hooks(struct d9__text_out *out, const struct d9__process *process,
		      const char *prefix, size_t len)
{
	char key[128];

	size_t skip = len > 5 && !strncmp(prefix, "loop.", 5) ? 5 : 0;

	d9__text_char(out, '{');
	put_key(out, "library", true);
	d9__text_json(out, prefix + skip, len - skip);
	snprintf(key, sizeof(key), "%.*s.version", d9__precision(len), prefix);
	put_text(out, "version", d9__process_fact(process, key));
	snprintf(key, sizeof(key), "%.*s.capabilities", d9__precision(len), prefix);
	put_list(out, "capabilities", d9__process_fact(process, key));
	snprintf(key, sizeof(key), "%.*s.degraded", d9__precision(len), prefix);
	put_list(out, "degraded", d9__process_fact(process, key));
	d9__text_char(out, '}');
}

static void put_all_hooks(struct d9__text_out *out, const struct d9__process *process)
{
	static const char suffix[] = ".capabilities";
	bool first = true;

	put_key(out, "hooks", false);
	d9__text_char(out, '[');
	for (size_t i = 0; i < process->n_metadata; i++) {
		const char *key = process->metadata[i].key, *end = strstr(key, suffix);

		if (!end || end[sizeof(suffix) - 1])
			continue;
		if (!first)
			d9__text_char(out, ',');
		first = false;
		put_hooks(out, process, key, (size_t)(end - key));
	}
	d9__text_char(out, ']');
}

static void put_metadata(struct d9__text_out *out, const struct d9__process *process)
{
	put_key(out, "metadata", false);
	d9__text_char(out, '{');
	for (size_t i = 0; i < process->n_metadata; i++) {
		put_key(out, process->metadata[i].key, i == 0);
		d9__text_json(out, process->metadata[i].value,
			      strlen(process->metadata[i].value));
	}
	d9__text_char(out, '}');
}

static void put_log(struct d9__text_out *out, const struct d9__log *log)
{
	put_key(out, "log", false);
	d9__text_char(out, '{');
	put_key(out, "last", true);
	d9__text_char(out, '[');
	for (size_t i = 0; i < log->n; i++) {
		d9__text_string(out, i ? ",{" : "{");
		put_key(out, "at_ns", true);
		d9__text_u64(out, log->last[i].ns);
		put_text(out, "level", log->last[i].level);
		put_text(out, "text", log->last[i].text);
		put_u64(out, "times", log->last[i].times);
		d9__text_char(out, '}');
	}
	d9__text_char(out, ']');
	put_tallies(out, "lines", &log->levels);
	d9__text_char(out, '}');
}

static void put_process(struct d9__text_out *out, const struct d9__process *process)
{
	d9__text_char(out, '{');
	put_key(out, "directory", true);
	d9__text_json(out, process->directory, strlen(process->directory));
	put_u64(out, "events", process->events);
	put_span(out, process->first_ns, process->last_ns);
	put_wall(out, d9__process_wall_start_ns(process));
	put_tallies(out, "loss", &process->loss);
	put_all_hooks(out, process);
	put_metadata(out, process);
	put_log(out, &process->log);
	put_key(out, "health", false);
	d9__text_string(out, process->health_json ? process->health_json : "null");
	d9__text_char(out, '}');
}

void d9__left_out_json(struct d9__text_out *out)
{
	bool first = true;
	uint64_t n;

	d9__text_char(out, '{');
	for (unsigned i = 0; i < D9__KEPT_KINDS; i++) {
		const char *key = d9__budget_key((enum d9__kept)i, &n);

		if (!n)
			continue;
		put_key(out, key, first);
		d9__text_u64(out, n);
		first = false;
	}
	d9__text_char(out, '}');
}

void d9__info_json(struct d9__text_out *out, const struct d9_reader *reader,
		   const struct d9__trace_facts *facts, const struct d9__dump_list *dumps)
{
	uint64_t events = 0;

	for (size_t i = 0; i < facts->types.n; i++)
		events += facts->types.items[i].n;
	d9__text_char(out, '{');
	put_key(out, "total_events", true);
	d9__text_u64(out, events);
	put_key(out, "left_out", false);
	d9__left_out_json(out);
	put_tallies(out, "events", &facts->types);
	put_segments(out, reader);
	put_key(out, "dumps", false);
	d9__text_char(out, '[');
	for (size_t i = 0; i < dumps->n; i++) {
		if (i)
			d9__text_char(out, ',');
		d9__text_json(out, dumps->dumps[i].path, strlen(dumps->dumps[i].path));
	}
	d9__text_char(out, ']');
	put_key(out, "processes", false);
	d9__text_char(out, '[');
	for (size_t i = 0; i < facts->n_processes; i++) {
		if (i)
			d9__text_char(out, ',');
		put_process(out, &facts->processes[i]);
	}
	d9__text_string(out, "]}\n");
}
