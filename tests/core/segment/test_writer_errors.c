/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer: a write that fails costs nothing that was written before it, and nothing of itself,
 * because the caller keeps it and gives it again.  The clock is the test's, so that a minute of
 * errors takes none.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "core/record/scratch.h"
#include "core/segment/scribe.h"

/* The last time by raw frames. */
static const enum d9_compress kinds[] = { D9_COMPRESS_ZSTD, D9_COMPRESS_GZIP, D9_COMPRESS_NONE,
					  D9_COMPRESS_ZSTD };
static const int errors[] = { EIO, ENOSPC, EDQUOT, EROFS, EACCES, ENOENT, EFBIG };

#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))
#define N_KINDS	 (sizeof(kinds) / sizeof(kinds[0]))
#define N_WRITES 28

static void fail_each_write(enum d9_compress kind, bool raw, bool half)
{
	for (int nth = 1; nth <= N_WRITES; nth++) {
		struct scribe scribe;
		char what[96];
		int err = errors[(size_t)nth % N_ERRORS];

		scribe_new(&scribe, kind);
		d9__writer_press(&scribe.writer, raw, scribe.now_ns);
		scribe.writer.room.episode = true; /* nothing is given to others any more */
		fail_write.nth = nth;
		fail_write.times = 1;
		fail_write.err = err;
		fail_write.half = half;
		scribe_fill(&scribe, 2);
		fail_write.times = 0;
		scribe_write_for(&scribe, 3);
		snprintf(what, sizeof(what), "kind %d%s, write %d%s fails, errno %d", (int)kind,
			 raw ? " raw" : "", nth, half ? " halfway" : "", err);
		check_all_is_there(&scribe, what);
	}
}

static void test_writer_loses_nothing_by_a_write_that_fails(void)
{
	for (size_t i = 0; i < N_KINDS; i++)
		fail_each_write(kinds[i], i == N_KINDS - 1, false);
}

static void test_writer_loses_nothing_by_a_write_that_fails_halfway(void)
{
	for (size_t i = 0; i < N_KINDS; i++)
		fail_each_write(kinds[i], i == N_KINDS - 1, true);
}

static void test_writer_keeps_what_was_written_in_a_segment_of_its_own_after_each_error(void)
{
	for (size_t i = 0; i < N_ERRORS; i++) {
		struct scribe scribe;

		scribe_new(&scribe, D9_COMPRESS_ZSTD);
		/* Well within a frame, which goes on for a second. */
		scribe_write_for(&scribe, 1);
		fail_write.nth = 1;
		fail_write.times = 1;
		fail_write.err = errors[i];
		scribe_write(&scribe);
		CU_ASSERT_EQUAL(scribe.counters.error, -errors[i]);
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.0.bin.zst"), 1);
		CU_ASSERT_EQUAL(scribe_read().numbers, scribe.next);
		scribe_write_for(&scribe, 2);
		check_all_is_there(&scribe, "after an error");
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.1.bin.zst"), 1);
	}
}

static void test_writer_tries_again_after_1_2_4_and_at_last_30_seconds(void)
{
	static const int tries_by[] = { 1, 2, 2, 3, 3, 3, 3, 4 }; /* in second 0, 1, ... */
	struct scribe scribe;
	int before;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 1);
	fail_write.nth = 1;
	fail_write.times = INT32_MAX;
	fail_write.err = EIO;
	before = writes;
	for (size_t i = 0; i < sizeof(tries_by) / sizeof(tries_by[0]); i++) {
		scribe_write_for(&scribe, 1);
		CU_ASSERT_EQUAL(writes - before, tries_by[i]);
	}
	scribe_write_for(&scribe, 24); /* at 15 and 31 s */
	CU_ASSERT_EQUAL(writes - before, 6);
	scribe_write_for(&scribe, 300);
	CU_ASSERT_EQUAL(writes - before, 16);
	CU_ASSERT_EQUAL(scribe.next, 8 * PER_WRITE);
	fail_write.nth = 0;
	scribe_write_for(&scribe, 31);
	CU_ASSERT(scribe.next > 8 * PER_WRITE);
	/* The next trouble is a new one. */
	fail_write.nth = fail_write.times = 1;
	scribe_write(&scribe);
	CU_ASSERT_EQUAL(scribe.writer.retry_ns, scribe.now_ns + SECOND);
	scribe_write_for(&scribe, 2);
	check_all_is_there(&scribe, "after five minutes");
}

static void test_writer_tells_nothing_twice_where_cutting_fails(void)
{
	for (size_t i = 0; i < N_ERRORS; i++) {
		struct scribe scribe;

		scribe_new(&scribe, D9_COMPRESS_ZSTD);
		scribe_fill(&scribe, 1);
		scribe_write_for(&scribe, 1);
		fail_write.nth = fail_cut.nth = 1;
		fail_write.times = fail_cut.times = 1;
		fail_write.err = fail_cut.err = errors[i];
		fail_write.half = true;
		scribe_write(&scribe);
		CU_ASSERT_EQUAL(fail_cut.times, 0);
		scribe_write_for(&scribe, 3);
		check_all_is_there(&scribe, "cut later");
	}
}

static void test_writer_names_later_what_it_cannot_rename(void)
{
	for (size_t i = 0; i < N_ERRORS; i++) {
		struct scribe scribe;

		scribe_new(&scribe, D9_COMPRESS_ZSTD);
		fail_rename.nth = 1;
		fail_rename.times = 1;
		fail_rename.err = errors[i];
		scribe_fill(&scribe, 1);
		CU_ASSERT_EQUAL(scribe.counters.error, -errors[i]);
		scribe_write_for(&scribe, 3);
		check_all_is_there(&scribe, "renamed later");
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.0.bin.zst"), 1);
		CU_ASSERT_EQUAL(scribe.counters.sealed, 2);
	}
}

static void test_writer_goes_on_where_no_file_can_be_renamed(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	fail_rename.nth = 1;
	fail_rename.times = INT32_MAX;
	fail_rename.err = EACCES;
	scribe_fill(&scribe, 2);
	scribe_write_for(&scribe, 5);
	scribe_end(&scribe);
	CU_ASSERT(scribe.next > 8 * PER_WRITE);
	CU_ASSERT_EQUAL(scribe_read().numbers, scribe.next);
}

static void fill_the_disk(struct scribe *scribe)
{
	fail_write.nth = 1;
	fail_write.times = INT32_MAX;
	fail_write.err = ENOSPC;
	scribe_write_for(scribe, 120);
	fail_write.nth = 0;
	scribe_write_for(scribe, 31);
}

static void test_writer_gives_one_segment_to_a_neighbour_who_fills_the_disk(void)
{
	struct scribe scribe;
	struct found found;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 7);
	fill_the_disk(&scribe);
	CU_ASSERT_EQUAL(scribe.writer.ret.evicted, 1);
	scribe_end(&scribe);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.0.bin.zst"), 0);
	found = scribe_read();
	CU_ASSERT_STRING_EQUAL(found.evicted, "0");
	CU_ASSERT_EQUAL(found.numbers, scribe.next - 8 * PER_WRITE);
}

static void test_writer_gives_nothing_that_a_dump_holds_too(void)
{
	char from[2 * PATH_MAX], to[2 * PATH_MAX];
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_fill(&scribe, 7);
	snprintf(from, sizeof(from), "%s/test-1/trace.0.bin.zst", scratch_dir);
	snprintf(to, sizeof(to), "%s/dumped", scratch_dir);
	CU_ASSERT_EQUAL_FATAL(link(from, to), 0);
	fill_the_disk(&scribe);
	CU_ASSERT_EQUAL(unlink(to), 0);
	scribe_end(&scribe);
	CU_ASSERT_STRING_EQUAL(scribe_read().evicted, "1");
}

static void test_writer_keeps_its_only_segment_on_a_full_disk(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_ZSTD);
	scribe_write_for(&scribe, 1);
	fill_the_disk(&scribe);
	CU_ASSERT_EQUAL(scribe.writer.ret.evicted, 0);
	check_all_is_there(&scribe, "the only segment");
	CU_ASSERT_STRING_EQUAL(scribe_read().evicted, "");
}

static void test_writer_tells_all_that_it_gave_as_ranges(void)
{
	struct scribe scribe;

	scribe_new(&scribe, D9_COMPRESS_NONE);
	scribe_fill(&scribe, 12);
	for (int i = 0; i < 3; i++) {
		fill_the_disk(&scribe);
		scribe_write_for(&scribe, 61);
	}
	scribe_end(&scribe);
	CU_ASSERT_STRING_EQUAL(scribe_read().evicted, "0-2");
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "write that fails costs nothing",
		  test_writer_loses_nothing_by_a_write_that_fails },
		{ "write that fails halfway costs nothing",
		  test_writer_loses_nothing_by_a_write_that_fails_halfway },
		{ "what was written stays, whatever the error",
		  test_writer_keeps_what_was_written_in_a_segment_of_its_own_after_each_error },
		{ "it is tried again later and later",
		  test_writer_tries_again_after_1_2_4_and_at_last_30_seconds },
		{ "what cannot be cut is cut later",
		  test_writer_tells_nothing_twice_where_cutting_fails },
		{ "what cannot be renamed is renamed later",
		  test_writer_names_later_what_it_cannot_rename },
		{ "what can never be renamed does not end it",
		  test_writer_goes_on_where_no_file_can_be_renamed },
		{ "neighbour who fills the disk gets one segment",
		  test_writer_gives_one_segment_to_a_neighbour_who_fills_the_disk },
		{ "what a dump holds is not given",
		  test_writer_gives_nothing_that_a_dump_holds_too },
		{ "only segment stays", test_writer_keeps_its_only_segment_on_a_full_disk },
		{ "what was given is told", test_writer_tells_all_that_it_gave_as_ranges },
		CU_TEST_INFO_NULL,
	};
	int status = d9_test_main("writer errors", tests);

	scratch_remove();
	return status;
}
