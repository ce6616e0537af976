/* SPDX-License-Identifier: Apache-2.0 */
/* Packer: zstd and zlib read its output; the test takes that away, or fails to write it. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/heap.h"
#include "core/segment/unpack.h"
#include "format/wire.h"
#include "segment/packer.h"

#define SECOND UINT64_C(1000000000)
#define T0     (5 * SECOND)
#define BATCH  5000u

/* zstd by raw frames, and by such as the wish for them comes and goes. */
enum way { ZSTD = D9_COMPRESS_ZSTD, NONE = D9_COMPRESS_NONE, GZIP = D9_COMPRESS_GZIP, RAW, MIXED };

static const enum way kinds[] = { ZSTD, GZIP, NONE, RAW, MIXED };

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- a heap that has no more ---- */

static int allowed = INT_MAX; /* allocations */

void *d9__malloc(size_t size)
{
	return allowed > 0 && allowed-- ? malloc(size) : NULL;
}

void *d9__realloc(void *block, size_t size)
{
	return allowed > 0 && allowed-- ? realloc(block, size) : NULL;
}

void d9__free(void *block)
{
	free(block);
}

/* ---- who writes ---- */

/* The file, and what was given to be in it. */
struct scribe {
	struct d9__packer packer;
	enum way way;
	uint8_t *file, *given;
	size_t file_len, given_len;
};

static struct unpacked back;

static uint8_t *more(uint8_t **bytes, size_t *len, size_t n)
{
	*bytes = realloc(*bytes, *len + n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(*bytes);
	*len += n;
	return *bytes + *len - n;
}

/* |len| bytes that can be packed, but not to nothing, and are never the same. */
static void fill(uint8_t *bytes, size_t len)
{
	static uint32_t random = 1;

	for (size_t i = 0; i < len; i++) {
		random = random * 1664525 + 1013904223;
		bytes[i] = random >> 30 ? (uint8_t)i : (uint8_t)(random >> 16);
	}
}

static int begin(struct scribe *scribe, enum way way)
{
	scribe->way = way;
	scribe->packer.raw_limit = way == RAW ? UINT64_MAX : 0;
	return d9__packer_begin(&scribe->packer,
				way > GZIP ? D9_COMPRESS_ZSTD : (enum d9_compress)way);
}

static void scribe_new(struct scribe *scribe, enum way way)
{
	*scribe = (struct scribe){ .file = NULL };
	CU_ASSERT_EQUAL_FATAL(begin(scribe, way), 0);
}

static void scribe_free(struct scribe *scribe)
{
	d9__packer_release(&scribe->packer);
	free(scribe->file);
	free(scribe->given);
}

/* A batch that is not written yet, with one event at |ns|. */
static int add(struct scribe *scribe, size_t len, uint64_t ns, uint64_t now_ns)
{
	uint8_t *batch = more(&scribe->given, &scribe->given_len, len);

	fill(batch, len);
	if (scribe->way == MIXED && scribe->given_len % 3)
		scribe->packer.raw_limit = scribe->packer.raw_limit ? 0 : UINT64_MAX;
	return d9__packer_add(&scribe->packer, batch, len, ns, ns, 1, now_ns);
}

static void write_out(struct scribe *scribe)
{
	if (scribe->packer.len)
		memcpy(more(&scribe->file, &scribe->file_len, scribe->packer.len), scribe->packer.out,
		       scribe->packer.len);
	d9__packer_keep(&scribe->packer);
}

static void put(struct scribe *scribe, size_t len, uint64_t now_ns)
{
	CU_ASSERT_EQUAL(add(scribe, len, now_ns, now_ns), 0);
	CU_ASSERT_EQUAL(d9__packer_flush(&scribe->packer, now_ns), 0);
	write_out(scribe);
}

/* The write failed: what was given since the last one is given up. */
static void cut(struct scribe *scribe, size_t given)
{
	d9__packer_cut(&scribe->packer);
	CU_ASSERT_EQUAL(scribe->packer.len, 0);
	scribe->given_len = given;
}

static void end(struct scribe *scribe)
{
	CU_ASSERT_EQUAL(d9__packer_end(&scribe->packer), 0);
	write_out(scribe);
}

/* Whether the file holds all that was given, and nothing else. */
static bool holds_all(const struct scribe *scribe)
{
	unpack(&back, scribe->packer.kind, scribe->file, scribe->file_len);
	return !back.damaged && back.len == scribe->given_len &&
	       (!back.len || !memcmp(back.data, scribe->given, back.len)) &&
	       scribe->packer.out_bytes == scribe->file_len;
}

/* ---- tests ---- */

static void test_all_that_was_flushed_can_be_unpacked_though_the_file_goes_on(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		struct scribe scribe;

		scribe_new(&scribe, kinds[i]);
		for (uint64_t n = 0; n < 20; n++) {
			put(&scribe, 1 + n * BATCH, T0 + n * SECOND / 7);
			CU_ASSERT(holds_all(&scribe));
		}
		CU_ASSERT_EQUAL(scribe.packer.in_bytes, scribe.given_len);
		end(&scribe);
		CU_ASSERT(holds_all(&scribe) && back.complete);
		scribe_free(&scribe);
	}
}

static void test_flush_without_a_batch_adds_nothing(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		struct scribe scribe;
		size_t before;

		if (kinds[i] == MIXED)
			continue; /* its frames are younger */
		scribe_new(&scribe, kinds[i]);
		put(&scribe, BATCH, T0);
		put(&scribe, BATCH, T0 + SECOND); /* ends a frame */
		before = scribe.file_len;
		CU_ASSERT_EQUAL(d9__packer_flush(&scribe.packer, T0 + 9 * SECOND), 0);
		CU_ASSERT_EQUAL(d9__packer_end_frame(&scribe.packer), 0);
		write_out(&scribe);
		CU_ASSERT_EQUAL(scribe.file_len, before);
		scribe_free(&scribe);
	}
}

static void test_frame_ends_with_the_flush_that_finds_a_mib_in_it(void)
{
	static const enum way ways[] = { ZSTD, RAW };

	for (size_t i = 0; i < 2; i++) {
		struct scribe scribe;

		scribe_new(&scribe, ways[i]);
		put(&scribe, D9__FRAME_MAX_BYTES - 1, T0);
		CU_ASSERT(holds_all(&scribe) && !back.complete);
		put(&scribe, 1, T0);
		CU_ASSERT(holds_all(&scribe) && back.complete);
		CU_ASSERT_EQUAL(scribe.packer.n_frames, 1);
		scribe_free(&scribe);
	}
}

static void test_frame_ends_with_the_flush_that_finds_it_a_second_old(void)
{
	struct scribe scribe;

	scribe_new(&scribe, ZSTD);
	for (uint64_t frame = 0; frame < 3; frame++) {
		uint64_t opened_ns = T0 + frame * 5 * SECOND;

		put(&scribe, BATCH, opened_ns);
		put(&scribe, BATCH, opened_ns + SECOND - 1);
		CU_ASSERT(holds_all(&scribe) && !back.complete);
		put(&scribe, BATCH, opened_ns + SECOND);
		CU_ASSERT(holds_all(&scribe) && back.complete);
		CU_ASSERT_EQUAL(scribe.packer.n_frames, frame + 1);
	}
	scribe_free(&scribe);
}

static void test_cut_takes_back_what_was_added_since_the_last_write_and_no_more(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		for (int flushed = 0; flushed < 2; flushed++) {
			struct scribe scribe;
			size_t given;

			scribe_new(&scribe, kinds[i]);
			put(&scribe, BATCH, T0);
			given = scribe.given_len;
			/* So much that zstd has put out some of it without being asked. */
			for (int n = 0; n < 100; n++)
				CU_ASSERT_EQUAL(add(&scribe, BATCH, T0, T0), 0);
			if (flushed)
				CU_ASSERT_EQUAL(d9__packer_flush(&scribe.packer, T0), 0);
			cut(&scribe, given);
			CU_ASSERT(holds_all(&scribe));
			end(&scribe);
			CU_ASSERT(holds_all(&scribe) && back.complete);
			scribe_free(&scribe);
		}
	}
}

static void cut_ended_frame(enum way way)
{
	struct scribe scribe;
	size_t given;

	scribe_new(&scribe, way);
	put(&scribe, BATCH, T0);
	given = scribe.given_len;
	CU_ASSERT_EQUAL(add(&scribe, BATCH, T0, T0), 0);
	CU_ASSERT_EQUAL(d9__packer_flush(&scribe.packer, T0 + SECOND), 0);
	CU_ASSERT_EQUAL_FATAL(scribe.packer.n_frames, 1);
	cut(&scribe, given);
	CU_ASSERT_EQUAL(scribe.packer.n_frames, 0);
	CU_ASSERT_EQUAL(scribe.packer.frame.len, BATCH);
	CU_ASSERT_EQUAL(scribe.packer.frame.events, 1);
	end(&scribe);
	CU_ASSERT(holds_all(&scribe) && back.complete);
	CU_ASSERT_EQUAL(scribe.packer.n_frames, 1);
	scribe_free(&scribe);
}

static void test_cut_opens_the_frame_again_that_ended_since_the_last_write(void)
{
	cut_ended_frame(ZSTD);
	cut_ended_frame(RAW);
}

static void test_end_can_be_tried_again_after_its_own_write_failed(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		struct scribe scribe;

		scribe_new(&scribe, kinds[i]);
		put(&scribe, BATCH, T0);
		for (int tries = 0; tries < 3; tries++) {
			CU_ASSERT_EQUAL(d9__packer_end(&scribe.packer), 0);
			cut(&scribe, scribe.given_len);
			CU_ASSERT(holds_all(&scribe));
		}
		/* The frame and the table one by one, as where there is little room. */
		CU_ASSERT_EQUAL(d9__packer_end_frame(&scribe.packer), 0);
		write_out(&scribe);
		CU_ASSERT_EQUAL(d9__packer_end(&scribe.packer), 0);
		cut(&scribe, scribe.given_len);
		end(&scribe);
		CU_ASSERT(holds_all(&scribe) && back.complete);
		scribe_free(&scribe);
	}
}

/* ---- the seek table ---- */

/* Frame |i| of |n|, whose table is at |table|: by itself it unpacks to what was given at |at|.  The bytes it holds. */
static uint32_t check_entry(const struct scribe *scribe, const uint8_t *table, uint32_t i, size_t at)
{
	const uint8_t *entry = table + 8 + i * D9__SEEK_ENTRY_LEN;
	uint64_t offset = d9__wire_get_u64(entry), next = d9__wire_get_u64(entry + D9__SEEK_ENTRY_LEN);
	uint32_t packed = d9__wire_get_u32(entry + 8), len = d9__wire_get_u32(entry + 12);

	CU_ASSERT_FATAL(offset + packed <= (size_t)(table - scribe->file));
	if (8 + (i + 2) * D9__SEEK_ENTRY_LEN + D9__SEEK_FOOTER_LEN <= (size_t)(scribe->file + scribe->file_len - table))
		CU_ASSERT_EQUAL(offset + packed, next);
	unpack(&back, D9_COMPRESS_ZSTD, scribe->file + offset, packed);
	CU_ASSERT(back.complete);
	CU_ASSERT_EQUAL_FATAL(back.len, len);
	CU_ASSERT(!memcmp(back.data, scribe->given + at, len));
	return len;
}

static void check_table_of(bool changes)
{
	struct scribe scribe;
	const uint8_t *table, *foot;
	size_t at = 0;

	scribe_new(&scribe, ZSTD);
	for (uint64_t i = 0; i < 100; i++) { /* more frames than the first array of them holds */
		uint64_t ns = T0 + i * SECOND;

		scribe.packer.raw_limit = changes && i % 2 ? UINT64_MAX : 0;
		CU_ASSERT_EQUAL(add(&scribe, BATCH, ns + 7, ns), 0);
		CU_ASSERT_EQUAL(add(&scribe, BATCH, ns + 5, ns), 0);
		CU_ASSERT_EQUAL(add(&scribe, BATCH, ns + 6, ns), 0);
		/* Without a time, and with nothing that counts. */
		CU_ASSERT_EQUAL(d9__packer_add(&scribe.packer, "", 0, 0, 0, 0, ns), 0);
		CU_ASSERT_EQUAL(d9__packer_flush(&scribe.packer, ns + SECOND), 0);
		write_out(&scribe);
	}
	end(&scribe);
	CU_ASSERT(holds_all(&scribe) && back.complete);
	foot = scribe.file + scribe.file_len - D9__SEEK_FOOTER_LEN;
	CU_ASSERT_EQUAL(d9__wire_get_u64(foot), scribe.given_len);
	CU_ASSERT_EQUAL_FATAL(d9__wire_get_u32(foot + 8), 100);
	CU_ASSERT_EQUAL(d9__wire_get_u32(foot + 12), D9__SEEK_TABLE_MAGIC);
	table = foot - 100 * D9__SEEK_ENTRY_LEN - 8;
	CU_ASSERT_EQUAL(d9__wire_get_u32(table), D9__SEEK_FRAME_MAGIC);
	CU_ASSERT_EQUAL(d9__wire_get_u32(table + 4), 100 * D9__SEEK_ENTRY_LEN + D9__SEEK_FOOTER_LEN);
	for (uint32_t i = 0; i < 100; i++) {
		const uint8_t *entry = table + 8 + (size_t)i * D9__SEEK_ENTRY_LEN;

		at += check_entry(&scribe, table, i, at);
		CU_ASSERT_EQUAL(d9__wire_get_u64(entry + 16), T0 + i * SECOND + 5);
		CU_ASSERT_EQUAL(d9__wire_get_u64(entry + 24), T0 + i * SECOND + 7);
		CU_ASSERT_EQUAL(d9__wire_get_u64(entry + 32), 3);
	}
	CU_ASSERT_EQUAL(at, scribe.given_len);
	scribe_free(&scribe);
}

static void test_seek_table_finds_each_frame_and_what_is_in_it(void)
{
	check_table_of(false);
	check_table_of(true);
}

/* ---- raw frames ---- */

/* How long the file is by one batch, begun with room for |limit| bytes in raw frames. */
static size_t length_with(struct scribe *scribe, uint64_t limit)
{
	scribe_new(scribe, ZSTD);
	scribe->packer.raw_limit = limit;
	put(scribe, BATCH, T0);
	CU_ASSERT(holds_all(scribe));
	return scribe->file_len;
}

static void test_raw_frame_is_a_header_and_copies_and_counts_to_the_last_byte(void)
{
	const uint64_t all = 6 + 3 + BATCH + 3;
	struct scribe scribe;

	CU_ASSERT_EQUAL(length_with(&scribe, all), all - 3);
	CU_ASSERT_EQUAL(scribe.packer.raw_bytes, all);
	end(&scribe);
	CU_ASSERT_EQUAL(scribe.packer.frames[0].packed_len, all);
	scribe_free(&scribe);
	CU_ASSERT(length_with(&scribe, all - 1) < BATCH);
	CU_ASSERT_EQUAL(scribe.packer.raw_bytes, 0);
	scribe_free(&scribe);
}

static void test_batch_of_more_than_a_block_is_several_blocks(void)
{
	struct scribe scribe;

	scribe_new(&scribe, RAW);
	for (size_t len = (128 << 10) - 1; len <= (128 << 10) + 1; len++)
		put(&scribe, len, T0);
	CU_ASSERT_EQUAL(scribe.packer.raw_bytes, 6 + scribe.given_len + 4 * 3 + 3);
	end(&scribe);
	CU_ASSERT(holds_all(&scribe) && back.complete);
	scribe_free(&scribe);
}

static void test_frame_that_is_compressed_stays_so_and_the_next_one_is_raw(void)
{
	struct scribe scribe;

	scribe_new(&scribe, ZSTD);
	put(&scribe, BATCH, T0);
	scribe.packer.raw_limit = UINT64_MAX;
	put(&scribe, BATCH, T0);
	CU_ASSERT_EQUAL(scribe.packer.raw_bytes, 0);
	put(&scribe, BATCH, T0 + SECOND);
	put(&scribe, BATCH, T0 + SECOND);
	CU_ASSERT_EQUAL(scribe.packer.n_frames, 1);
	CU_ASSERT(scribe.packer.raw_bytes > BATCH);
	/* At once: it need not be full. */
	scribe.packer.raw_limit = 0;
	put(&scribe, BATCH, T0 + SECOND);
	CU_ASSERT_EQUAL(scribe.packer.n_frames, 2);
	CU_ASSERT(scribe.packer.raw_bytes < 2 * BATCH);
	end(&scribe);
	CU_ASSERT(holds_all(&scribe) && back.complete);
	CU_ASSERT_EQUAL(scribe.packer.n_frames, 3);
	scribe_free(&scribe);
}

static void test_cut_forgets_the_raw_bytes_that_were_not_written(void)
{
	struct scribe scribe;
	uint64_t kept;

	scribe_new(&scribe, RAW);
	put(&scribe, BATCH, T0);
	kept = scribe.packer.raw_bytes;
	CU_ASSERT_EQUAL(add(&scribe, BATCH, T0, T0), 0);
	CU_ASSERT(scribe.packer.raw_bytes > kept);
	cut(&scribe, BATCH);
	CU_ASSERT_EQUAL(scribe.packer.raw_bytes, kept);
	end(&scribe);
	CU_ASSERT(holds_all(&scribe) && back.complete);
	CU_ASSERT_EQUAL(scribe.packer.frames[0].packed_len, kept);
	scribe_free(&scribe);
}

static void test_frame_of_another_file_is_taken_over_as_it_is(void)
{
	struct scribe from, to;

	scribe_new(&from, ZSTD);
	put(&from, BATCH, T0);
	put(&from, BATCH, T0 + SECOND);
	scribe_new(&to, ZSTD);
	CU_ASSERT_EQUAL(
		d9__packer_copy(&to.packer, from.file, from.file_len, &from.packer.frames[0]), 0);
	memcpy(more(&to.given, &to.given_len, from.given_len), from.given, from.given_len);
	write_out(&to);
	put(&to, BATCH, T0);
	end(&to);
	CU_ASSERT(holds_all(&to) && back.complete);
	CU_ASSERT_EQUAL_FATAL(to.packer.n_frames, 2);
	CU_ASSERT_EQUAL(to.packer.frames[0].packed_len, from.file_len);
	CU_ASSERT_EQUAL(to.packer.frames[0].events, 2);
	CU_ASSERT_EQUAL(to.packer.frames[1].offset, from.file_len);
	scribe_free(&from);
	scribe_free(&to);
}

static void test_packer_of_nothing_makes_a_file_of_nothing(void)
{
	static const size_t lengths[] = { [ZSTD] = 8 + D9__SEEK_FOOTER_LEN, [GZIP] = 20 };

	for (size_t i = 0; i < N_KINDS; i++) {
		struct scribe scribe;

		scribe_new(&scribe, kinds[i]);
		end(&scribe);
		CU_ASSERT(holds_all(&scribe) && back.complete);
		CU_ASSERT_EQUAL(scribe.file_len, lengths[kinds[i] > GZIP ? ZSTD : kinds[i]]);
		scribe_free(&scribe);
	}
}

/* ---- one after the other ---- */

/* Begin another file where one was given up in the middle. */
static void begin_anew(struct scribe *scribe, enum way kind)
{
	CU_ASSERT_EQUAL(add(scribe, BATCH, T0, T0), 0);
	CU_ASSERT_EQUAL(begin(scribe, kind), 0);
	scribe->file_len = scribe->given_len = 0;
}

static void test_packer_knows_nothing_of_the_file_before(void)
{
	struct scribe scribe;

	scribe_new(&scribe, NONE);
	for (size_t i = 0; i < 2 * N_KINDS * N_KINDS; i++) {
		begin_anew(&scribe, kinds[i % N_KINDS]);
		if (i % 2)
			begin_anew(&scribe, kinds[i / N_KINDS % N_KINDS]);
		put(&scribe, BATCH, T0);
		put(&scribe, BATCH, T0 + SECOND);
		put(&scribe, BATCH, T0 + SECOND);
		end(&scribe);
		CU_ASSERT(holds_all(&scribe) && back.complete);
		CU_ASSERT_EQUAL(scribe.packer.in_bytes, 3 * BATCH);
		if (scribe.way != MIXED)
			CU_ASSERT_EQUAL(scribe.packer.n_frames,
					scribe.packer.kind == D9_COMPRESS_ZSTD ? 2 : 0);
	}
	scribe_free(&scribe);
}

/* ---- without memory ---- */

/* One batch and its flush, with frames that end; whether both could be done. */
static bool may_put(struct scribe *scribe, uint64_t i)
{
	uint64_t now_ns = T0 + i * SECOND / 2;
	int err = add(scribe, 40 * BATCH, now_ns, now_ns);

	if (!err)
		err = d9__packer_flush(&scribe->packer, now_ns);
	CU_ASSERT(!err || err == -ENOMEM || err == -EIO);
	if (!err)
		write_out(scribe);
	return !err;
}

/* A file in which allocation |nth| fails.  Whether there were so many. */
static bool pack_with_little(enum way kind, int nth)
{
	struct scribe scribe = { .file = NULL };
	size_t given = 0;
	bool refused = false;

	allowed = nth;
	if (begin(&scribe, kind)) {
		refused = true;
		allowed = INT_MAX;
		CU_ASSERT_EQUAL(begin(&scribe, kind), 0);
	}
	write_out(&scribe);
	for (uint64_t i = 0; i < 5 && !refused; i++) {
		given = scribe.given_len;
		refused = !may_put(&scribe, i);
	}
	allowed = INT_MAX;
	if (refused)
		cut(&scribe, given);
	end(&scribe);
	CU_ASSERT(holds_all(&scribe) && back.complete);
	scribe_free(&scribe);
	return refused;
}

static void test_whichever_allocation_fails_what_was_written_is_made_a_whole_file(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		int n = 0;

		while (pack_with_little(kinds[i], n))
			n++;
		CU_ASSERT(n > 0);
	}
}

static void test_frame_that_was_begun_can_be_ended_without_memory(void)
{
	struct scribe scribe;

	scribe_new(&scribe, ZSTD);
	put(&scribe, BATCH, T0);
	allowed = 0;
	end(&scribe);
	allowed = INT_MAX;
	CU_ASSERT(holds_all(&scribe) && back.complete);
	scribe_free(&scribe);
}

static void test_packer_that_was_released_is_as_a_new_one(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		struct scribe scribe;

		scribe_new(&scribe, kinds[i]);
		put(&scribe, BATCH, T0);
		d9__packer_release(&scribe.packer);
		CU_ASSERT_PTR_NULL(scribe.packer.out);
		scribe.file_len = scribe.given_len = 0;
		CU_ASSERT_EQUAL(begin(&scribe, kinds[i]), 0);
		put(&scribe, BATCH, T0);
		end(&scribe);
		CU_ASSERT(holds_all(&scribe) && back.complete);
		scribe_free(&scribe);
	}
}

static void test_suffixes_are_those_that_readers_know(void)
{
	CU_ASSERT_STRING_EQUAL(d9__packer_suffix(D9_COMPRESS_ZSTD), ".bin.zst");
	CU_ASSERT_STRING_EQUAL(d9__packer_suffix(D9_COMPRESS_GZIP), ".bin.gz");
	CU_ASSERT_STRING_EQUAL(d9__packer_suffix(D9_COMPRESS_NONE), ".bin");
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "all that was flushed can be unpacked",
		  test_all_that_was_flushed_can_be_unpacked_though_the_file_goes_on },
		{ "flush without a batch adds nothing", test_flush_without_a_batch_adds_nothing },
		{ "frame ends by size", test_frame_ends_with_the_flush_that_finds_a_mib_in_it },
		{ "frame ends by age", test_frame_ends_with_the_flush_that_finds_it_a_second_old },
		{ "cut takes back what was not written",
		  test_cut_takes_back_what_was_added_since_the_last_write_and_no_more },
		{ "cut opens a frame again",
		  test_cut_opens_the_frame_again_that_ended_since_the_last_write },
		{ "end is tried again", test_end_can_be_tried_again_after_its_own_write_failed },
		{ "seek table", test_seek_table_finds_each_frame_and_what_is_in_it },
		{ "raw frame", test_raw_frame_is_a_header_and_copies_and_counts_to_the_last_byte },
		{ "raw blocks", test_batch_of_more_than_a_block_is_several_blocks },
		{ "raw from the next frame on",
		  test_frame_that_is_compressed_stays_so_and_the_next_one_is_raw },
		{ "cut of raw bytes", test_cut_forgets_the_raw_bytes_that_were_not_written },
		{ "frame of another file", test_frame_of_another_file_is_taken_over_as_it_is },
		{ "nothing", test_packer_of_nothing_makes_a_file_of_nothing },
		{ "nothing is known of the file before",
		  test_packer_knows_nothing_of_the_file_before },
		{ "an allocation fails",
		  test_whichever_allocation_fails_what_was_written_is_made_a_whole_file },
		{ "no memory at the end", test_frame_that_was_begun_can_be_ended_without_memory },
		{ "released", test_packer_that_was_released_is_as_a_new_one },
		{ "suffixes", test_suffixes_are_those_that_readers_know },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("packer", tests);
}
