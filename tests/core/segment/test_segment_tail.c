/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>

#include "core/record/scratch.h"
#include "core/segment/unpack.h"
#include "format/encoder.h"
#include "segment/segment.h"
#include "segment/segment_tail.h"

#define OPENED_NS UINT64_C(5000000000)
#define EARLY_NS  UINT64_C(1000000000)

static void add_clock(struct d9__segment *seg, uint64_t ns)
{
	struct d9__builder b = { 0 };
	uint8_t *p;

	d9__builder_begin(&b);
	p = d9__builder_event(&b, D9__EVENT_CLOCK_SYNC, ns, D9__VARINT_MAX);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	d9__builder_end(&b, d9__varint_put(p, ns));
	CU_ASSERT_EQUAL(d9__segment_add(seg, b.data, b.len, ns, ns, 0, false, ns), 0);
	d9__builder_release(&b);
}

/* A batch of polls that happened before the segment was opened. */
static void add_polls(struct d9__segment *seg, uint64_t number)
{
	struct d9__builder b = { 0 };

	d9__builder_begin(&b);
	for (uint64_t i = 0; i < 4000; i++) {
		uint8_t *p =
			d9__builder_event(&b, D9__EVENT_POLL_END,
					  EARLY_NS + number * 1000000 + i * 100, D9__VARINT_MAX);

		if (p)
			d9__builder_end(&b, d9__varint_put(p, i % 7));
	}
	CU_ASSERT(!b.failed);
	CU_ASSERT_EQUAL(d9__segment_add(seg, b.data, b.len, b.first_ns, b.last_ns, b.events, true,
					OPENED_NS),
			0);
	CU_ASSERT_EQUAL(d9__segment_write(seg, OPENED_NS), 0);
	d9__builder_release(&b);
}

/* The file of a segment whose process wrote |batches| of older events and was killed. */
static int left_by(enum d9_compress kind, bool raw, unsigned batches)
{
	struct d9__segment seg = { .fd = -1 };
	int dir = open(scratch_new(), O_RDONLY | O_DIRECTORY), fd;
	struct d9__segment_place place = { dir, false, kind };
	char name[D9__SEGMENT_NAME_MAX + 8];

	CU_ASSERT_EQUAL_FATAL(d9__event_types_init(), 0);
	CU_ASSERT_EQUAL_FATAL(d9__segment_open(&seg, &place, 0, OPENED_NS), 0);
	seg.packer.raw_limit = raw ? UINT64_MAX : 0;
	add_clock(&seg, OPENED_NS);
	for (unsigned i = 0; i < batches; i++)
		add_polls(&seg, i);
	snprintf(name, sizeof(name), "%s.active", seg.name);
	fd = openat(dir, name, O_RDWR);
	CU_ASSERT_FATAL(fd >= 0);
	close(dir);
	d9__segment_release(&seg);
	return fd;
}

static struct d9__segment_tail read_tail(enum d9_compress kind, int fd)
{
	struct d9__walker *walker = calloc(1, sizeof(*walker));
	struct d9__segment_tail tail = { .kind = kind };

	CU_ASSERT_PTR_NOT_NULL_FATAL(walker);
	CU_ASSERT_EQUAL(d9__segment_tail_read(&tail, fd, kind, walker), 0);
	free(walker);
	return tail;
}

static struct d9__segment_tail tail_of(enum d9_compress kind, bool raw, unsigned batches)
{
	int fd = left_by(kind, raw, batches);
	struct d9__segment_tail tail = read_tail(kind, fd);

	close(fd);
	return tail;
}

static void check_opening_counts(enum d9_compress kind, bool raw)
{
	struct d9__segment_tail tail = tail_of(kind, raw, 3);

	CU_ASSERT_EQUAL(tail.n_batches, 4);
	CU_ASSERT_EQUAL(tail.last_ns, OPENED_NS);
	d9__segment_tail_release(&tail);
	/* So long that its beginning is not among the batches that are kept. */
	tail = tail_of(kind, raw, 700);
	CU_ASSERT(tail.n_batches > 3);
	CU_ASSERT(kind == D9_COMPRESS_NONE || tail.n_batches < 700);
	CU_ASSERT_EQUAL(tail.last_ns, OPENED_NS);
	d9__segment_tail_release(&tail);
}

static void test_segment_is_as_new_as_its_opening_whatever_its_events_are(void)
{
	check_opening_counts(D9_COMPRESS_NONE, false);
	check_opening_counts(D9_COMPRESS_ZSTD, false);
	check_opening_counts(D9_COMPRESS_ZSTD, true);
	check_opening_counts(D9_COMPRESS_GZIP, false);
}

static struct unpacked before, after;

static void unpack_file(struct unpacked *out, int fd)
{
	static uint8_t bytes[UNPACK_MAX];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	CU_ASSERT_FATAL(n >= 0);
	unpack(out, D9_COMPRESS_ZSTD, bytes, (size_t)n);
}

/* Seal what is left of |fd|'s first |len| bytes; how much of it is whole. */
static size_t seal_cut(int fd, off_t len)
{
	struct d9__builder last = { 0 };
	struct d9__segment_tail tail;
	size_t whole;

	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, len), 0);
	tail = read_tail(D9_COMPRESS_ZSTD, fd);
	d9__builder_begin(&last);
	CU_ASSERT_EQUAL(d9__segment_tail_seal(&tail, fd, &last), 0);
	unpack_file(&after, fd);
	CU_ASSERT(after.complete && !after.damaged && after.len >= last.len);
	whole = after.len - last.len;
	CU_ASSERT(whole <= before.len && !memcmp(after.data, before.data, whole));
	CU_ASSERT(!memcmp(after.data + whole, last.data, last.len));
	d9__segment_tail_release(&tail);
	d9__builder_release(&last);
	return whole;
}

/* Of the blocks that were copied those count that are there to the end, whichever byte the kill
 * left for the last. */
static void test_raw_frames_are_kept_up_to_the_block_in_which_the_process_was_killed(void)
{
	size_t at_last = 0;

	for (unsigned cut = 0; cut < 40; cut++) {
		int fd = left_by(D9_COMPRESS_ZSTD, true, 3);
		off_t size = lseek(fd, 0, SEEK_END), len = size - cut * (size / 40);
		size_t whole;

		unpack_file(&before, fd);
		whole = seal_cut(fd, len);
		CU_ASSERT(cut ? whole <= at_last : whole == before.len);
		CU_ASSERT((off_t)whole <= len);
		/* No more is missing than one batch. */
		CU_ASSERT((size_t)len <= whole + before.len / 3 + 64);
		at_last = whole;
		close(fd);
	}
	CU_ASSERT(at_last < before.len / 3);
}

static const CU_TestInfo tests[] = {
	{ "segment is as new as its opening, whatever its events are",
	  test_segment_is_as_new_as_its_opening_whatever_its_events_are },
	{ "raw frames that a kill cut",
	  test_raw_frames_are_kept_up_to_the_block_in_which_the_process_was_killed },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("segment tail", tests);

	scratch_remove();
	return status;
}
