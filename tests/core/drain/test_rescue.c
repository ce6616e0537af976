/* SPDX-License-Identifier: Apache-2.0 */
/* Rescue: what is done for a process that died, and what stays if that cannot be done. */
#include "config.h"

#include "drain/rescue.h"

#include <sys/file.h>

#include "core/drain/dying.h"

/* ---- a disk that is full, a heap that has no more ---- */

static int writes = -1;      /* of segments that succeed; -1: all */
static int allocations = -1; /* that succeed before one fails; -1: all */

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);
void *__wrap_d9__malloc(size_t size);
void *__real_d9__malloc(size_t size);
void *__wrap_d9__calloc(size_t n, size_t size);
void *__real_d9__calloc(size_t n, size_t size);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	bool of_segment = len != sizeof(uint64_t); /* the ring's note is a word */

	if (of_segment && !writes) {
		errno = ENOSPC;
		return -1;
	}
	writes -= of_segment && writes > 0;
	return __real_pwrite(fd, bytes, len, at);
}

static bool may_allocate(void)
{
	return allocations < 0 || allocations-- != 0;
}

void *__wrap_d9__malloc(size_t size)
{
	return may_allocate() ? __real_d9__malloc(size) : NULL;
}

void *__wrap_d9__calloc(size_t n, size_t size)
{
	return may_allocate() ? __real_d9__calloc(n, size) : NULL;
}

/* ---- who it was ---- */

static void test_process_is_described_by_its_ring_before_anything_is_done(void)
{
	struct d9__dead_ring ring = { .header = { .pid = 4711, .service = "service" } };

	memset(&found, 0xff, sizeof(found));
	d9__rescue_describe("/traces", BOOT_ID, &ring, &found);

	CU_ASSERT_STRING_EQUAL(found.dir, "/traces/" BOOT_ID);
	CU_ASSERT_STRING_EQUAL(found.service, "service");
	CU_ASSERT_EQUAL(found.pid, 4711);
	CU_ASSERT_EQUAL(found.uid, geteuid());
	CU_ASSERT_TRUE(found.ring);
	CU_ASSERT_FALSE(found.sealed);
	CU_ASSERT_EQUAL(found.events + found.lost + found.bad + found.bytes, 0);
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_PTR_NULL(found.op);
}

static void test_process_without_a_ring_has_a_folder_only(void)
{
	memset(&found, 0xff, sizeof(found));
	d9__rescue_describe("/traces", BOOT_ID, NULL, &found);

	CU_ASSERT_STRING_EQUAL(found.dir, "/traces/" BOOT_ID);
	CU_ASSERT_STRING_EQUAL(found.service, "");
	CU_ASSERT_EQUAL(found.pid, 0);
	CU_ASSERT_FALSE(found.ring);
}

/* ---- the segment that was open ---- */

static void check_open_segment_is_sealed(enum d9_compress kind, const char *name)
{
	char open_name[128], whole_name[64];

	snprintf(whole_name, sizeof(whole_name), BOOT_ID "/%s", name);
	snprintf(open_name, sizeof(open_name), "%s.active", whole_name);
	scratch_new();
	leave_segments(kind, 0, true, SECOND);
	CU_ASSERT_TRUE(is_there(open_name));

	CU_ASSERT_TRUE(rescue_without_ring());
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_TRUE(found.sealed);
	CU_ASSERT_FALSE(found.ring);
	CU_ASSERT_EQUAL(found.events, 0);
	CU_ASSERT_FALSE(is_there(open_name));
	CU_ASSERT_TRUE(is_there(whole_name));
	read_segment(name);
	CU_ASSERT_EQUAL(said("recovered=true;"), 1);
	CU_ASSERT_EQUAL(said("segment.complete=true;"), 1);
	CU_ASSERT_EQUAL(said("segment.sealed_clean=false;"), 1);
	CU_ASSERT_EQUAL(seen.end_ns, seen.last_ns);
	CU_ASSERT_EQUAL(scratch_count("TaskTerminateEvent"), 1);
	CU_ASSERT_FALSE(rescue_without_ring());
}

static void test_open_segment_is_sealed_however_it_is_packed(void)
{
	check_open_segment_is_sealed(D9_COMPRESS_ZSTD, "trace.0.bin.zst");
	check_open_segment_is_sealed(D9_COMPRESS_GZIP, "trace.0.bin.gz");
	check_open_segment_is_sealed(D9_COMPRESS_NONE, "trace.0.bin");
}

static void test_open_segment_that_tells_of_losses_is_not_complete(void)
{
	scratch_new();
	segment_is_lossy = true;
	leave_segments(D9_COMPRESS_ZSTD, 0, true, SECOND);
	segment_is_lossy = false;

	CU_ASSERT_TRUE(rescue_without_ring());
	CU_ASSERT_TRUE(found.sealed);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(said("segment.complete=false;"), 1);
	CU_ASSERT_EQUAL(said("segment.complete=true;"), 0);
}

static void test_segment_of_the_ring_is_the_next_one_and_packed_like_the_one_before(void)
{
	live();
	leave_segments(D9_COMPRESS_GZIP, 1, true, SECOND);
	record_polls(3, 10 * SECOND);
	die();

	check_rescued(6, 0);
	CU_ASSERT_TRUE(found.sealed);
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.1.bin.gz"));
	read_segment("trace.2.bin.gz");
	CU_ASSERT_EQUAL(said("segment.prior_sealed_clean=false;"), 1);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".gz"), 3);
}

static void test_segment_before_that_was_written_to_its_end_is_called_clean(void)
{
	live();
	leave_segments(D9_COMPRESS_ZSTD, 2, false, SECOND);
	record_polls(3, 10 * SECOND);
	die();

	check_rescued(6, 0);
	CU_ASSERT_FALSE(found.sealed);
	read_segment("trace.2.bin.zst");
	CU_ASSERT_EQUAL(said("segment.prior_sealed_clean=true;"), 1);
}

static void test_segment_that_an_earlier_rescue_sealed_is_not_called_clean(void)
{
	live();
	leave_segments(D9_COMPRESS_ZSTD, 0, true, SECOND);
	CU_ASSERT_TRUE(rescue_without_ring());
	record_polls(3, 10 * SECOND);
	die();

	check_rescued(6, 0);
	read_segment("trace.1.bin.zst");
	CU_ASSERT_EQUAL(said("segment.prior_sealed_clean=false;"), 1);
}

static void test_segment_of_the_ring_does_not_begin_before_the_end_of_the_one_before(void)
{
	uint64_t before_ns;

	live();
	leave_segments(D9_COMPRESS_ZSTD, 1, false, SECOND);
	record_polls(3, SECOND);
	die();

	check_rescued(6, 0);
	read_segment("trace.0.bin.zst");
	before_ns = seen.last_ns;
	CU_ASSERT_TRUE(before_ns > SECOND);
	read_segment("trace.1.bin.zst");
	CU_ASSERT_EQUAL(seen.first_ns, before_ns);
}

static void test_open_segments_with_nothing_in_them_go(void)
{
	live();
	leave_segments(D9_COMPRESS_ZSTD, 1, false, SECOND);
	put_file(BOOT_ID "/trace.1.bin.zst.active", "", 0);
	put_file(BOOT_ID "/trace.2.bin.zst.active", "", 0);

	CU_ASSERT_FALSE(rescue_without_ring());
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_FALSE(found.sealed);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 1);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
}

/* ---- what does not have to be done, or may not ---- */

static void test_process_that_left_nothing_needs_no_rescue(void)
{
	scratch_new();

	CU_ASSERT_FALSE(rescue_without_ring());
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_FALSE(is_there(BOOT_ID));
}

static void test_folder_of_a_living_process_is_not_complained_of(void)
{
	int fd;

	scratch_new();
	leave_segments(D9_COMPRESS_ZSTD, 0, true, SECOND);
	fd = open(path_of(BOOT_ID "/.lock"), O_RDWR | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(flock(fd, LOCK_EX | LOCK_NB), 0);

	CU_ASSERT_FALSE(rescue_without_ring());
	CU_ASSERT_EQUAL(found.err, -EBUSY);
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.0.bin.zst.active"));
	close(fd);
}

static void test_name_that_is_none_of_a_process_is_refused(void)
{
	scratch_new();

	CU_ASSERT_TRUE(d9__rescue(scratch_dir, "../elsewhere", NULL, &found));
	CU_ASSERT_EQUAL(found.err, -EINVAL);
	CU_ASSERT_STRING_EQUAL(found.op, "open");
}

static void test_rescue_into_a_folder_leaves_it_open_and_keeps_the_description(void)
{
	struct d9__dead_ring ring;
	struct d9__namespace ns;
	struct stat st;

	live();
	record_polls(4, SECOND);
	die();
	CU_ASSERT_EQUAL_FATAL(d9__namespace_inherit(&ns, scratch_dir, BOOT_ID), 0);
	CU_ASSERT_EQUAL_FATAL(d9__dead_ring_open(&ring, path_of("x.ring")), 0);
	d9__rescue_describe("elsewhere", "as said", &ring, &found);

	CU_ASSERT_TRUE(d9__rescue_into(&ns, &ring, &found));
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(found.events, 8);
	CU_ASSERT_STRING_EQUAL(found.dir, "elsewhere/as said");
	CU_ASSERT_EQUAL(found.pid, (uint32_t)getpid());
	CU_ASSERT_EQUAL(fstat(ns.dir_fd, &st), 0);
	d9__dead_ring_close(&ring);
	d9__namespace_close(&ns);
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.0.bin.zst"));
}

/* ---- a rescue that was killed, or cannot go on ---- */

static void test_rescue_that_was_killed_when_all_but_the_ring_was_done_is_not_repeated(void)
{
	live();
	leave_segments(D9_COMPRESS_ZSTD, 1, false, SECOND);
	record_polls(5, 2 * SECOND);
	d9__ring.header->recovery = 1;
	die();

	CU_ASSERT_FALSE(rescue());
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(found.events, 0);
	CU_ASSERT_FALSE(is_there("x.ring"));
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 0);
}

static void test_rescue_that_was_killed_before_its_segment_was_there_is_done(void)
{
	live();
	leave_segments(D9_COMPRESS_ZSTD, 2, false, SECOND);
	record_polls(5, 4 * SECOND);
	d9__ring.header->recovery = 3;
	die();
	check_rescued(10, 0);
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.2.bin.zst"));
}

static void test_segment_that_a_killed_rescue_had_begun_is_made_anew(void)
{
	live();
	leave_segments(D9_COMPRESS_ZSTD, 1, true, SECOND);
	record_polls(5, 4 * SECOND);
	d9__ring.header->recovery = 2;
	die();

	check_rescued(10, 0);
	CU_ASSERT_FALSE(found.sealed);
	read_segment("trace.1.bin.zst");
	CU_ASSERT_EQUAL(said("segment.prior_sealed_clean=true;"), 1);
	CU_ASSERT_EQUAL(scratch_count("TaskTerminateEvent"), 1);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 5);
}

static void test_rescue_of_which_the_segment_was_shipped_is_not_repeated(void)
{
	live();
	make_folder();
	put_file(BOOT_ID "/.shipped", "stored 3 x\n", 11);
	record_polls(5, SECOND);
	d9__ring.header->recovery = 4;
	die();

	CU_ASSERT_FALSE(rescue());
	CU_ASSERT_FALSE(is_there("x.ring"));
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 0);
}

static void test_number_of_a_segment_that_was_shipped_is_not_used_again(void)
{
	live();
	make_folder();
	put_file(BOOT_ID "/.shipped", "stored 3 x\n", 11);
	record_polls(5, SECOND);
	die();

	check_rescued(10, 0);
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.4.bin.zst"));
}

/* The number + 1 of the segment that a rescue makes of the ring, as the ring notes it. */
static uint64_t mark_of_ring(void)
{
	struct d9__dead_ring ring;

	CU_ASSERT_EQUAL_FATAL(d9__dead_ring_open(&ring, path_of("x.ring")), 0);
	d9__dead_ring_close(&ring);
	return ring.header.recovery;
}

static void test_on_a_full_disk_all_stays_in_the_ring_until_there_is_room(void)
{
	int failed = 0;

	live();
	record_polls(5, SECOND);
	die();

	/* Each write of the segment is the one that fails. */
	for (int n = 0; is_there("x.ring") && n < 100; n++) {
		writes = n;
		CU_ASSERT_TRUE(rescue());
		if (!found.err)
			break;
		failed++;
		CU_ASSERT_EQUAL(found.err, -ENOSPC);
		CU_ASSERT_STRING_EQUAL(found.op, "write");
		CU_ASSERT_EQUAL(mark_of_ring(), 1);
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 0);
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
	}
	writes = -1;
	CU_ASSERT_TRUE(failed > 1);
	CU_ASSERT_EQUAL(found.events, 10);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 5);
}

static void test_open_segment_that_cannot_be_written_stays_open(void)
{
	scratch_new();
	leave_segments(D9_COMPRESS_ZSTD, 0, true, SECOND);

	writes = 0;
	CU_ASSERT_TRUE(rescue_without_ring());
	writes = -1;
	CU_ASSERT_EQUAL(found.err, -ENOSPC);
	CU_ASSERT_STRING_EQUAL(found.op, "write");
	CU_ASSERT_FALSE(found.sealed);
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.0.bin.zst.active"));

	CU_ASSERT_TRUE(rescue_without_ring());
	CU_ASSERT_TRUE(found.sealed);
}

static void test_without_memory_nothing_is_lost(void)
{
	int failed = 0;

	live();
	leave_segments(D9_COMPRESS_ZSTD, 0, true, SECOND);
	record_polls(5, 2 * SECOND);
	die();

	/* Each allocation is the one that fails. */
	for (int n = 0; is_there("x.ring") && n < 1000; n++) {
		struct d9__dead_ring ring;

		CU_ASSERT_EQUAL_FATAL(d9__dead_ring_open(&ring, path_of("x.ring")), 0);
		allocations = n;
		CU_ASSERT_TRUE(d9__rescue(scratch_dir, BOOT_ID, &ring, &found));
		allocations = -1;
		d9__dead_ring_close(&ring);
		if (found.err) {
			/* The compressor's own is -EIO. */
			CU_ASSERT_TRUE(found.err == -ENOMEM || found.err == -EIO);
			failed++;
		}
	}
	CU_ASSERT_TRUE(failed > 3);
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(found.events, 10);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 5);
	CU_ASSERT_EQUAL(scratch_count("TaskTerminateEvent"), 1);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "process is described by its ring before anything is done",
		  test_process_is_described_by_its_ring_before_anything_is_done },
		{ "process without a ring has a folder only",
		  test_process_without_a_ring_has_a_folder_only },
		{ "open segment is sealed however it is packed",
		  test_open_segment_is_sealed_however_it_is_packed },
		{ "open segment that tells of losses is not complete",
		  test_open_segment_that_tells_of_losses_is_not_complete },
		{ "segment of the ring is the next one and packed like the one before",
		  test_segment_of_the_ring_is_the_next_one_and_packed_like_the_one_before },
		{ "segment before that was written to its end is called clean",
		  test_segment_before_that_was_written_to_its_end_is_called_clean },
		{ "segment that an earlier rescue sealed is not called clean",
		  test_segment_that_an_earlier_rescue_sealed_is_not_called_clean },
		{ "segment of the ring does not begin before the end of the one before",
		  test_segment_of_the_ring_does_not_begin_before_the_end_of_the_one_before },
		{ "open segments with nothing in them go",
		  test_open_segments_with_nothing_in_them_go },
		{ "process that left nothing needs no rescue",
		  test_process_that_left_nothing_needs_no_rescue },
		{ "folder of a living process is not complained of",
		  test_folder_of_a_living_process_is_not_complained_of },
		{ "name that is none of a process is refused",
		  test_name_that_is_none_of_a_process_is_refused },
		{ "rescue into a folder leaves it open and keeps the description",
		  test_rescue_into_a_folder_leaves_it_open_and_keeps_the_description },
		{ "rescue that was killed when all but the ring was done is not repeated",
		  test_rescue_that_was_killed_when_all_but_the_ring_was_done_is_not_repeated },
		{ "rescue that was killed before its segment was there is done",
		  test_rescue_that_was_killed_before_its_segment_was_there_is_done },
		{ "segment that a killed rescue had begun is made anew",
		  test_segment_that_a_killed_rescue_had_begun_is_made_anew },
		{ "rescue of which the segment was shipped is not repeated",
		  test_rescue_of_which_the_segment_was_shipped_is_not_repeated },
		{ "number of a segment that was shipped is not used again",
		  test_number_of_a_segment_that_was_shipped_is_not_used_again },
		{ "on a full disk all stays in the ring until there is room",
		  test_on_a_full_disk_all_stays_in_the_ring_until_there_is_room },
		{ "open segment that cannot be written stays open",
		  test_open_segment_that_cannot_be_written_stays_open },
		{ "without memory nothing is lost", test_without_memory_nothing_is_lost },
		CU_TEST_INFO_NULL,
	};
	int failed = d9_test_main("rescue", tests);

	scratch_remove();
	return failed;
}
