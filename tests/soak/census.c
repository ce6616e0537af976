/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <dial9/reader.h>

#include "soak/census.h"

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

static void add_other(struct census *census, const struct d9_event *event)
{
	const char *name = d9_event_name(event);

	if (!strcmp(name, "SoakStep")) {
		add_step(census, event);
	} else if (!strcmp(name, "RecorderLossEvent")) {
		census->notes++;
		census->noted_losses += d9_event_u64(event, "events", 0);
	} else if (!strcmp(name, "RecorderHealthEvent")) {
		census->notes++;
	} else if (!strcmp(name, "ClockSyncEvent") || !strcmp(name, "SegmentMetadataEvent") ||
		   !strcmp(name, "ModuleEvent")) {
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

void census_add(struct census *census, const char *path)
{
	const struct d9_event *event;
	struct d9_segment_info info;
	struct d9_reader *reader;
	int got;

	if (d9_reader_new(&reader)) {
		census->damaged++;
		return;
	}
	/* In the order of writing: that of each thread. */
	d9_reader_set_file_order(reader, true);
	got = d9_reader_add(reader, path);
	while (got >= 0 && (got = d9_reader_next(reader, &event)) == 1)
		add_event(census, event);
	census->segments++;
	if (got < 0 || d9_reader_segment(reader, 0, &info) || info.err || info.truncated) {
		if (!census->damaged++)
			snprintf(census->message, sizeof(census->message), "%s: %s", path,
				 got < 0 ? d9_reader_message(reader) : "damaged");
	}
	d9_reader_free(reader);
}
