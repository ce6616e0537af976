/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer: how a segment begins, when it is sealed and how it ends.  The clock is the test's.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/record/scratch.h"
#include "core/segment/scribe.h"
#include "segment/metadata.h"

/* ---- what is in a segment ---- */

/* A key of the metadata of a file, as it is told last and first there; "" if it is not. */
struct fact {
	const char *key;
	char first[128], last[128];
	unsigned told; /* metadata in all */
};

static void note_fact(void *arg, const struct d9_event *event)
{
	struct fact *fact = arg;
	const struct d9_value *pairs = &event->values[0];

	if (event->kind != D9_EVENT_SEGMENT_METADATA)
		return;
	fact->told++;
	for (size_t i = 0; i < pairs->u.string_map.n; i++) {
		const struct d9_text *pair = &pairs->u.string_map.pairs[2 * i];

		if (pair[0].len != strlen(fact->key) ||
		    memcmp(pair[0].data, fact->key, pair[0].len) != 0)
			continue;
		snprintf(fact->last, sizeof(fact->last), "%.*s", (int)pair[1].len, pair[1].data);
		if (fact->told == 1)
			snprintf(fact->first, sizeof(fact->first), "%s", fact->last);
	}
}

static struct fact fact_of(unsigned index, const char *key)
{
	struct fact fact = { .key = key };
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/test-1/trace.%u.bin.zst", scratch_dir, index);
	scratch_read(path, true, note_fact, &fact);
	return fact;
}

/* A note of the recorder's own. */
static int scribe_note(struct scribe *scribe, bool real)
{
	scribe_build(scribe);
	return d9__writer_note(&scribe->writer, &scribe->batch, real, scribe->now_ns);
}

static void test_note_begins_a_segment_only_if_it_is_worth_one(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	CU_ASSERT_EQUAL(scribe_note(&scribe, false), 0);
	CU_ASSERT_FALSE(scribe.writer.seg.open);
	CU_ASSERT_EQUAL(scribe.counters.bytes_recorded, 0);
	CU_ASSERT_EQUAL(scribe_note(&scribe, true), 0);
	CU_ASSERT(scribe.writer.seg.open);
	CU_ASSERT_EQUAL(scribe_note(&scribe, false), 0);
	CU_ASSERT_EQUAL(scribe.writer.seg.has.events, 0);
	CU_ASSERT(scribe.counters.bytes_recorded > 0);
	scribe_end(&scribe);
	CU_ASSERT_EQUAL(scratch_count("LastSignEvent"), 2 * PER_WRITE);
	/* The builder of the batch had no memory. */
	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_build(&scribe);
	scribe.batch.failed = true;
	CU_ASSERT_EQUAL(d9__writer_note(&scribe.writer, &scribe.batch, true, scribe.now_ns),
			-ENOMEM);
	CU_ASSERT_FALSE(scribe.writer.seg.open);
	scribe_end(&scribe);
}

static void test_segment_says_how_the_one_before_it_ended(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 2);
	scribe_write(&scribe);
	fail_write.nth = fail_write.times = 1;
	fail_write.err = EIO;
	scribe_write(&scribe);
	scribe_write_for(&scribe, 2);
	scribe_end(&scribe);
	CU_ASSERT_STRING_EQUAL(fact_of(0, "segment.prior_sealed_clean").first, "");
	CU_ASSERT_STRING_EQUAL(fact_of(1, "segment.prior_sealed_clean").first, "true");
	CU_ASSERT_STRING_EQUAL(fact_of(3, "segment.prior_sealed_clean").first, "false");
	CU_ASSERT_STRING_EQUAL(fact_of(1, "segment.sealed_clean").last, "true");
	CU_ASSERT_STRING_EQUAL(fact_of(2, "segment.sealed_clean").last, "");
	CU_ASSERT_STRING_EQUAL(fact_of(3, "segment.sealed_clean").last, "true");
}

static void test_loss_makes_one_segment_incomplete_the_open_one_or_the_next(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 1);
	scribe_write(&scribe);
	d9__writer_lossy(&scribe.writer);
	scribe_fill(&scribe, 2);
	d9__writer_lossy(&scribe.writer); /* none is open */
	scribe_fill(&scribe, 2);
	scribe_end(&scribe);
	CU_ASSERT_STRING_EQUAL(fact_of(0, "segment.complete").last, "true");
	CU_ASSERT_STRING_EQUAL(fact_of(1, "segment.complete").last, "false");
	CU_ASSERT_STRING_EQUAL(fact_of(2, "segment.complete").last, "true");
	CU_ASSERT_STRING_EQUAL(fact_of(3, "segment.complete").last, "false");
	CU_ASSERT_STRING_EQUAL(fact_of(4, "segment.complete").last, "true");
}

static void test_refresh_tells_metadata_once_when_it_changed_and_where_a_segment_is(void)
{
	struct scribe scribe;
	struct fact fact;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	CU_ASSERT_EQUAL(d9__writer_refresh(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT_FALSE(scribe.writer.seg.open);
	scribe_write(&scribe);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(d9__writer_refresh(&scribe.writer, scribe.now_ns), 0);
	d9__metadata_set("test.fact", "new");
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(d9__writer_refresh(&scribe.writer, scribe.now_ns), 0);
	scribe_end(&scribe);
	d9__metadata_set("test.fact", NULL);
	fact = fact_of(0, "test.fact");
	CU_ASSERT_STRING_EQUAL(fact.first, "");
	CU_ASSERT_STRING_EQUAL(fact.last, "new");
	CU_ASSERT_EQUAL(fact.told, 3); /* first, changed, last */
}

/* ---- when it is sealed ---- */

static void test_segment_is_sealed_when_it_is_full_and_not_before(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_NONE);
	scribe_write(&scribe);
	scribe.writer.ret.file_limit = scribe.writer.seg.bytes + 1;
	CU_ASSERT_EQUAL(d9__writer_rotate_full(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT_EQUAL(scribe.counters.sealed, 0);
	scribe_write(&scribe);
	CU_ASSERT_EQUAL(d9__writer_rotate_full(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT_EQUAL(scribe.counters.sealed, 1);
	CU_ASSERT_FALSE(scribe.writer.seg.open);
	/* None is open: nothing is full. */
	CU_ASSERT_EQUAL(d9__writer_rotate_full(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT_EQUAL(d9__writer_rotate(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT_EQUAL(d9__writer_commit(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT_EQUAL(scribe.counters.sealed, 1);
	check_all_is_there(&scribe, "full");
}

static void test_segment_ages_from_its_opening_if_it_holds_events(void)
{
	struct scribe scribe;
	uint64_t opened_ns;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe.writer.ret.rotation_ns = 10 * SECOND;
	CU_ASSERT_FALSE(d9__writer_aged(&scribe.writer, UINT64_MAX));
	scribe_write(&scribe);
	opened_ns = scribe.now_ns;
	scribe_write(&scribe);
	CU_ASSERT_FALSE(d9__writer_aged(&scribe.writer, opened_ns + 10 * SECOND - 1));
	CU_ASSERT(d9__writer_aged(&scribe.writer, opened_ns + 10 * SECOND));
	scribe_end(&scribe);
}

static void test_single_writer_never_ends_its_file(void)
{
	struct scribe scribe;

	scribe_new_of(&scribe, D9_WRITER_SINGLE, D9_COMPRESS_NONE);
	scribe_write_for(&scribe, 5);
	CU_ASSERT_EQUAL(d9__writer_rotate_full(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT_FALSE(d9__writer_aged(&scribe.writer, UINT64_MAX - 1));
	CU_ASSERT(scribe.writer.seg.open);
	check_all_is_there(&scribe, "single");
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".bin"), 1);
}

static void test_writer_to_nowhere_counts_what_it_is_given(void)
{
	struct scribe scribe;

	scribe_new_of(&scribe, D9_WRITER_NULL, D9_COMPRESS_ZSTD);
	scribe_write(&scribe);
	CU_ASSERT_EQUAL(scribe.counters.bytes_recorded, scribe.batch.len);
	CU_ASSERT_EQUAL(scribe.counters.bytes_written, 0);
	CU_ASSERT_FALSE(scribe.writer.seg.open);
	scribe_end(&scribe);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
}

static void test_counters_are_those_of_the_files(void)
{
	struct scribe scribe;
	uint64_t bytes = 0;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 3);
	d9__writer_publish(&scribe.writer);
	for (unsigned i = 0; i < 3; i++) {
		char path[2 * PATH_MAX];
		struct stat st = { .st_size = 0 };

		snprintf(path, sizeof(path), "%s/test-1/trace.%u.bin.zst", scratch_dir, i);
		CU_ASSERT_EQUAL(stat(path, &st), 0);
		bytes += (uint64_t)st.st_size;
	}
	CU_ASSERT_EQUAL(scribe.counters.bytes_written, bytes);
	CU_ASSERT_EQUAL(scribe.counters.retained, bytes);
	CU_ASSERT_EQUAL(scribe.counters.sealed, 3);
	CU_ASSERT_EQUAL(scribe.counters.evicted, 0);
	scribe_end(&scribe);
}

static void test_budget_is_kept_by_the_oldest_in_files_and_in_memory(void)
{
	static const enum d9_writer writers[] = { D9_WRITER_ROTATING, D9_WRITER_MEMORY };

	for (size_t i = 0; i < 2; i++) {
		struct scribe scribe;

		scribe_new_of(&scribe, writers[i], D9_COMPRESS_ZSTD);
		scribe_fill(&scribe, 3);
		/* Room for two, of which one is open. */
		scribe.writer.ret.file_limit = scribe.writer.ret.bytes / 3;
		scribe.writer.ret.budget = scribe.writer.ret.bytes;
		scribe_fill(&scribe, 2);
		d9__writer_publish(&scribe.writer);
		CU_ASSERT(scribe.counters.evicted >= 2);
		CU_ASSERT(scribe.counters.retained <= scribe.writer.ret.budget);
		CU_ASSERT_EQUAL(scribe.counters.sealed - scribe.counters.evicted,
				scribe.writer.ret.n);
		if (writers[i] == D9_WRITER_MEMORY) {
			CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
			CU_ASSERT_EQUAL(scribe.writer.kept->index, scribe.counters.evicted);
		} else {
			CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), scribe.writer.ret.n);
			CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.0.bin.zst"), 0);
		}
		scribe_end(&scribe);
	}
}

/* ---- raw frames ---- */

static off_t length_of(unsigned index)
{
	char path[2 * PATH_MAX];
	struct stat st = { .st_size = 0 };

	snprintf(path, sizeof(path), "%s/test-1/trace.%u.bin.zst", scratch_dir, index);
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	return st.st_size;
}

static void test_under_pressure_a_segment_is_raw_and_says_how_much(void)
{
	struct scribe scribe;
	struct fact raw;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 1);
	CU_ASSERT(d9__writer_press(&scribe.writer, true, scribe.now_ns));
	scribe_fill(&scribe, 1);
	CU_ASSERT_FALSE(d9__writer_press(&scribe.writer, false, scribe.now_ns));
	scribe_fill(&scribe, 1);
	CU_ASSERT(length_of(1) > length_of(0) * 5 / 4);
	CU_ASSERT(length_of(2) < length_of(1) * 4 / 5);
	CU_ASSERT_EQUAL(scribe.writer.ret.raw, scribe.counters.raw);
	CU_ASSERT(scribe.counters.raw > (uint64_t)length_of(1) - 200);
	CU_ASSERT(scribe.counters.raw < (uint64_t)length_of(1));
	CU_ASSERT_STRING_EQUAL(fact_of(0, "segment.raw_bytes").last, "");
	raw = fact_of(1, "segment.raw_bytes");
	CU_ASSERT(strtoull(raw.last, NULL, 10) > scribe.counters.raw / 2);
	CU_ASSERT_STRING_EQUAL(fact_of(1, "recorder.raw").last, "on");
	CU_ASSERT_STRING_EQUAL(fact_of(2, "recorder.raw").last, "off");
	CU_ASSERT_EQUAL(strtoull(fact_of(2, "recorder.raw_bytes").last, NULL, 10),
			scribe.counters.raw);
	check_all_is_there(&scribe, "pressure");
}

static void test_only_zstd_in_files_is_ever_raw(void)
{
	static const struct {
		enum d9_writer writer;
		enum d9_compress compress;
		bool raw;
	} cases[] = { { D9_WRITER_ROTATING, D9_COMPRESS_GZIP, false },
		      { D9_WRITER_ROTATING, D9_COMPRESS_NONE, false },
		      { D9_WRITER_MEMORY, D9_COMPRESS_ZSTD, false },
		      { D9_WRITER_NULL, D9_COMPRESS_ZSTD, false },
		      { D9_WRITER_SINGLE, D9_COMPRESS_ZSTD, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scribe scribe;

		scribe_new_of(&scribe, cases[i].writer, cases[i].compress);
		CU_ASSERT_EQUAL(d9__writer_press(&scribe.writer, true, scribe.now_ns),
				cases[i].raw);
		scribe_fill(&scribe, 1);
		CU_ASSERT_EQUAL(scribe.counters.raw != 0, cases[i].raw);
		scribe_end(&scribe);
	}
}

/* Raw bytes in segments that are there, the open one among them. */
static uint64_t raw_now(const struct scribe *scribe)
{
	return scribe->writer.ret.raw +
	       (scribe->writer.seg.open ? scribe->writer.seg.packer.raw_bytes : 0);
}

static void test_never_more_than_a_quarter_of_the_budget_is_raw(void)
{
	uint64_t most = 0, kept = 0, share;
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe.writer.ret.budget = 256 << 10;
	scribe.writer.ret.file_limit = 16 << 10;
	share = scribe.writer.ret.budget / 4;
	for (int i = 0; i < 2000; i++) {
		d9__writer_press(&scribe.writer, true, scribe.now_ns);
		scribe_write(&scribe);
		d9__writer_rotate_full(&scribe.writer, scribe.now_ns);
		most = raw_now(&scribe) > most ? raw_now(&scribe) : most;
		kept += scribe.writer.ret.evicted != 0 && raw_now(&scribe) > share / 2;
	}
	CU_ASSERT(most <= share);
	CU_ASSERT(most > share - 8192);
	/* Where a raw segment was deleted, another one may take its share. */
	CU_ASSERT(kept > 0);
	CU_ASSERT(scribe.counters.raw > share);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), scribe.writer.ret.n);
	scribe_end(&scribe);
}

static void test_share_of_segments_that_were_compressed_or_taken_away_is_free_again(void)
{
	char path[2 * PATH_MAX];
	struct scribe scribe;
	uint64_t bytes;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	d9__writer_press(&scribe.writer, true, scribe.now_ns);
	scribe_fill(&scribe, 3);
	bytes = scribe.writer.ret.bytes;
	/* As `dial9 ship` does: one is stored, one was shortened. */
	snprintf(path, sizeof(path), "%s/test-1/trace.0.bin.zst", scratch_dir);
	CU_ASSERT_EQUAL(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/test-1/trace.1.bin.zst", scratch_dir);
	CU_ASSERT_EQUAL(truncate(path, 100), 0);
	d9__writer_press(&scribe.writer, true, scribe.now_ns + 100 * SECOND);
	CU_ASSERT_EQUAL(scribe.writer.ret.families[0].raw, 0);
	CU_ASSERT_EQUAL(scribe.writer.ret.families[1].raw, 0);
	CU_ASSERT_EQUAL(scribe.writer.ret.families[1].bytes, 100);
	CU_ASSERT_EQUAL(scribe.writer.ret.raw, scribe.writer.ret.families[2].raw);
	CU_ASSERT(scribe.writer.ret.raw > 0);
	CU_ASSERT(scribe.writer.ret.bytes < bytes);
	scribe_end(&scribe);
}

static void test_writer_passes_over_a_number_that_somebody_has_taken(void)
{
	struct scribe scribe;
	char path[2 * PATH_MAX];
	FILE *f;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	snprintf(path, sizeof(path), "%s/test-1/trace.0.bin.zst.active", scratch_dir);
	f = fopen(path, "we");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fclose(f);
	scribe_fill(&scribe, 1);
	CU_ASSERT_EQUAL(scribe.counters.errors, 0);
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.1.bin.zst"), 1);
	check_all_is_there(&scribe, "another number");
}

/* ---- dumps ---- */

static void test_dump_that_cannot_be_written_to_its_end_is_none(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe.writer.all_or_nothing = true;
	scribe.writer.more[0] = "dump.id";
	scribe.writer.more[1] = "A";
	scribe.writer.ret.file_limit = 1;
	scribe_write(&scribe);
	/* Nor does it end for its size. */
	CU_ASSERT_EQUAL(d9__writer_rotate_full(&scribe.writer, scribe.now_ns), 0);
	CU_ASSERT(scribe.writer.seg.open);
	fail_write.nth = fail_write.times = 1;
	fail_write.err = ENOSPC;
	scribe_write(&scribe);
	CU_ASSERT_FALSE(scribe.writer.seg.open);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst") + scratch_files(scratch_dir, ".active"),
			0);
	/* The caller tries again: the writer neither pauses nor evicts other processes' segments
	 * for it. */
	CU_ASSERT_EQUAL(scribe.writer.retry_ns, 0);
	CU_ASSERT_EQUAL(scribe.writer.ret.evicted, 0);
	scribe_end(&scribe);
}

static void test_dumps_that_are_over_their_budget_are_told_in_what_follows(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 4);
	scribe.writer.ret.dump_budget = 1;
	for (uint64_t i = 0; i < 3; i++)
		d9__retention_leave(&scribe.writer.ret, 0, i);
	d9__writer_keep_dump(&scribe.writer, "A", (uint64_t[]) { 0 }, 1);
	d9__writer_keep_dump(&scribe.writer, "B", (uint64_t[]) { 1 }, 1);
	d9__writer_keep_dump(&scribe.writer, "C", (uint64_t[]) { 2 }, 1);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 2); /* of C, and what is no dump's */
	scribe_fill(&scribe, 1);
	scribe_end(&scribe);
	CU_ASSERT_STRING_EQUAL(fact_of(4, "dumps.evicted").first, "A,B");
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "note is worth a segment or not",
		  test_note_begins_a_segment_only_if_it_is_worth_one },
		{ "how the one before ended", test_segment_says_how_the_one_before_it_ended },
		{ "loss makes one incomplete",
		  test_loss_makes_one_segment_incomplete_the_open_one_or_the_next },
		{ "refresh",
		  test_refresh_tells_metadata_once_when_it_changed_and_where_a_segment_is },
		{ "full", test_segment_is_sealed_when_it_is_full_and_not_before },
		{ "aged", test_segment_ages_from_its_opening_if_it_holds_events },
		{ "single", test_single_writer_never_ends_its_file },
		{ "to nowhere", test_writer_to_nowhere_counts_what_it_is_given },
		{ "counters", test_counters_are_those_of_the_files },
		{ "budget", test_budget_is_kept_by_the_oldest_in_files_and_in_memory },
		{ "a number that is taken",
		  test_writer_passes_over_a_number_that_somebody_has_taken },
		{ "a dump is whole or none", test_dump_that_cannot_be_written_to_its_end_is_none },
		{ "dumps over their budget",
		  test_dumps_that_are_over_their_budget_are_told_in_what_follows },
		{ "raw under pressure", test_under_pressure_a_segment_is_raw_and_says_how_much },
		{ "who is never raw", test_only_zstd_in_files_is_ever_raw },
		{ "share of raw bytes", test_never_more_than_a_quarter_of_the_budget_is_raw },
		{ "share that is free again",
		  test_share_of_segments_that_were_compressed_or_taken_away_is_free_again },
		CU_TEST_INFO_NULL,
	};
	int status = d9_test_main("writer", tests);

	scratch_remove();
	return status;
}
