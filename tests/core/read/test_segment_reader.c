/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/segment_reader.h"

#include <errno.h>
#include <stdlib.h>

#include "core/format/worked_examples.h"
#include "core/read/memory_source.h"
#include "support/d9_test.h"
#include "support/trace_builder.h"

struct result {
	int got, err;
	bool truncated;
	uint64_t err_offset;
	unsigned events, frames;
	uint64_t digest; /* of kinds, times and offsets */
	size_t capacity; /* of the window at the end */
};

static struct result read_started(struct d9__segment_reader *reader)
{
	struct d9__frame frame;
	struct result result = { 0 };

	while ((result.got = d9__segment_reader_next(reader, &frame)) == 1) {
		result.frames++;
		result.events += frame.kind == D9__FRAME_EVENT;
		result.digest = result.digest * 31 + (uint64_t)frame.kind;
		result.digest = result.digest * 31 + d9__segment_reader_offset(reader, &frame);
		if (frame.kind == D9__FRAME_EVENT)
			result.digest = result.digest * 31 + frame.timestamp_ns;
	}
	result.err = reader->err;
	result.truncated = reader->truncated;
	result.err_offset = reader->err_offset;
	result.capacity = reader->capacity;
	CU_ASSERT_EQUAL(d9__segment_reader_next(reader, &frame), 0);
	return result;
}

static struct result read_pieces(const uint8_t *bytes, size_t len, size_t piece, bool known)
{
	struct memory_source source = { bytes, len, 0, piece };
	struct d9__definitions set = { 0 };
	struct d9__segment_reader reader;
	struct result result;

	d9__segment_reader_init(&reader, &set, (uint64_t)1 << 22);
	d9__segment_reader_start(&reader, memory_source(&source, known));
	result = read_started(&reader);
	d9__segment_reader_release(&reader);
	d9__definitions_release(&set);
	return result;
}

static bool same(const struct result *a, const struct result *b)
{
	return a->got == b->got && a->err == b->err && a->truncated == b->truncated &&
	       a->err_offset == b->err_offset && a->frames == b->frames && a->digest == b->digest;
}

static const size_t pieces[] = { 1, 2, 3, 7, 4096 };
#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

static void test_pieces_of_any_size_give_the_same_frames(void)
{
	struct result whole =
		read_pieces(worked_two_batches, sizeof(worked_two_batches), SIZE_MAX, true);

	CU_ASSERT_EQUAL(whole.events, 3);
	CU_ASSERT_EQUAL(whole.err, 0);
	CU_ASSERT_FALSE(whole.truncated);
	for (size_t i = 0; i < N_PIECES; i++) {
		struct result result = read_pieces(worked_two_batches, sizeof(worked_two_batches),
						   pieces[i], i % 2);

		CU_ASSERT_TRUE(same(&whole, &result));
	}
}

static void cut_everywhere(const uint8_t *bytes, size_t len)
{
	for (size_t cut = 0; cut <= len; cut++) {
		struct result whole = read_pieces(bytes, cut, SIZE_MAX, true);
		struct result slow = read_pieces(bytes, cut, 1 + cut % 5, false);

		CU_ASSERT_EQUAL(whole.got, 0);
		CU_ASSERT_EQUAL(whole.err, 0);
		CU_ASSERT_TRUE(same(&whole, &slow));
		CU_ASSERT(whole.truncated ? whole.err_offset < cut || cut == 0 : true);
	}
}

static void test_cut_at_any_byte_is_a_truncated_tail_with_its_offset(void)
{
	struct result result = read_pieces(worked_polls, sizeof(worked_polls) - 1, 4096, true);

	cut_everywhere(worked_polls, sizeof(worked_polls));
	cut_everywhere(worked_two_batches, sizeof(worked_two_batches));

	CU_ASSERT_TRUE(result.truncated);
	CU_ASSERT_EQUAL(result.err_offset, 0xb5);
	CU_ASSERT_EQUAL(result.events, 3);
}

static void test_any_changed_byte_reads_the_same_in_pieces(void)
{
	uint8_t copy[sizeof(worked_two_batches)];

	memcpy(copy, worked_two_batches, sizeof(copy));
	for (size_t at = 0; at < sizeof(copy); at++) {
		for (unsigned value = 0; value < 256; value += 5) {
			struct result whole, slow;

			copy[at] = (uint8_t)value;
			whole = read_pieces(copy, sizeof(copy), SIZE_MAX, true);
			slow = read_pieces(copy, sizeof(copy), 7, false);
			CU_ASSERT_EQUAL(whole.got, 0);
			CU_ASSERT_TRUE(same(&whole, &slow));
		}
		copy[at] = worked_two_batches[at];
	}
}

static void test_empty_stream_is_not_an_empty_trace(void)
{
	struct result nothing = read_pieces((const uint8_t *)"", 0, 1, true);
	struct result empty = read_pieces((const uint8_t *)"TRC\0\1", 5, 1, true);

	CU_ASSERT_TRUE(nothing.truncated);
	CU_ASSERT_FALSE(empty.truncated);
	CU_ASSERT_EQUAL(empty.frames, 1);
}

static struct trace big_text(size_t len)
{
	struct trace t = { 0 };
	char *text = malloc(len + 1);

	memset(text, 'x', len);
	text[len] = '\0';
	trace_batch(&t);
	trace_schema(&t, 1, "Big", "text:4");
	trace_event(&t, 1, 7, text);
	trace_event(&t, 1, 8, "small");
	free(text);
	return t;
}

static void test_frame_larger_than_the_window_is_read_whole(void)
{
	struct trace t = big_text((size_t)3 << 20);

	for (size_t piece = 4096; piece <= (size_t)1 << 20; piece *= 16) {
		struct result result = read_pieces(t.data, t.len, piece, piece > 4096);

		CU_ASSERT_EQUAL(result.events, 2);
		CU_ASSERT_EQUAL(result.err, 0);
	}
	trace_free(&t);
}

static void test_frame_over_the_memory_limit_is_damage(void)
{
	struct trace t = big_text((size_t)12 << 20);
	struct result result = read_pieces(t.data, t.len, 65536, false);

	CU_ASSERT_EQUAL(result.got, 0);
	CU_ASSERT_EQUAL(result.err, -EFBIG);
	CU_ASSERT_EQUAL(result.events, 0);
	CU_ASSERT(result.capacity <= (size_t)16 << 20);
	trace_free(&t);
}

static void test_claim_beyond_the_end_of_a_file_is_not_even_read(void)
{
	struct trace t = { 0 };
	struct result result;

	trace_batch(&t);
	trace_uint(&t, 3, 1);
	trace_uint(&t, 1, 4);
	trace_uint(&t, 0, 4);
	trace_uint(&t, UINT32_MAX, 4);
	for (int i = 0; i < 300000; i++)
		trace_uint(&t, 0, 8);
	result = read_pieces(t.data, t.len, 65536, true);

	CU_ASSERT_TRUE(result.truncated);
	CU_ASSERT_EQUAL(result.err_offset, 5);
	CU_ASSERT(result.capacity <= (size_t)1 << 19);
	trace_free(&t);
}

static ssize_t broken(void *context, void *buf, size_t len)
{
	(void)context, (void)buf, (void)len;
	return -EIO;
}

static void test_error_of_the_source_is_passed_on(void)
{
	struct d9__definitions set = { 0 };
	struct d9__segment_reader reader;
	struct d9__frame frame;

	d9__segment_reader_init(&reader, &set, 0);
	d9__segment_reader_start(&reader, (struct d9__byte_source) { broken, NULL, UINT64_MAX });

	CU_ASSERT_EQUAL(d9__segment_reader_next(&reader, &frame), -EIO);
	d9__segment_reader_release(&reader);
	d9__definitions_release(&set);
}

/* ---- streams that are kept ---- */

/* Some MiB of events of many sizes. */
static void build_large(struct trace *t)
{
	char text[3001];

	memset(text, 'x', sizeof(text));
	text[3000] = '\0';
	trace_batch(t);
	trace_schema(t, 1, "Text", "text:4");
	for (uint64_t i = 0; i < 2000; i++)
		trace_event(t, 1, i, text + i * 7 % 3000);
}

/* Read |t| in pieces and keep it, at most |max_bytes|; then what was kept, from where it is, if it was. */
static struct result keep(const struct trace *t, uint64_t max_bytes, bool *kept)
{
	struct memory_source source = { t->data, t->len, 0, 5000 };
	struct d9__definitions set = { 0 };
	struct d9__segment_reader reader;
	struct result result, again;
	uint64_t len = 0;
	uint8_t *bytes;

	d9__segment_reader_init(&reader, &set, (uint64_t)1 << 22);
	d9__segment_reader_start(&reader, memory_source(&source, false));
	d9__segment_reader_keep(&reader, max_bytes);
	result = read_started(&reader);
	bytes = d9__segment_reader_kept(&reader, &len);
	*kept = bytes != NULL;
	if (bytes) {
		CU_ASSERT_EQUAL(len, t->len);
		CU_ASSERT_EQUAL(memcmp(bytes, t->data, t->len), 0);
		d9__segment_reader_start_at(&reader, bytes, (size_t)len);
		again = read_started(&reader);
		CU_ASSERT_TRUE(same(&result, &again));
		free(bytes);
	}
	d9__segment_reader_release(&reader);
	d9__definitions_release(&set);
	return result;
}

static void test_stream_is_kept_whole_or_not_at_all(void)
{
	struct result plain, kept;
	struct trace t = { 0 };
	bool is_kept;

	build_large(&t);
	plain = read_pieces(t.data, t.len, SIZE_MAX, true);
	for (unsigned part = 1; part <= 8; part++) {
		uint64_t max_bytes = t.len / 4 * part;

		kept = keep(&t, max_bytes, &is_kept);
		CU_ASSERT_TRUE(same(&plain, &kept));
		CU_ASSERT_EQUAL(is_kept, part > 4);
		/* A segment that did not fit takes no memory any more. */
		CU_ASSERT(kept.capacity <= (part > 4 ? max_bytes : 1u << 20));
	}
	trace_free(&t);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "pieces of any size give the same frames",
		  test_pieces_of_any_size_give_the_same_frames },
		{ "cut at any byte is a truncated tail with its offset",
		  test_cut_at_any_byte_is_a_truncated_tail_with_its_offset },
		{ "any changed byte reads the same in pieces",
		  test_any_changed_byte_reads_the_same_in_pieces },
		{ "empty stream is not an empty trace", test_empty_stream_is_not_an_empty_trace },
		{ "frame larger than the window is read whole",
		  test_frame_larger_than_the_window_is_read_whole },
		{ "frame over the memory limit is damage",
		  test_frame_over_the_memory_limit_is_damage },
		{ "claim beyond the end of a file is not even read",
		  test_claim_beyond_the_end_of_a_file_is_not_even_read },
		{ "error of the source is passed on", test_error_of_the_source_is_passed_on },
		{ "stream is kept whole or not at all", test_stream_is_kept_whole_or_not_at_all },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("segment_reader", tests);
}
