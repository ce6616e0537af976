/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "soak/census.h"

#define TOLD "segment.told_ns"

static void add_step(struct census *census, const struct d9_event *event)
{
	uint64_t source = d9_event_u64(event, "source", CENSUS_SOURCES);
	uint64_t number = d9_event_u64(event, "number", 0);

	census->steps++;
	if (source >= CENSUS_SOURCES || number < census->next[source]) {
		census->disorder++;
		return;
	}
	census->next[source] = number + 1;
}

/* As of when the segment tells what lives: those events stand beside what the program recorded. */
static void learn_told(struct census *census, const struct d9_event *event)
{
	const struct d9_value *value = &event->values[0];
	char number[24];

	for (size_t i = 0; value->type == D9_FIELD_STRING_MAP && i < value->u.string_map.n; i++) {
		const struct d9_text *pair = &value->u.string_map.pairs[2 * i];

		if (pair[0].len != strlen(TOLD) || memcmp(pair[0].data, TOLD, pair[0].len) != 0)
			continue;
		snprintf(number, sizeof(number), "%.*s", (int)pair[1].len, pair[1].data);
		census->told_ns = strtoull(number, NULL, 10);
	}
}

static void add_other(struct census *census, const struct d9_event *event)
{
	const char *name = d9_event_name(event);

	if (!strcmp(name, "SoakStep")) {
		add_step(census, event);
	} else if (!strcmp(name, "RecorderLossEvent")) {
		census->notes++;
		census->noted_losses += d9_event_u64(event, "events", 0);
	} else if (!strcmp(name, "RecorderHealthEvent") || !strcmp(name, "RecorderLogEvent")) {
		census->notes++;
	} else if (!strcmp(name, "SegmentMetadataEvent")) {
		census->lead++;
		learn_told(census, event);
	} else if (!strcmp(name, "ClockSyncEvent") || !strcmp(name, "ModuleEvent") ||
		   (event->kind == D9_EVENT_TASK_SPAWN && event->timestamp_ns == census->told_ns)) {
		census->lead++;
	}
}

static void add_event(struct census *census, const struct d9_event *event)
{
	census->events++;
	if (event->kind == D9_EVENT_POLL_START)
		census->starts++;
	else if (event->kind == D9_EVENT_POLL_END)
		census->ends++;
	else
		add_other(census, event);
}

static void note_damage(struct census *census, const char *message)
{
	if (!census->damaged++)
		snprintf(census->message, sizeof(census->message), "%s", message);
}

void census_add(struct census *census, const char *path)
{
	const struct d9_event *event;
	struct d9_segment_info info;
	struct d9_reader *reader;
	int got;

	if (d9_reader_new(&reader)) {
		note_damage(census, "out of memory");
		return;
	}
	/* In the order of writing: that of each thread. */
	d9_reader_set_file_order(reader, true);
	got = d9_reader_add(reader, path);
	while (got >= 0 && (got = d9_reader_next(reader, &event)) == 1)
		add_event(census, event);
	if (got < 0)
		note_damage(census, d9_reader_message(reader));
	for (size_t i = 0; i < d9_reader_segments(reader); i++) {
		census->segments++;
		d9_reader_segment(reader, i, &info);
		if (info.err || info.truncated)
			note_damage(census, info.message ? info.message : path);
	}
	d9_reader_free(reader);
}
