/* SPDX-License-Identifier: Apache-2.0 */
/* A segment in a directory that fails, and what is there of it afterwards. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "core/record/scratch.h"
#include "core/segment/failing_files.h"
#include "core/segment/unpack.h"
#include "segment/segment.h"

#define NOW   UINT64_C(5000000000)
#define BATCH 3000u
#define INDEX 7

static const enum d9_compress kinds[] = { D9_COMPRESS_ZSTD, D9_COMPRESS_GZIP, D9_COMPRESS_NONE };
static const char *const names[] = { "trace.7.bin.zst", "trace.7.bin.gz", "trace.7.bin" };

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- a segment ---- */

static int dir = -1;
static struct d9__segment seg;
static uint8_t given[UNPACK_MAX];
static size_t given_len;
static struct unpacked back;

static int begin_in(bool memory, enum d9_compress kind)
{
	struct d9__segment_place place = { dir, memory, kind };

	all_works();
	given_len = 0;
	return d9__segment_open(&seg, &place, INDEX, NOW);
}

static void begin(enum d9_compress kind)
{
	if (dir >= 0)
		close(dir);
	dir = open(scratch_new(), O_RDONLY | O_DIRECTORY);
	CU_ASSERT_EQUAL_FATAL(begin_in(false, kind), 0);
}

/* A batch that has |events| events, from |ns| to a us later. */
static int add(uint64_t ns, uint32_t events, bool real)
{
	static uint32_t random = 1;
	uint8_t *batch = given + given_len;

	for (size_t i = 0; i < BATCH; i++)
		batch[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
	given_len += BATCH;
	return d9__segment_add(&seg, batch, BATCH, ns, ns + 1000, events, real, NOW);
}

static void put(void)
{
	CU_ASSERT_EQUAL(add(NOW, 10, true), 0);
	CU_ASSERT_EQUAL(d9__segment_write(&seg, NOW), 0);
}

/* A write that fails with |err|, perhaps after half of its bytes. */
static void fail_to_put(int err, bool half)
{
	size_t before = given_len;

	fail_write = always(err);
	fail_write.half = half;
	CU_ASSERT_EQUAL(add(NOW, 10, true), 0);
	CU_ASSERT_EQUAL(d9__segment_write(&seg, NOW), -err);
	CU_ASSERT_STRING_EQUAL(seg.failed_op, "write");
	given_len = before;
	all_works();
}

static bool is_there(const char *name)
{
	return !faccessat(dir, name, F_OK, 0);
}

static const char *active(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s.active", name);
	return path;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool is_given(enum d9_compress kind, const uint8_t *bytes, size_t len)
{
	unpack(&back, kind, bytes, len);
	return !back.damaged && back.len == given_len && !memcmp(back.data, given, given_len);
}

/* Whether the file holds what was given, and nothing else. */
static bool holds(const char *name, enum d9_compress kind)
{
	static uint8_t bytes[UNPACK_MAX];
	int fd = openat(dir, name, O_RDONLY);
	ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	close(fd);
	return len >= 0 && is_given(kind, bytes, (size_t)len);
}

static bool holds_whole(const char *name, enum d9_compress kind)
{
	return holds(name, kind) && back.complete;
}

/* ---- it goes well ---- */

static void test_segment_has_its_name_when_it_is_sealed_and_another_before(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		bool kept = false;
		int fd;

		begin(kinds[i]);
		fd = seg.fd;
		CU_ASSERT(seg.open);
		CU_ASSERT_STRING_EQUAL(seg.name, names[i]);
		CU_ASSERT(is_there(active(names[i])));
		put();
		CU_ASSERT_FALSE(is_there(names[i]));
		CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), 0);
		CU_ASSERT(kept && !seg.open && !seg.unfinished);
		CU_ASSERT_FALSE(is_there(active(names[i])));
		CU_ASSERT(holds_whole(names[i], kinds[i]));
		CU_ASSERT_FALSE(is_open(fd));
		d9__segment_release(&seg);
	}
}

static void test_what_was_written_can_be_read_before_the_segment_is_sealed(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		begin(kinds[i]);
		for (int n = 0; n < 5; n++) {
			put();
			CU_ASSERT(holds(active(names[i]), kinds[i]));
			CU_ASSERT_EQUAL(seg.committed.events, seg.has.events);
		}
		CU_ASSERT_EQUAL(seg.committed.events, 50);
		d9__segment_release(&seg);
	}
}

static void test_what_was_only_added_is_not_in_the_file(void)
{
	struct stat st = { .st_size = -1 };

	begin(D9_COMPRESS_NONE);
	put();
	CU_ASSERT_EQUAL(add(NOW, 10, true), 0);
	CU_ASSERT_EQUAL(fstat(seg.fd, &st), 0);
	CU_ASSERT_EQUAL(st.st_size, BATCH);
	CU_ASSERT_EQUAL(seg.bytes, BATCH);
	CU_ASSERT_EQUAL(seg.has.events, 20);
	CU_ASSERT_EQUAL(seg.committed.events, 10);
	d9__segment_release(&seg);
}

static void test_segment_knows_the_times_of_its_real_events_alone(void)
{
	begin(D9_COMPRESS_ZSTD);
	CU_ASSERT_EQUAL(add(NOW - 500000, 0, false), 0);
	CU_ASSERT_FALSE(seg.has.real);
	CU_ASSERT_EQUAL(seg.has.first_ns, 0);
	CU_ASSERT_EQUAL(add(NOW, 3, true), 0);
	CU_ASSERT_EQUAL(add(NOW - 4000, 4, true), 0);
	CU_ASSERT_EQUAL(add(NOW - 2000, 0, true), 0);
	CU_ASSERT_EQUAL(add(NOW + 500000, 0, false), 0);
	CU_ASSERT(seg.has.real);
	CU_ASSERT_EQUAL(seg.has.first_ns, NOW - 4000);
	CU_ASSERT_EQUAL(seg.has.last_ns, NOW + 1000);
	CU_ASSERT_EQUAL(seg.has.events, 7);
	d9__segment_release(&seg);
}

static void test_segment_without_real_events_is_removed(void)
{
	bool kept = true;

	begin(D9_COMPRESS_ZSTD);
	CU_ASSERT_EQUAL(add(NOW, 0, false), 0);
	CU_ASSERT_EQUAL(d9__segment_write(&seg, NOW), 0);
	CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), 0);
	CU_ASSERT_FALSE(kept);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
	d9__segment_release(&seg);
}

static void test_segment_takes_no_file_that_is_there(void)
{
	int fd;

	begin(D9_COMPRESS_ZSTD);
	put();
	CU_ASSERT(is_there(active(names[0])));
	fd = seg.fd;
	seg = (struct d9__segment){ .packer = seg.packer };
	CU_ASSERT_EQUAL(begin_in(false, D9_COMPRESS_ZSTD), -EEXIST);
	CU_ASSERT_FALSE(seg.open);
	CU_ASSERT_STRING_EQUAL(seg.failed_op, "open");
	given_len = BATCH;
	CU_ASSERT(holds(active(names[0]), D9_COMPRESS_ZSTD));
	close(fd);
	d9__segment_release(&seg);
}

static void test_segment_that_follows_has_nothing_of_the_one_before(void)
{
	bool kept = false;

	begin(D9_COMPRESS_ZSTD);
	put();
	fail_to_put(EIO, false);
	d9__segment_cut(&seg, &kept);
	CU_ASSERT_EQUAL(unlinkat(dir, names[0], 0), 0);
	CU_ASSERT_EQUAL_FATAL(begin_in(false, D9_COMPRESS_ZSTD), 0);
	CU_ASSERT(seg.complete && !seg.ended && !seg.has.real && !seg.committed.real && !seg.bytes);
	put();
	CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), 0);
	CU_ASSERT(kept);
	CU_ASSERT(holds_whole(names[0], D9_COMPRESS_ZSTD));
	d9__segment_release(&seg);
}

static void test_segment_in_memory_makes_no_file_and_holds_the_same(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		bool kept = false;

		begin(kinds[i]);
		d9__segment_release(&seg);
		scratch_new();
		CU_ASSERT_EQUAL_FATAL(begin_in(true, kinds[i]), 0);
		/* Much more at once than it begins with. */
		for (int n = 0; n < 100; n++)
			CU_ASSERT_EQUAL(add(NOW, 1, true), 0);
		put();
		CU_ASSERT_FATAL(seg.bytes <= seg.capacity);
		put();
		CU_ASSERT(is_given(kinds[i], seg.data, (size_t)seg.bytes));
		CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), 0);
		CU_ASSERT(kept);
		CU_ASSERT(is_given(kinds[i], seg.data, (size_t)seg.bytes) && back.complete);
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
		d9__segment_release(&seg);
		CU_ASSERT_PTR_NULL(seg.data);
	}
}

/* ---- writes ---- */

static void test_write_that_is_interrupted_or_short_goes_on(void)
{
	begin(D9_COMPRESS_GZIP);
	write_most = 100;
	put();
	all_works();
	fail_write = (struct failing) { .nth = 1, .times = 1, .err = EINTR };
	put();
	CU_ASSERT_EQUAL(fail_write.nth, 0);
	CU_ASSERT(holds(active(names[1]), D9_COMPRESS_GZIP));
	d9__segment_release(&seg);
}

static void test_write_that_writes_nothing_finds_no_room(void)
{
	bool kept = true;

	begin(D9_COMPRESS_NONE);
	CU_ASSERT_EQUAL(add(NOW, 1, true), 0);
	fail_write = always(0);
	CU_ASSERT_EQUAL(d9__segment_write(&seg, NOW), -ENOSPC);
	d9__segment_cut(&seg, &kept);
	CU_ASSERT_FALSE(kept);
	d9__segment_release(&seg);
}

static void test_write_that_fails_costs_what_was_added_since_the_one_before(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		for (int half = 0; half < 2; half++) {
			bool kept = false;

			begin(kinds[i]);
			put();
			put();
			fail_to_put(EIO, half);
			d9__segment_cut(&seg, &kept);
			CU_ASSERT(kept && !seg.open && !seg.unfinished);
			CU_ASSERT_EQUAL(seg.has.events, 20);
			CU_ASSERT(holds_whole(names[i], kinds[i]));
			CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
			d9__segment_release(&seg);
		}
	}
}

static void test_segment_of_which_nothing_could_be_written_is_removed(void)
{
	bool kept = true;

	begin(D9_COMPRESS_ZSTD);
	fail_to_put(EIO, true);
	d9__segment_cut(&seg, &kept);
	CU_ASSERT_FALSE(kept);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
	d9__segment_release(&seg);
}

static void test_seal_that_cannot_be_written_is_cut_to_what_was(void)
{
	bool kept = false;

	begin(D9_COMPRESS_ZSTD);
	put();
	CU_ASSERT_EQUAL(add(NOW, 10, true), 0);
	fail_write = always(EIO);
	fail_write.half = true;
	CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), -EIO);
	CU_ASSERT(seg.open);
	all_works();
	d9__segment_cut(&seg, &kept);
	given_len = BATCH;
	CU_ASSERT(kept);
	CU_ASSERT(holds_whole(names[0], D9_COMPRESS_ZSTD));
	d9__segment_release(&seg);
}

/* ---- a file that is not ours any more ---- */

static void test_descriptor_that_the_program_gave_to_another_file_is_left_alone(void)
{
	bool kept = false;
	int fd, theirs;
	struct stat st = { .st_size = -1 };

	begin(D9_COMPRESS_NONE);
	put();
	fd = seg.fd;
	theirs = openat(dir, "theirs", O_RDWR | O_CREAT, 0600);
	CU_ASSERT_EQUAL_FATAL(dup2(theirs, fd), fd);
	CU_ASSERT_EQUAL(add(NOW, 10, true), 0);
	CU_ASSERT_EQUAL(d9__segment_write(&seg, NOW), -EBADF);
	CU_ASSERT_STRING_EQUAL(seg.failed_op, "write");
	d9__segment_cut(&seg, &kept);
	d9__segment_release(&seg);
	CU_ASSERT(is_open(fd));
	CU_ASSERT_EQUAL(fstat(theirs, &st), 0);
	CU_ASSERT_EQUAL(st.st_size, 0);
	close(fd);
	close(theirs);
}

static void test_descriptor_that_the_program_closed_costs_nothing_that_was_written(void)
{
	bool kept = false;

	begin(D9_COMPRESS_NONE);
	put();
	close(seg.fd);
	CU_ASSERT_EQUAL(add(NOW, 10, true), 0);
	CU_ASSERT_EQUAL(d9__segment_write(&seg, NOW), -EBADF);
	d9__segment_cut(&seg, &kept);
	given_len = BATCH;
	CU_ASSERT(kept);
	CU_ASSERT(holds_whole(names[2], D9_COMPRESS_NONE));
	d9__segment_release(&seg);
}

/* Between an error and the next try the program may do so, too. */
static void test_descriptor_of_an_unfinished_segment_that_is_another_files_is_left_alone(void)
{
	static const char text[2 * BATCH] = "theirs";

	for (int released = 0; released < 2; released++) {
		struct stat st = { .st_size = -1 };
		bool kept = false;
		int fd, theirs;

		begin(D9_COMPRESS_NONE);
		put();
		fd = seg.fd;
		fail_to_put(EIO, true);
		fail_cut = always(EIO);
		d9__segment_cut(&seg, &kept);
		CU_ASSERT(seg.unfinished);
		all_works();
		theirs = openat(dir, "theirs", O_RDWR | O_CREAT, 0600);
		CU_ASSERT_EQUAL(write(theirs, text, sizeof(text)), sizeof(text));
		CU_ASSERT_EQUAL_FATAL(dup2(theirs, fd), fd);
		if (!released)
			CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), 0);
		d9__segment_release(&seg);
		CU_ASSERT_EQUAL(fstat(fd, &st), 0);
		CU_ASSERT_EQUAL(st.st_size, sizeof(text));
		close(fd);
		close(theirs);
	}
}

static void test_file_that_was_removed_is_told_by_the_next_write(void)
{
	bool kept = true;

	begin(D9_COMPRESS_ZSTD);
	put();
	CU_ASSERT_EQUAL(unlinkat(dir, active(names[0]), 0), 0);
	CU_ASSERT_EQUAL(add(NOW, 10, true), 0);
	CU_ASSERT_EQUAL(d9__segment_write(&seg, NOW), -ENOENT);
	d9__segment_cut(&seg, &kept);
	CU_ASSERT_FALSE(kept);
	d9__segment_release(&seg);
}

/* ---- what cannot be done at once ---- */

static void test_segment_that_cannot_be_renamed_is_renamed_later(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		bool kept = true;
		int fd;

		begin(kinds[i]);
		put();
		fd = seg.fd;
		fail_rename = always(EACCES);
		CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), -EACCES);
		CU_ASSERT_STRING_EQUAL(seg.failed_op, "rename");
		CU_ASSERT(!kept && !seg.open && seg.unfinished);
		CU_ASSERT(holds_whole(active(names[i]), kinds[i]));
		all_works();
		CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), 0);
		CU_ASSERT(kept && !seg.unfinished);
		/* It has one end. */
		CU_ASSERT(holds_whole(names[i], kinds[i]));
		CU_ASSERT_FALSE(is_open(fd));
		d9__segment_release(&seg);
	}
}

static void test_segment_that_cannot_be_cut_is_cut_later(void)
{
	static const int errors[] = { EIO, ENOSPC, EROFS };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		bool kept = true;

		begin(D9_COMPRESS_ZSTD);
		put();
		fail_to_put(EIO, true);
		fail_cut = always(errors[i]);
		d9__segment_cut(&seg, &kept);
		CU_ASSERT(!kept && !seg.open && seg.unfinished);
		/* The first failure is told, not the one of the cut. */
		CU_ASSERT_STRING_EQUAL(seg.failed_op, "write");
		all_works();
		CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), 0);
		CU_ASSERT(kept);
		CU_ASSERT(holds_whole(names[0], D9_COMPRESS_ZSTD));
		d9__segment_release(&seg);
	}
}

/* Whoever has no room for the end may have some when it is tried once more. */
static void test_segment_whose_end_finds_no_room_waits_for_it(void)
{
	static const int errors[] = { EDQUOT, ENOSPC, EROFS };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		bool kept = true;

		begin(D9_COMPRESS_GZIP);
		put();
		fail_to_put(ENOSPC, true);
		fail_write = always(errors[i]);
		d9__segment_cut(&seg, &kept);
		CU_ASSERT(!kept && seg.unfinished);
		for (int tries = 0; tries < 3; tries++) {
			CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), -errors[i]);
			CU_ASSERT(!kept && seg.unfinished && is_open(seg.fd));
			CU_ASSERT(holds(active(names[1]), D9_COMPRESS_GZIP));
		}
		all_works();
		CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), 0);
		CU_ASSERT(kept && !seg.unfinished);
		CU_ASSERT(holds_whole(names[1], D9_COMPRESS_GZIP));
		d9__segment_release(&seg);
	}
}

static void test_segment_whose_end_cannot_be_written_at_all_is_named_without(void)
{
	bool kept = false;
	int fd;

	begin(D9_COMPRESS_ZSTD);
	put();
	fd = seg.fd;
	fail_to_put(EIO, false);
	fail_write = always(EIO);
	d9__segment_cut(&seg, &kept);
	CU_ASSERT(!kept && seg.unfinished);
	CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), 0);
	CU_ASSERT(kept && !seg.unfinished);
	CU_ASSERT(holds(names[0], D9_COMPRESS_ZSTD));
	CU_ASSERT_FALSE(is_open(fd));
	d9__segment_release(&seg);
}

static void test_segment_that_can_never_be_renamed_is_given_up_and_can_be_read(void)
{
	bool kept = true;
	int fd;

	begin(D9_COMPRESS_ZSTD);
	put();
	fd = seg.fd;
	fail_rename = always(EACCES);
	CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), -EACCES);
	CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), 0);
	CU_ASSERT(!kept && !seg.unfinished);
	CU_ASSERT_FALSE(is_open(fd));
	CU_ASSERT(holds_whole(active(names[0]), D9_COMPRESS_ZSTD));
	d9__segment_release(&seg);
}

/* The recorder opens its directory anew after errors. */
static void test_segment_is_finished_in_the_directory_that_is_open_by_then(void)
{
	bool kept = false;
	int anew;

	begin(D9_COMPRESS_ZSTD);
	put();
	fail_rename = always(EROFS);
	CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), -EROFS);
	CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), -EROFS);
	all_works();
	anew = open(scratch_dir, O_RDONLY | O_DIRECTORY);
	close(dir);
	dir = anew;
	CU_ASSERT_EQUAL(d9__segment_finish(&seg, dir, &kept), 0);
	CU_ASSERT(kept);
	CU_ASSERT(holds_whole(names[0], D9_COMPRESS_ZSTD));
	d9__segment_release(&seg);
}

static void test_release_closes_a_segment_that_is_open_or_unfinished(void)
{
	bool kept = false;
	int fd;

	begin(D9_COMPRESS_ZSTD);
	fd = seg.fd;
	d9__segment_release(&seg);
	CU_ASSERT_FALSE(is_open(fd));
	begin(D9_COMPRESS_ZSTD);
	put();
	fd = seg.fd;
	fail_rename = always(ENOSPC);
	CU_ASSERT_EQUAL(d9__segment_seal(&seg, NOW, &kept), -ENOSPC);
	d9__segment_release(&seg);
	CU_ASSERT_FALSE(is_open(fd));
	CU_ASSERT_EQUAL(seg.fd, -1);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "name", test_segment_has_its_name_when_it_is_sealed_and_another_before },
		{ "readable while written", test_what_was_written_can_be_read_before_the_segment_is_sealed },
		{ "only added", test_what_was_only_added_is_not_in_the_file },
		{ "times of real events", test_segment_knows_the_times_of_its_real_events_alone },
		{ "no real events, no segment", test_segment_without_real_events_is_removed },
		{ "a file that is there", test_segment_takes_no_file_that_is_there },
		{ "one behind the other", test_segment_that_follows_has_nothing_of_the_one_before },
		{ "in memory", test_segment_in_memory_makes_no_file_and_holds_the_same },
		{ "interrupted and short writes", test_write_that_is_interrupted_or_short_goes_on },
		{ "a write of nothing", test_write_that_writes_nothing_finds_no_room },
		{ "write that fails", test_write_that_fails_costs_what_was_added_since_the_one_before },
		{ "nothing could be written", test_segment_of_which_nothing_could_be_written_is_removed },
		{ "seal that fails", test_seal_that_cannot_be_written_is_cut_to_what_was },
		{ "descriptor of another file", test_descriptor_that_the_program_gave_to_another_file_is_left_alone },
		{ "descriptor that was closed", test_descriptor_that_the_program_closed_costs_nothing_that_was_written },
		{ "unfinished, and a descriptor of another file",
		  test_descriptor_of_an_unfinished_segment_that_is_another_files_is_left_alone },
		{ "file that was removed", test_file_that_was_removed_is_told_by_the_next_write },
		{ "renamed later", test_segment_that_cannot_be_renamed_is_renamed_later },
		{ "cut later", test_segment_that_cannot_be_cut_is_cut_later },
		{ "ended later", test_segment_whose_end_finds_no_room_waits_for_it },
		{ "named without an end", test_segment_whose_end_cannot_be_written_at_all_is_named_without },
		{ "never renamed", test_segment_that_can_never_be_renamed_is_given_up_and_can_be_read },
		{ "another directory", test_segment_is_finished_in_the_directory_that_is_open_by_then },
		{ "release", test_release_closes_a_segment_that_is_open_or_unfinished },
		CU_TEST_INFO_NULL,
	};
	int status = d9_test_main("segment", tests);

	if (dir >= 0)
		close(dir);
	scratch_remove();
	return status;
}
