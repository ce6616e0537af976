/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/segment_facts.h"

#include <errno.h>
#include <string.h>

#include <dial9/reader.h>

#include "format/values.h"
#include "stage/frames.h"

#define WORKERS 64 /* whose open callbacks are followed; more share their places */

struct facts {
	struct d9__segment_facts *out;
	struct d9__frames_in in;
	struct d9__values values;
	bool anchored;
	uint64_t to_wall_ns; /* of the first anchor, modulo 2^64 */
	uint64_t first_ns, last_ns; /* of the recorded process */
	struct {
		uint64_t worker, start_ns;
		bool open;
	} polls[WORKERS];
};

static const struct d9_value *known(const struct facts *facts, const struct d9__frame *frame, int place)
{
	int32_t i = frame->schema->known[place];

	return i < 0 || !facts->values.items[i].present ? NULL : &facts->values.items[i];
}

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

static void take_anchor(struct facts *facts, const struct d9__frame *frame, const struct d9_value *realtime)
{
	if (facts->anchored)
		return;
	facts->anchored = true;
	facts->out->start_ns = realtime->u.u64;
	facts->to_wall_ns = realtime->u.u64 - frame->timestamp_ns;
}

static void follow_poll(struct facts *facts, const struct d9__frame *frame, uint64_t worker, bool starts)
{
	size_t i = worker % WORKERS;
	uint64_t start_ns = facts->polls[i].start_ns;

	if (!starts && facts->polls[i].open && facts->polls[i].worker == worker && frame->timestamp_ns > start_ns &&
	    frame->timestamp_ns - start_ns > facts->out->worst_ns)
		facts->out->worst_ns = frame->timestamp_ns - start_ns;
	facts->polls[i].worker = worker;
	facts->polls[i].start_ns = frame->timestamp_ns;
	facts->polls[i].open = starts;
}

/* An event of a kind that is opened. */
static int take_values(struct facts *facts, const struct d9__frame *frame)
{
	enum d9_event_kind kind = (enum d9_event_kind)frame->schema->kind;
	const struct d9_value *value;
	int err = d9__values_build(&facts->values, &facts->in.reader.decoder, frame);

	if (err)
		return err;
	value = known(facts, frame, kind == D9_EVENT_RECORDER_LOSS ? D9_RECORDER_LOSS_EVENTS : 0);
	if (!value)
		return 0;
	if (kind == D9_EVENT_SEGMENT_METADATA)
		take_metadata(facts, value);
	else if (kind == D9_EVENT_CLOCK_SYNC)
		take_anchor(facts, frame, value);
	else if (kind == D9_EVENT_RECORDER_LOSS)
		facts->out->lost += value->u.u64;
	else
		follow_poll(facts, frame, value->u.u64, kind == D9_EVENT_POLL_START);
	return 0;
}

static int take(struct facts *facts, const struct d9__frame *frame)
{
	enum d9_event_kind kind;

	if (frame->kind != D9__FRAME_EVENT)
		return 0;
	kind = (enum d9_event_kind)frame->schema->kind;
	if (kind != D9_EVENT_CLOCK_SYNC && kind != D9_EVENT_SEGMENT_METADATA) {
		facts->out->events++;
		if (frame->timestamp_ns) {
			if (!facts->first_ns || frame->timestamp_ns < facts->first_ns)
				facts->first_ns = frame->timestamp_ns;
			if (frame->timestamp_ns > facts->last_ns)
				facts->last_ns = frame->timestamp_ns;
		}
	}
	switch (kind) {
	case D9_EVENT_CLOCK_SYNC:
	case D9_EVENT_SEGMENT_METADATA:
	case D9_EVENT_RECORDER_LOSS:
	case D9_EVENT_POLL_START:
	case D9_EVENT_POLL_END:
		return take_values(facts, frame);
	default:
		return 0;
	}
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
	while (!err && (err = d9__frames_next(&facts.in, &frame)) == 1) {
		any = true;
		err = take(&facts, &frame);
	}
	if (err == -EBADMSG && any) {
		out->damaged = true;
		err = 0;
	}
	if (facts.anchored && facts.first_ns) {
		out->first_ns = facts.first_ns + facts.to_wall_ns;
		out->last_ns = facts.last_ns + facts.to_wall_ns;
	}
	d9__frames_release(&facts.in);
	d9__values_release(&facts.values);
	return err;
}
