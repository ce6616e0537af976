/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <dial9/reader.h>

#include "base/artefact.h"
#include "format/values.h"
#include "stage/frames.h"
#include "stage/program_facts.h"
#include "text/json.h"

/* The kernel takes 128 KiB of one variable, and an escaped byte can take six. */
#define METADATA_BYTES 16384

struct facts {
	struct d9__frames_in in;
	struct d9__values values;
	uint64_t realtime_ns, monotonic_ns; /* of the first pair; 0: none */
	uint64_t first_ns;
};

static const struct d9_value *known(const struct facts *facts, const struct d9__frame *frame,
				    int place)
{
	int32_t i = frame->schema->known[place];

	return i < 0 || !facts->values.items[i].present ? NULL : &facts->values.items[i];
}

static void tell_pairs(struct d9__json *json, const struct d9_value *entries)
{
	size_t left = METADATA_BYTES;

	d9__json_open(json, "metadata", '{');
	for (size_t i = 0; i < entries->u.string_map.n; i++) {
		const struct d9_text *key = &entries->u.string_map.pairs[2 * i], *value = key + 1;
		char name[256];

		if (key->len >= sizeof(name) || key->len + value->len > left)
			continue;
		left -= key->len + value->len;
		snprintf(name, sizeof(name), "%.*s", (int)key->len, key->data);
		d9__json_text(json, name, value->data, value->len);
	}
	d9__json_close(json, '}');
}

/* Read up to the first metadata and tell them. */
static void tell_metadata(struct facts *facts, struct d9__json *json)
{
	struct d9__frame frame;

	while (d9__frames_next(&facts->in, &frame) == 1) {
		const struct d9_value *value;

		if (frame.kind != D9__FRAME_EVENT)
			continue;
		if (frame.schema->kind != D9_EVENT_CLOCK_SYNC &&
		    frame.schema->kind != D9_EVENT_SEGMENT_METADATA)
			return;
		if (d9__values_build(&facts->values, &facts->in.reader.decoder, &frame))
			return;
		value = known(facts, &frame, 0);
		if (value && frame.schema->kind == D9_EVENT_SEGMENT_METADATA) {
			tell_pairs(json, value);
			return;
		}
		if (value && !facts->realtime_ns) {
			facts->realtime_ns = value->u.u64;
			d9__json_u64(json, "epoch_s", facts->realtime_ns / 1000000000);
			d9__json_u64(json, "begins_ns", frame.timestamp_ns);
		}
	}
}

static void tell(struct facts *facts, const char *path, struct d9__json *json)
{
	const char *slash = strrchr(path, '/');
	uint64_t index;

	d9__json_open(json, NULL, '{');
	if (d9__artefact_of(slash ? slash + 1 : path, &index) == D9__ARTEFACT_SEGMENT)
		d9__json_u64(json, "index", index);
	d9__json_string(json, "path", path);
	d9__json_u64(json, "bytes", facts->in.input.size_bytes);
	d9__json_string(json, "container", d9__container_name(facts->in.container.kind));
	tell_metadata(facts, json);
	d9__json_close(json, '}');
}

/* One line: texts hold no ends of lines of their own. */
static void fold_lines(char *text)
{
	char *to = text;

	for (const char *p = text; *p;) {
		if (*p != '\n')
			*to++ = *p++;
		else
			p += 1 + strspn(p + 1, " \t");
	}
	*to = '\0';
}

char *d9__program_facts(int fd, const char *path)
{
	struct facts facts = { 0 };
	char *text = NULL;
	size_t len;
	struct d9__json json = { .out = open_memstream(&text, &len) };

	if (!json.out)
		return NULL;
	fputs("DIAL9_SEGMENT=", json.out);
	if (!d9__frames_open(&facts.in, fd))
		tell(&facts, path, &json);
	d9__frames_release(&facts.in);
	d9__values_release(&facts.values);
	if (fclose(json.out)) {
		free(text);
		return NULL;
	}
	fold_lines(text);
	return text;
}
