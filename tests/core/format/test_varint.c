/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

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

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "takes the fewest bytes that hold the value",
		  test_varint_takes_the_fewest_bytes_that_hold_the_value },
		{ "of the largest value ends with one",
		  test_varint_of_the_largest_value_ends_with_one },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("varint", tests);
}
