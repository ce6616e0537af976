/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any file through <dial9/reader.h>: no crash; time order is one; both orders are complete.  Time
 * order has more events only of calls, and of wakes that polls tell.
 */
#include "config.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "fuzz/fuzz.h"

struct outcome {
	uint64_t events, times;
	struct d9_segment_info info;
	bool added;
	bool tells; /* more than one moment in one event */
};

static bool tells_more(const struct d9_event *event)
{
	return event->kind == D9_EVENT_SPAN_CALL ||
	       (event->kind == D9_EVENT_POLL_START &&
		d9_event_known_u64(event, D9_POLL_START_WAKE, 0));
}

static void check_event(const struct d9_event *event, uint64_t *last_ns, bool file_order)
{
	fuzz_require(file_order || event->timestamp_ns >= *last_ns, "time order is an order");
	*last_ns = event->timestamp_ns;
	for (size_t i = 0; i < d9_schema_fields(event->schema); i++)
		fuzz_require(d9_schema_field_name(event->schema, i) != NULL, "fields have names");
	for (unsigned k = 0; k < 16; k++)
		(void)d9_event_known_u64(event, k, 0);
}

static struct outcome read_trace(const char *path, bool file_order)
{
	struct outcome out = { 0 };
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	uint64_t last_ns = 0;
	int got;

	fuzz_require(d9_reader_new(&reader) == 0, "a reader can be made");
	d9_reader_set_file_order(reader, file_order);
	d9_reader_set_memory_limit(reader, (uint64_t)1 << 24);
	out.added = d9_reader_add(reader, path) == 0;
	while (out.added && (got = d9_reader_next(reader, &event)) != 0) {
		fuzz_require(got == 1, "damage is not an error of reading");
		check_event(event, &last_ns, file_order);
		out.tells |= tells_more(event);
		out.events++;
		out.times += event->timestamp_ns;
	}
	if (out.added)
		d9_reader_segment(reader, 0, &out.info);
	else
		fuzz_require(d9_reader_message(reader)[0] != '\0', "a refusal has a reason");
	out.info.message = out.info.path = NULL;
	d9_reader_free(reader);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct outcome in_time, in_file;
	char path[64];

	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file can be made");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	in_time = read_trace(path, false);
	in_file = read_trace(path, true);
	close(fd);

	fuzz_require(in_time.added == in_file.added, "both orders accept the same");
	fuzz_require(in_time.events >= in_file.events, "time order leaves nothing out");
	fuzz_require(in_file.tells ||
			     (in_time.events == in_file.events && in_time.times == in_file.times),
		     "both orders give all events");
	fuzz_require(in_file.tells || in_time.events == in_time.info.events,
		     "what was counted was given");
	fuzz_require(in_time.info.err == in_file.info.err &&
			     in_time.info.err_offset == in_file.info.err_offset,
		     "both orders see the same damage");
	return 0;
}
