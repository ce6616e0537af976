/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "segment/gunzip.h"
#include "segment/gzip.h"
#include "support/d9_test.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Inflate a gzip member; returns the bytes, or -1 if zlib objects. */
static long inflate_all(const uint8_t *in, size_t len, uint8_t *out, size_t size, int *end)
{
	z_stream z = { .next_in = (Bytef *)in, .avail_in = (uInt)len, .next_out = out,
		       .avail_out = (uInt)size };
	long n;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return -1;
	*end = inflate(&z, Z_SYNC_FLUSH);
	n = *end == Z_OK || *end == Z_STREAM_END ? (long)z.total_out : -1;
	inflateEnd(&z);
	return n;
}

/* Compress |data| in pieces of |piece| bytes and compare what zlib makes of it. */
static size_t round_trip(const uint8_t *data, size_t len, size_t piece)
{
	struct d9__gzip *gz = d9__gzip_new();
	size_t n = D9__GZIP_HEADER_LEN, cap = 64 + len * 3;
	uint8_t *packed, *back = malloc(len + 1);
	int end = 0;

	for (size_t at = 0; at < len; at += piece)
		cap += d9__gzip_bound(piece);
	packed = malloc(cap);
	d9__gzip_begin(gz, packed);
	for (size_t at = 0; at < len; at += piece) {
		size_t now = len - at < piece ? len - at : piece;

		n += d9__gzip_write(gz, data + at, now, packed + n);
		CU_ASSERT_FATAL(n < cap);
	}
	/* The bytes written so far can be read before the member ends. */
	CU_ASSERT_EQUAL(inflate_all(packed, n, back, len + 1, &end), (long)len);
	d9__gzip_end(gz, packed + n);
	n += D9__GZIP_END_LEN;
	CU_ASSERT_EQUAL(inflate_all(packed, n, back, len + 1, &end), (long)len);
	CU_ASSERT_EQUAL(end, Z_STREAM_END);
	CU_ASSERT_EQUAL(memcmp(back, data, len), 0);
	free(packed);
	free(back);
	d9__gzip_free(gz);
	return n;
}

static void test_gzip_crc_agrees_with_zlib(void)
{
	uint8_t data[1000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)next_random();
	CU_ASSERT_EQUAL(d9__crc32(d9__crc32(0, data, 300), data + 300, 700),
			crc32(0, data, sizeof(data)));
}

static void test_gzip_of_nothing_is_an_empty_member(void)
{
	round_trip((const uint8_t *)"", 0, 1);
}

static void test_gzip_of_every_length_comes_back(void)
{
	uint8_t data[700];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(next_random() % 3);
	for (size_t len = 1; len < sizeof(data); len += 7)
		round_trip(data, len, 1 + len / 3);
}

static void test_gzip_of_noise_stays_within_its_bound(void)
{
	size_t len = 200000;
	uint8_t *data = malloc(len);
	size_t packed;

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)next_random();

	packed = round_trip(data, len, 65536);

	CU_ASSERT(packed <= d9__gzip_bound(65536) * 4 + 20);
	free(data);
}

static void test_gzip_of_repetition_beyond_the_window_is_small(void)
{
	size_t len = 3 << 20;
	uint8_t *data = malloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i % 251 ^ (i / 50000));

	CU_ASSERT(round_trip(data, len, 100001) < len / 20);
	free(data);
}

static void test_gzip_pieces_of_all_sizes_share_one_window(void)
{
	static const size_t pieces[] = { 1, 2, 3, 31, 4096, 32767, 32768, 32769, 65536, 300000 };
	size_t len = 120000;
	uint8_t *data = malloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(next_random() % 20 ? i % 89 : next_random());
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		round_trip(data, pieces[i] < 4096 ? 3000 : len, pieces[i]);
	free(data);
}

/* |n| batches of |len| bytes in a member without an end, in a file; |ends|: where each is whole. */
static int write_batches(size_t n, size_t len, uint8_t *data, uint64_t *ends)
{
	struct d9__gzip *gz = d9__gzip_new();
	uint8_t *packed = malloc(d9__gzip_bound(len) + D9__GZIP_HEADER_LEN);
	int fd = memfd_create("gzip", MFD_CLOEXEC);

	d9__gzip_begin(gz, packed);
	ends[0] = D9__GZIP_HEADER_LEN;
	CU_ASSERT_EQUAL(pwrite(fd, packed, D9__GZIP_HEADER_LEN, 0), D9__GZIP_HEADER_LEN);
	for (size_t i = 0; i < n; i++) {
		size_t size;

		for (size_t j = 0; j < len; j++)
			data[i * len + j] = (uint8_t)(next_random() % 9 ? j % 61 : next_random());
		size = d9__gzip_write(gz, data + i * len, len, packed);
		CU_ASSERT_EQUAL(pwrite(fd, packed, size, (off_t)ends[i]), (ssize_t)size);
		ends[i + 1] = ends[i] + size;
	}
	free(packed);
	d9__gzip_free(gz);
	return fd;
}

static void test_gzip_cut_anywhere_is_read_back_to_its_last_batch(void)
{
	enum { N = 5, LEN = 700 };
	uint8_t data[N * LEN];
	uint64_t ends[N + 1];
	int fd = write_batches(N, LEN, data, ends);

	for (uint64_t size = ends[N] + 1; size-- > 0;) {
		struct d9__gunzipped out;
		size_t whole = 0;

		while (whole < N && ends[whole + 1] <= size)
			whole++;
		CU_ASSERT_EQUAL(ftruncate(fd, (off_t)size), 0);
		CU_ASSERT_EQUAL_FATAL(d9__gunzip(fd, size, 32768, 64, &out), 0);
		CU_ASSERT_EQUAL(out.mark.file_at, size < ends[0] ? 0 : ends[whole]);
		CU_ASSERT_EQUAL(out.mark.data_at, whole * LEN);
		CU_ASSERT_EQUAL(out.mark.total, whole * LEN);
		CU_ASSERT_EQUAL(out.mark.crc, crc32(0, data, (uInt)(whole * LEN)));
		CU_ASSERT(out.len >= whole * LEN && out.len <= sizeof(data));
		CU_ASSERT_EQUAL(memcmp(out.data, data, out.len), 0);
		free(out.data);
	}
	close(fd);
}

static void test_gzip_of_many_batches_is_read_back_at_its_end_only(void)
{
	enum { N = 60, LEN = 20000 };
	uint8_t *data = malloc(N * LEN);
	struct d9__gunzipped out;
	uint64_t ends[N + 1];
	int fd = write_batches(N, LEN, data, ends);

	CU_ASSERT_EQUAL_FATAL(d9__gunzip(fd, ends[N], 65536, 64, &out), 0);
	CU_ASSERT(out.len >= 65536 && out.len < 4 * 65536 && out.len % LEN == 0);
	CU_ASSERT_EQUAL(memcmp(out.data, data + N * LEN - out.len, out.len), 0);
	CU_ASSERT_EQUAL(out.mark.crc, crc32(0, data, N * LEN));
	CU_ASSERT_EQUAL(out.mark.total, N * LEN);
	CU_ASSERT_EQUAL(out.mark.file_at, ends[N]);
	free(out.data);
	free(data);
	close(fd);
}

static void test_gzip_with_any_byte_changed_ends_cleanly(void)
{
	enum { N = 3, LEN = 400 };
	uint8_t data[N * LEN], byte, bad;
	uint64_t ends[N + 1];
	int fd = write_batches(N, LEN, data, ends);

	for (uint64_t at = 0; at < ends[N]; at++)
		for (unsigned flip = 1; flip < 256; flip *= 4) {
			struct d9__gunzipped out;

			CU_ASSERT_EQUAL(pread(fd, &byte, 1, (off_t)at), 1);
			bad = byte ^ (uint8_t)flip;
			CU_ASSERT_EQUAL(pwrite(fd, &bad, 1, (off_t)at), 1);
			CU_ASSERT_EQUAL(d9__gunzip(fd, ends[N], 32768, 64, &out), 0);
			CU_ASSERT(out.mark.data_at <= out.len && out.mark.file_at <= ends[N]);
			free(out.data);
			CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, (off_t)at), 1);
		}
	close(fd);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "crc agrees with zlib", test_gzip_crc_agrees_with_zlib },
		{ "nothing is an empty member", test_gzip_of_nothing_is_an_empty_member },
		{ "every length comes back", test_gzip_of_every_length_comes_back },
		{ "noise stays within its bound", test_gzip_of_noise_stays_within_its_bound },
		{ "repetition is small", test_gzip_of_repetition_beyond_the_window_is_small },
		{ "pieces share one window", test_gzip_pieces_of_all_sizes_share_one_window },
		{ "cut anywhere, read back to its last batch",
		  test_gzip_cut_anywhere_is_read_back_to_its_last_batch },
		{ "read back at its end only",
		  test_gzip_of_many_batches_is_read_back_at_its_end_only },
		{ "any byte changed", test_gzip_with_any_byte_changed_ends_cleanly },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("gzip", tests);
}
