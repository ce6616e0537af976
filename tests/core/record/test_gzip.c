/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "record/gzip.h"
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
	/* What was written so far can be read before the member ends. */
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

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "crc agrees with zlib", test_gzip_crc_agrees_with_zlib },
		{ "nothing is an empty member", test_gzip_of_nothing_is_an_empty_member },
		{ "every length comes back", test_gzip_of_every_length_comes_back },
		{ "noise stays within its bound", test_gzip_of_noise_stays_within_its_bound },
		{ "repetition is small", test_gzip_of_repetition_beyond_the_window_is_small },
		{ "pieces share one window", test_gzip_pieces_of_all_sizes_share_one_window },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("gzip", tests);
}
