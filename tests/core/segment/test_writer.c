/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a write that fails costs: nothing that was written before it, and nothing of itself, because
 * who gave it keeps it and gives it again.  The clock is the test's, so that a minute of errors
 * takes none.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/options.h"
#include "core/record/scratch.h"
#include "format/encoder.h"
#include "ring/clock.h"
#include "ring/event_types.h"
#include "segment/writer.h"

#define MS	  UINT64_C(1000000)
#define SECOND	  UINT64_C(1000000000)
#define PER_WRITE 50u

/* ---- a file system that fails ---- */

static struct {
	int nth;   /* from which call on; 0: never */
	int times; /* how often */
	int err;
	bool half; /* but half of the bytes are written */
} fail_write, fail_cut, fail_rename;

static int writes; /* that were tried */

#define SHOULD_FAIL(how)                                                                           \
	((how).nth &&                                                                              \
	 (--(how).nth ? false : ((how).nth = --(how).times > 0 ? 1 : 0, errno = (how).err, true)))

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);
int __wrap_ftruncate(int fd, off_t len);
int __real_ftruncate(int fd, off_t len);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	writes++;
	if (!SHOULD_FAIL(fail_write))
		return __real_pwrite(fd, bytes, len, at);
	if (!fail_write.half || len < 2)
		return -1;
	/* The rest is tried next, and fails. */
	fail_write.half = false;
	fail_write.nth = 1;
	return __real_pwrite(fd, bytes, len / 2, at);
}

int __wrap_ftruncate(int fd, off_t len)
{
	return SHOULD_FAIL(fail_cut) ? -1 : __real_ftruncate(fd, len);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return SHOULD_FAIL(fail_rename) ? -1 : __real_renameat(from_fd, from, to_fd, to);
}

/* ---- who writes ---- */

struct scribe {
	struct d9__writer writer;
	struct d9__writer_counters counters;
	struct d9__builder batch;
	uint64_t now_ns;
	uint64_t next; /* number; all before it are committed */
};

static void scribe_new(struct scribe *scribe, enum d9_compress compress)
{
	struct d9_options *given = scratch_options(), options = { 0 };

	fail_write.nth = fail_cut.nth = fail_rename.nth = writes = 0;
	CU_ASSERT_EQUAL_FATAL(d9__event_types_init(), 0);
	d9_options_set_compress(given, compress);
	CU_ASSERT_EQUAL_FATAL(d9__options_resolve(&options, given), 0);
	d9_options_free(given);
	*scribe = (struct scribe) { .now_ns = SECOND };
	d9__writer_init(&scribe->writer, &options, "test-1", &scribe->counters);
	CU_ASSERT_EQUAL_FATAL(d9__writer_open(&scribe->writer, scratch_dir, 1), 0);
	d9__options_release(&options);
}

static void build(struct scribe *scribe)
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

/* One write; it is given again until it succeeds. */
static void scribe_write(struct scribe *scribe)
{
	struct d9__writer *w = &scribe->writer;
	int err;

	scribe->now_ns += 100 * MS;
	if (!d9__writer_ready(w, scribe->now_ns))
		return;
	build(scribe);
	err = d9__writer_add(w, scribe->batch.data, scribe->batch.len, scribe->batch.first_ns,
			     scribe->batch.last_ns, PER_WRITE, scribe->now_ns);
	if (err)
		d9__writer_abandon(w, err, scribe->now_ns);
	else if (!d9__writer_commit(w, scribe->now_ns))
		scribe->next += PER_WRITE;
}

static void scribe_write_for(struct scribe *scribe, uint64_t seconds)
{
	for (uint64_t i = 0; i < 10 * seconds; i++)
		scribe_write(scribe);
}

/* |n| segments of some writes each. */
static void scribe_fill(struct scribe *scribe, int n)
{
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < 8; j++)
			scribe_write(scribe);
		d9__writer_rotate(&scribe->writer, scribe->now_ns);
	}
}

static void scribe_end(struct scribe *scribe)
{
	d9__writer_close(&scribe->writer, scribe->now_ns);
	d9__builder_release(&scribe->batch);
}

/* ---- what a reader finds ---- */

struct found {
	uint64_t numbers, next, disorder;
	char evicted[64]; /* as the last metadata has it */
};

static void look(void *arg, const struct d9_event *event)
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

static struct found scribe_read(void)
{
	struct found found = { .numbers = 0 };

	scratch_read(scratch_dir, true, look, &found);
	return found;
}

/* Every number is there, once and in order, in files that are complete; or else |what| is printed.
 */
static void check_all_is_there(struct scribe *scribe, const char *what)
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

/* ---- tests ---- */

static const enum d9_compress kinds[] = { D9_COMPRESS_ZSTD, D9_COMPRESS_GZIP, D9_COMPRESS_NONE };
static const int errors[] = { EIO, ENOSPC, EDQUOT, EROFS, EACCES, ENOENT, EFBIG };

#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))
#define N_WRITES 28

static void fail_each_write(enum d9_compress kind, bool half)
{
	for (int nth = 1; nth <= N_WRITES; nth++) {
		struct scribe scribe;
		char what[96];
		int err = errors[(size_t)nth % N_ERRORS];

		scribe_new(&scribe, kind);
		scribe.writer.room.episode = true; /* nothing is given to others any more */
		fail_write.nth = nth;
		fail_write.times = 1;
		fail_write.err = err;
		fail_write.half = half;
		scribe_fill(&scribe, 2);
		fail_write.times = 0;
		scribe_write_for(&scribe, 3);
		snprintf(what, sizeof(what), "kind %d, write %d%s fails, errno %d", (int)kind, nth,
			 half ? " halfway" : "", err);
		check_all_is_there(&scribe, what);
	}
}

static void test_writer_loses_nothing_by_a_write_that_fails(void)
{
	for (size_t i = 0; i < 3; i++)
		fail_each_write(kinds[i], false);
}

static void test_writer_loses_nothing_by_a_write_that_fails_halfway(void)
{
	for (size_t i = 0; i < 3; i++)
		fail_each_write(kinds[i], true);
}

static void test_writer_keeps_what_was_written_in_a_segment_of_its_own_for_each_kind_of_error(void)
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
		  test_writer_keeps_what_was_written_in_a_segment_of_its_own_for_each_kind_of_error },
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
	int status = d9_test_main("writer", tests);

	scratch_remove();
	return status;
}
