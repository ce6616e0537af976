/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "format/varint.h"
#include "support/d9_test.h"

static void test_varint_takes_the_fewest_bytes_that_hold_the_value(void)
{
	static const struct {
		uint64_t value;
		size_t len;
	} cases[] = { { 0, 1 },     { 127, 1 },  { 128, 2 },          { 16383, 2 },
		      { 16384, 3 }, { 1u << 21, 4 }, { UINT64_MAX >> 1, 9 }, { UINT64_MAX, 10 } };
	uint8_t bytes[D9__VARINT_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CU_ASSERT_EQUAL((size_t)(d9__varint_put(bytes, cases[i].value) - bytes), cases[i].len);
		CU_ASSERT_EQUAL(d9__varint_len(cases[i].value), cases[i].len);
	}
}

static void test_varint_of_the_largest_value_ends_with_one(void)
{
	uint8_t bytes[D9__VARINT_MAX];

	d9__varint_put(bytes, UINT64_MAX);

	CU_ASSERT_EQUAL(bytes[8], 0xff);
	CU_ASSERT_EQUAL(bytes[9], 0x01);
}

static void test_varint_is_read_in_words_as_byte_by_byte(void)
{
	uint64_t value = 1;

	for (unsigned i = 0; i < 20000; i++) {
		uint8_t bytes[D9__VARINT_MAX + D9__VARINT_SLACK];
		const uint8_t *end, *p = bytes;

		value = value * UINT64_C(6364136223846793005) + 1442695040888963407;
		memset(bytes, (int)i, sizeof(bytes));
		end = d9__varint_put(bytes, value >> i % 64);
		CU_ASSERT_EQUAL(d9__varint_pass(bytes), end);
		CU_ASSERT_EQUAL(d9__varint_get(&p), value >> i % 64);
		CU_ASSERT_EQUAL(p, end);
	}
}

static void test_varint_over_64_bits_is_refused_in_words_too(void)
{
	uint8_t bytes[D9__VARINT_MAX + D9__VARINT_SLACK];
	const uint8_t *p = bytes;

	memset(bytes, 0x80, sizeof(bytes));
	bytes[9] = 2;
	CU_ASSERT_PTR_NULL(d9__varint_pass(bytes));
	d9__varint_get(&p);
	CU_ASSERT_PTR_NULL(p);
	/* Longer than it has to be is no fault. */
	bytes[9] = 1;
	p = bytes;
	CU_ASSERT_EQUAL(d9__varint_get(&p), UINT64_C(1) << 63);
	CU_ASSERT_EQUAL(p, bytes + 10);
	bytes[9] = 0;
	p = bytes;
	CU_ASSERT_EQUAL(d9__varint_get(&p), 0);
	CU_ASSERT_EQUAL(p, bytes + 10);
	CU_ASSERT_EQUAL(d9__varint_pass(bytes), bytes + 10);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "takes the fewest bytes that hold the value",
		  test_varint_takes_the_fewest_bytes_that_hold_the_value },
		{ "of the largest value ends with one",
		  test_varint_of_the_largest_value_ends_with_one },
		{ "is read in words as byte by byte", test_varint_is_read_in_words_as_byte_by_byte },
		{ "over 64 bits is refused in words, too",
		  test_varint_over_64_bits_is_refused_in_words_too },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("varint", tests);
}
