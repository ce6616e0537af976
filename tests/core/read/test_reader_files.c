/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that come, go and change while a trace is read: recorders write, seal and evict them. */
#include "config.h"

#include <dial9/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/d9_test.h"
#include "support/trace_builder.h"

#define DIR      "test_reader_files.tmp.d"
#define FILE_A   DIR "/trace.0.bin"
#define SEGMENTS 160 /* more than a reader keeps open */

static struct d9_reader *open_trace(const char *path)
{
	struct d9_reader *reader = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL(d9_reader_add(reader, path), 0);
	return reader;
}

static struct d9_segment_info info_of(struct d9_reader *reader, size_t i)
{
	struct d9_segment_info info = { 0 };

	CU_ASSERT_EQUAL(d9_reader_segment(reader, i, &info), 0);
	return info;
}

static unsigned count_events(struct d9_reader *reader)
{
	const struct d9_event *event;
	unsigned n = 0;

	while (d9_reader_next(reader, &event) == 1)
		n++;
	return n;
}

/* A batch of a symbol row, which has time 0, and two events. */
static void add_batch(struct trace *t, uint64_t ns)
{
	trace_batch(t);
	trace_schema(t, 1, "Symbol", "x:9");
	trace_schema(t, 2, "N", "x:9");
	trace_event(t, 1, 0, (uint64_t)1);
	trace_event(t, 2, ns, (uint64_t)2);
	trace_event(t, 2, ns + 1000, (uint64_t)3);
}

static void save(const char *path, const char *container, unsigned batches, uint64_t ns)
{
	struct trace t = { 0 };

	for (unsigned i = 0; i < batches; i++)
		add_batch(&t, ns + i * 10000);
	trace_save(&t, path, container);
	trace_free(&t);
}

/* Cut |path| to each length below |end|: it is told as cut, and the other segment is whole. */
static void check_cuts(const char *path, off_t end)
{
	for (off_t len = end; len-- > 0;) {
		struct d9_segment_info cut;
		struct d9_reader *reader;

		CU_ASSERT_EQUAL_FATAL(truncate(path, len), 0);
		reader = open_trace(DIR);
		count_events(reader);
		cut = info_of(reader, 1);
		CU_ASSERT_STRING_EQUAL(cut.path, path);
		CU_ASSERT_TRUE(cut.truncated);
		CU_ASSERT_FALSE(cut.active);
		CU_ASSERT_EQUAL(cut.err, -ENODATA);
		CU_ASSERT(cut.message && strstr(cut.message, path));
		CU_ASSERT_EQUAL(info_of(reader, 0).events, 3);
		CU_ASSERT_EQUAL(info_of(reader, 0).err, 0);
		d9_reader_free(reader);
	}
	unlink(path);
}

static void test_segment_cut_so_early_that_nothing_can_be_read_is_cut(void)
{
	static const char *const containers[] = { "zstd", "gzip" };
	struct stat st;

	save(FILE_A, "plain", 1, 1000);
	save(DIR "/trace.1.bin", "plain", 1, 9000);
	check_cuts(DIR "/trace.1.bin", 5);
	for (unsigned i = 0; i < 2; i++) {
		const char *path = i ? DIR "/trace.1.bin.gz" : DIR "/trace.1.bin.zst";

		save(path, containers[i], 1, 9000);
		CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
		check_cuts(path, st.st_size);
	}
	unlink(FILE_A);
}

static void path_of(char path[64], unsigned i)
{
	snprintf(path, 64, DIR "/trace.%u.bin", i);
}

/* All at the same time, if |together|. */
static void save_many(const char *container, bool together)
{
	char path[64];

	for (unsigned i = 0; i < SEGMENTS; i++) {
		path_of(path, i);
		save(path, container, 2, together ? 5000 : 5000 + i * 1000000);
	}
}

static void remove_many(void)
{
	char path[64];

	for (unsigned i = 0; i < SEGMENTS; i++) {
		path_of(path, i);
		unlink(path);
	}
}

static int lowest_free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void limit_descriptors(rlim_t n)
{
	struct rlimit limit;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Read SEGMENTS segments with room for few more descriptors than a reader keeps. */
static void check_few_descriptors(const char *container, bool together)
{
	struct rlimit before;
	struct d9_reader *reader;

	save_many(container, together);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit_descriptors((rlim_t)lowest_free_descriptor() + 132);
	reader = open_trace(DIR);
	d9_reader_set_memory_limit(reader, 4096);
	CU_ASSERT_EQUAL(count_events(reader), SEGMENTS * 6);
	for (unsigned i = 0; i < SEGMENTS; i++)
		CU_ASSERT_EQUAL(info_of(reader, i).err, 0);
	d9_reader_free(reader);
	limit_descriptors(before.rlim_cur);
	remove_many();
}

static void test_events_without_a_time_keep_no_segment_open(void)
{
	check_few_descriptors("plain", false);
	check_few_descriptors("zstd", false);
	check_few_descriptors("gzip", false);
}

static void test_more_segments_overlap_than_can_be_open(void)
{
	check_few_descriptors("plain", true);
	check_few_descriptors("zstd", true);
}

static void test_segment_sealed_between_its_name_and_its_opening_is_read(void)
{
	struct d9_reader *reader;

	save(FILE_A, "zstd", 1, 5000);
	reader = open_trace(FILE_A ".active");
	CU_ASSERT_EQUAL(count_events(reader), 3);
	CU_ASSERT_STRING_EQUAL(info_of(reader, 0).path, FILE_A);
	CU_ASSERT_FALSE(info_of(reader, 0).active);
	d9_reader_free(reader);
	unlink(FILE_A);
}

static void test_segment_unpacked_in_memory_may_vanish(void)
{
	struct d9_reader *reader;
	const struct d9_event *event;

	save_many("zstd", false);
	reader = open_trace(DIR);
	CU_ASSERT_EQUAL(d9_reader_next(reader, &event), 1);
	remove_many();
	CU_ASSERT_EQUAL(count_events(reader), SEGMENTS * 6 - 1);
	CU_ASSERT_EQUAL(info_of(reader, SEGMENTS - 1).err, 0);
	d9_reader_free(reader);
}

static void test_segment_that_vanishes_unread_is_told(void)
{
	struct d9_reader *reader;
	const struct d9_event *event;
	struct d9_segment_info info;

	save_many("plain", false);
	reader = open_trace(DIR);
	CU_ASSERT_EQUAL(d9_reader_next(reader, &event), 1);
	remove_many();
	CU_ASSERT(count_events(reader) < SEGMENTS * 6 - 1);
	info = info_of(reader, SEGMENTS - 1);
	CU_ASSERT_EQUAL(info.err, -ENOENT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(info.message);
	CU_ASSERT_PTR_NOT_NULL(strstr(info.message, info.path));
	d9_reader_free(reader);
}

static void test_segment_cut_back_while_it_is_read_is_told(void)
{
	struct d9_reader *reader;
	const struct d9_event *event;

	save(FILE_A, "plain", 2, 5000);
	reader = open_trace(FILE_A);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(d9_reader_next(reader, &event), 1);
	CU_ASSERT_EQUAL(truncate(FILE_A, 40), 0);
	CU_ASSERT_EQUAL(count_events(reader), 1);
	CU_ASSERT_EQUAL(info_of(reader, 0).err, -ESTALE);
	d9_reader_free(reader);
	unlink(FILE_A);
}

static void test_segment_of_a_folder_that_cannot_be_opened_is_told(void)
{
	struct rlimit before;
	struct d9_reader *reader;

	save_many("plain", false);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit_descriptors((rlim_t)lowest_free_descriptor() + 1);
	reader = open_trace(DIR);
	limit_descriptors(before.rlim_cur);
	CU_ASSERT_EQUAL(d9_reader_segments(reader), SEGMENTS);
	CU_ASSERT_EQUAL(info_of(reader, 0).err, 0);
	CU_ASSERT_EQUAL(info_of(reader, 1).err, -EMFILE);
	CU_ASSERT_EQUAL(count_events(reader), 6);
	d9_reader_free(reader);
	remove_many();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "events without a time keep no segment open",
		  test_events_without_a_time_keep_no_segment_open },
		{ "more segments overlap than can be open",
		  test_more_segments_overlap_than_can_be_open },
		{ "segment sealed between its name and its opening is read",
		  test_segment_sealed_between_its_name_and_its_opening_is_read },
		{ "segment unpacked in memory may vanish",
		  test_segment_unpacked_in_memory_may_vanish },
		{ "segment that vanishes unread is told",
		  test_segment_that_vanishes_unread_is_told },
		{ "segment cut back while it is read is told",
		  test_segment_cut_back_while_it_is_read_is_told },
		{ "segment cut so early that nothing can be read is cut",
		  test_segment_cut_so_early_that_nothing_can_be_read_is_cut },
		{ "segment of a folder that cannot be opened is told",
		  test_segment_of_a_folder_that_cannot_be_opened_is_told },
		CU_TEST_INFO_NULL,
	};
	int failed;

	/* An earlier run may have ended early. */
	if (system("rm -rf " DIR) != 0 || mkdir(DIR, 0700) != 0)
		return 99;
	failed = d9_test_main("reader: files", tests);
	rmdir(DIR);
	return failed;
}
