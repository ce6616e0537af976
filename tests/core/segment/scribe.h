/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scribe: a writer under test.  It writes numbers to the scratch directory by a clock of its own,
 * on a file system that fails when a test says so, until there is a new scribe.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "core/record/scratch.h"
#include "core/segment/failing_files.h"
#include "format/encoder.h"
#include "ring/clock.h"
#include "ring/event_types.h"
#include "segment/writer.h"

#define MS	  UINT64_C(1000000)
#define SECOND	  UINT64_C(1000000000)
#define PER_WRITE 50u

/* ---- writing ---- */

struct scribe {
	struct d9__writer writer;
	struct d9__writer_counters counters;
	struct d9__builder batch;
	uint64_t now_ns;
	uint64_t next; /* number; all before it are committed */
};

static inline void scribe_new_of(struct scribe *scribe, enum d9_writer kind,
				 enum d9_compress compress)
{
	struct d9_options *given = scratch_options(), options = { 0 };

	all_works();
	CU_ASSERT_EQUAL_FATAL(d9__event_types_init(), 0);
	d9_options_set_writer(given, kind);
	d9_options_set_compress(given, compress);
	CU_ASSERT_EQUAL_FATAL(d9__options_resolve(&options, given), 0);
	d9_options_free(given);
	*scribe = (struct scribe) { .now_ns = SECOND };
	d9__writer_init(&scribe->writer, &options, "test-1", &scribe->counters);
	CU_ASSERT_EQUAL_FATAL(d9__writer_open(&scribe->writer, scratch_dir, 1), 0);
	d9__options_release(&options);
}

static inline void scribe_new(struct scribe *scribe, enum d9_compress compress)
{
	scribe_new_of(scribe, D9_WRITER_ROTATING, compress);
}

/* Put the numbers of one write into the batch. */
static inline void scribe_build(struct scribe *scribe)
{
	struct d9__builder *b = &scribe->batch;
	uint32_t none;

	d9__builder_begin(b);
	none = d9__builder_name(b, "");
	for (uint64_t n = scribe->next; n < scribe->next + PER_WRITE; n++) {
		uint8_t *p = d9__builder_event(b, D9__EVENT_LAST_SIGN, d9__clock_mono_ns(),
					       3 * D9__VARINT_MAX + 4);

		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		p = d9__varint_put(d9__varint_put(p, n * 2654435761 % 251), n);
		d9__builder_end(b, d9__wire_put_u32(d9__varint_put(p, n * n * 7919), none));
	}
}

/* One write, 100 ms later; it is given again until it succeeds. */
static inline void scribe_write(struct scribe *scribe)
{
	struct d9__writer *w = &scribe->writer;
	int err;

	scribe->now_ns += 100 * MS;
	if (!d9__writer_ready(w, scribe->now_ns))
		return;
	scribe_build(scribe);
	err = d9__writer_add(w, scribe->batch.data, scribe->batch.len, scribe->batch.first_ns,
			     scribe->batch.last_ns, PER_WRITE, scribe->now_ns);
	if (err)
		d9__writer_abandon(w, err, scribe->now_ns);
	else if (!d9__writer_commit(w, scribe->now_ns))
		scribe->next += PER_WRITE;
}

static inline void scribe_write_for(struct scribe *scribe, uint64_t seconds)
{
	for (uint64_t i = 0; i < 10 * seconds; i++)
		scribe_write(scribe);
}

/* |n| segments of some writes each. */
static inline void scribe_fill(struct scribe *scribe, int n)
{
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < 8; j++)
			scribe_write(scribe);
		d9__writer_rotate(&scribe->writer, scribe->now_ns);
	}
}

static inline void scribe_end(struct scribe *scribe)
{
	d9__writer_close(&scribe->writer, scribe->now_ns);
	d9__builder_release(&scribe->batch);
}

/* ---- reading ---- */

struct found {
	uint64_t numbers, next, disorder;
	char evicted[64]; /* as the last metadata has it */
};

static inline void look(void *arg, const struct d9_event *event)
{
	struct found *found = arg;

	if (!strcmp(d9_event_name(event), "SegmentMetadataEvent")) {
		const struct d9_value *entries = d9_event_field(event, "entries");

		for (size_t i = 0; i < entries->u.string_map.n; i++) {
			struct d9_text key = entries->u.string_map.pairs[2 * i];
			struct d9_text value = entries->u.string_map.pairs[2 * i + 1];

			if (key.len == 15 && !memcmp(key.data, "segment.evicted", 15))
				snprintf(found->evicted, sizeof(found->evicted), "%.*s",
					 (int)value.len, value.data);
		}
	}
	if (strcmp(d9_event_name(event), "LastSignEvent") != 0)
		return;
	found->disorder += d9_event_u64(event, "task_id", 0) != found->next;
	found->next = d9_event_u64(event, "task_id", 0) + 1;
	found->numbers++;
}

static inline struct found scribe_read(void)
{
	struct found found = { .numbers = 0 };

	scratch_read(scratch_dir, true, look, &found);
	return found;
}

/*
 * End |scribe|: every number is there, once and in order, in files that are complete; or else
 * |what| is printed.
 */
static inline void check_all_is_there(struct scribe *scribe, const char *what)
{
	struct found found;
	bool good;

	scribe_end(scribe);
	found = scribe_read();
	good = found.numbers == scribe->next && !found.disorder &&
	       scratch_files(scratch_dir, ".active") == 0;
	if (!good)
		printf("%s: %lu of %lu there, %lu in disorder\n", what,
		       (unsigned long)found.numbers, (unsigned long)scribe->next,
		       (unsigned long)found.disorder);
	CU_ASSERT(good);
}
