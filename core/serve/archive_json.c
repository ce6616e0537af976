/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of all segments:
 *
 *	{ "version": 12, "all": true, "reading": 3, "total": 40,
 *	  "segments": [ { "name", "path", "bytes", "modified_ms", "active",
 *			  "state": "waiting", "reading", "known", "failed" or "listed", "why",
 *			  and once it is known: "process", "service", "host", "from_ms", "to_ms",
 *			  ..., "bins", "findings" } ] }
 *
 * "listed" is a segment in a bucket that is known by its key alone.  An hour's key tells "kind":
 * "hour", "segments", "missing" and "longest_ns"; "lie" is a difference between its key and its
 * content.  "place" is where the object is, see bucket_source.c.  |bins| are pairs of the longest
 * call and the time in calls, of |bin_ns| each; the first begins |bins_after_ns| after the first
 * event.
 */
#include "config.h"

#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>

#include "serve/archive_json.h"
#include "serve/archive_parts.h"
#include "text/json.h"

static void put_entry(struct d9__json *json, const struct d9__archive_entry *entry)
{
	static const char *const states[] = { [D9__KNOWN_WAITING] = "waiting",
					      [D9__KNOWN_READING] = "reading",
					      [D9__KNOWN] = "known",
					      [D9__KNOWN_FAILED] = "failed",
					      [D9__KNOWN_LISTED] = "listed" };
	char *escaped = evhttp_encode_uri(entry->name);

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "name", entry->name);
	d9__json_string(json, "path", escaped);
	d9__json_u64(json, "bytes", entry->bytes);
	d9__json_u64(json, "modified_ms", (uint64_t)(entry->modified_ns / 1000000));
	d9__json_bool(json, "active", entry->active);
	d9__json_string(json, "state", states[entry->state]);
	if (entry->state == D9__KNOWN_FAILED)
		d9__json_string(json, "why", entry->why);
	if (entry->said) {
		fputc(',', json->out);
		fputs(entry->said->map, json->out);
	}
	d9__json_close(json, '}');
	free(escaped);
}

char *d9__archive_map(struct d9__archive *archive, uint64_t since, size_t *len)
{
	char *text = NULL;
	struct d9__json json = { .out = open_memstream(&text, len) };
	size_t waiting = 0;

	if (!json.out)
		return NULL;
	if (since < archive->removed || since > archive->version)
		since = 0;
	for (size_t i = 0; i < archive->n; i++)
		waiting += archive->entries[i]->state <= D9__KNOWN_READING;
	d9__json_open(&json, NULL, '{');
	d9__json_u64(&json, "version", archive->version);
	d9__json_bool(&json, "all", !since);
	d9__json_u64(&json, "reading", waiting);
	d9__json_u64(&json, "total", archive->n);
	d9__json_open(&json, "segments", '[');
	for (size_t i = 0; i < archive->n; i++)
		if (archive->entries[i]->version > since)
			put_entry(&json, archive->entries[i]);
	d9__json_close(&json, ']');
	if (archive->source->tell)
		archive->source->tell(archive->source->context, &json);
	d9__json_close(&json, '}');
	if (fclose(json.out)) {
		free(text);
		return NULL;
	}
	return text;
}
