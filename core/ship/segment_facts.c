/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/segment_facts.h"

#include <errno.h>
#include <string.h>

#include <dial9/reader.h>

#include "format/values.h"
#include "stage/frames.h"

struct facts {
	struct d9__segment_facts *out;
	struct d9__frames_in in;
	struct d9__values values;
	bool anchored, told;
};

static void take_text(const struct d9_text *text, char *out, size_t size)
{
	if (text->len >= size)
		return;
	memcpy(out, text->data, text->len);
	out[text->len] = '\0';
}

static void take_metadata(struct facts *facts, const struct d9_value *entries)
{
	struct {
		const char *key;
		char *to;
		size_t size;
	} wanted[] = { { "service", facts->out->service, D9__FACT_TEXT },
		       { "host", facts->out->host, D9__FACT_TEXT },
		       { "boot_id", facts->out->boot_id, D9__FACT_TEXT },
		       { "segment.evicted", facts->out->evicted, D9__FACT_EVICTED } };

	for (size_t i = 0; i < entries->u.string_map.n; i++) {
		const struct d9_text *key = &entries->u.string_map.pairs[2 * i];

		for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++)
			if (key->len == strlen(wanted[k].key) && !memcmp(key->data, wanted[k].key, key->len))
				take_text(key + 1, wanted[k].to, wanted[k].size);
	}
}

static int take(struct facts *facts, const struct d9__frame *frame)
{
	bool metadata, anchor;
	const struct d9_value *value;
	int err;

	if (frame->kind != D9__FRAME_EVENT)
		return 0;
	metadata = frame->schema->kind == D9_EVENT_SEGMENT_METADATA && !facts->told;
	anchor = frame->schema->kind == D9_EVENT_CLOCK_SYNC && !facts->anchored;
	if ((!metadata && !anchor) || frame->schema->known[0] < 0)
		return 0;
	err = d9__values_build(&facts->values, &facts->in.reader.decoder, frame);
	value = &facts->values.items[frame->schema->known[0]];
	if (err || !value->present)
		return err;
	if (metadata)
		take_metadata(facts, value);
	else
		facts->out->start_ns = value->u.u64;
	facts->told |= metadata;
	facts->anchored |= anchor;
	return 0;
}

int d9__segment_facts_read(struct d9__segment_facts *out, int fd)
{
	struct facts facts = { .out = out };
	struct d9__frame frame;
	bool any = false;
	int err;

	*out = (struct d9__segment_facts) { 0 };
	err = d9__frames_open(&facts.in, fd);
	if (!err)
		out->kind = facts.in.container.kind;
	while (!err && !(facts.told && facts.anchored) && (err = d9__frames_next(&facts.in, &frame)) == 1) {
		any = true;
		err = take(&facts, &frame);
	}
	/* Everything before the damage is good. */
	if (err == -EBADMSG && any)
		err = 0;
	d9__frames_release(&facts.in);
	d9__values_release(&facts.values);
	return err;
}
