/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "support/d9_test.h"

#define N    65536
#define BITS 16

static const uint64_t secrets[] = {
	UINT64_C(0x8f3a6c1d5b27e94b),
	UINT64_C(0x2d5e9b7314c86fa1),
	UINT64_C(0xc4197be02a8d53f6),
};

/* How many of 2^BITS places keys |factor| * 0, 1, 2, ... take. */
static size_t places(uint64_t secret, uint64_t factor)
{
	static bool taken[1 << BITS];
	size_t n = 0;

	memset(taken, 0, sizeof(taken));
	for (uint64_t i = 0; i < N; i++) {
		uint64_t place = d9__hash_u64(secret, i * factor) >> (64 - BITS);

		n += !taken[place];
		taken[place] = true;
	}
	return n;
}

static void test_numbers_that_one_multiplication_would_put_together_are_apart(void)
{
	/* Times the golden ratio this is 1. */
	static const uint64_t inverse = UINT64_C(0xf1de83e19937733d);

	CU_ASSERT_EQUAL(inverse * UINT64_C(0x9e3779b97f4a7c15), 1);
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		/* At random it is two thirds, and less for an unlucky secret. */
		CU_ASSERT_TRUE(places(secrets[i], inverse) > N / 32);
		CU_ASSERT_TRUE(places(secrets[i], inverse << 20) > N / 32);
		CU_ASSERT_TRUE(places(secrets[i], UINT64_C(1) << 32) > N / 32);
		CU_ASSERT_TRUE(places(secrets[i], UINT64_C(1) << 48) > N / 32);
		/* Fibonacci numbers are nearly whole multiples of the golden ratio. */
		CU_ASSERT_TRUE(places(secrets[i], 433494437) > N / 32);
		CU_ASSERT_TRUE(places(secrets[i], 14930352) > N / 32);
	}
}

static void test_numbers_that_count_up_are_spread_evenly(void)
{
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		CU_ASSERT_TRUE(places(secrets[i], 1) > N / 4 * 3);
}

static void test_texts_of_zeros_differ_by_their_length(void)
{
	static const char zeros[64] = "";
	uint64_t seen[64];

	for (size_t len = 0; len < 64; len++) {
		seen[len] = d9__hash_bytes(1, zeros, len);
		for (size_t i = 0; i < len; i++)
			CU_ASSERT_NOT_EQUAL(seen[i], seen[len]);
	}
}

static void test_each_bit_of_a_text_counts(void)
{
	char text[] = "a text of more than two words";
	uint64_t whole = d9__hash_bytes(7, text, sizeof(text) - 1);

	for (size_t bit = 0; bit < 8 * (sizeof(text) - 1); bit++) {
		text[bit / 8] ^= (char)(1 << bit % 8);
		CU_ASSERT_NOT_EQUAL(d9__hash_bytes(7, text, sizeof(text) - 1), whole);
		text[bit / 8] ^= (char)(1 << bit % 8);
	}
	CU_ASSERT_NOT_EQUAL(d9__hash_bytes(8, text, sizeof(text) - 1), whole);
}

static void test_secret_stays_and_is_one(void)
{
	CU_ASSERT_NOT_EQUAL(d9__hash_secret(), 0);
	CU_ASSERT_EQUAL(d9__hash_secret(), d9__hash_secret());
}

static CU_TestInfo tests[] = {
	{ "numbers that one multiplication would put together are apart",
	  test_numbers_that_one_multiplication_would_put_together_are_apart },
	{ "numbers that count up are spread evenly", test_numbers_that_count_up_are_spread_evenly },
	{ "texts of zeros differ by their length", test_texts_of_zeros_differ_by_their_length },
	{ "each bit of a text counts", test_each_bit_of_a_text_counts },
	{ "secret stays and is one", test_secret_stays_and_is_one },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("hash", tests);
}
