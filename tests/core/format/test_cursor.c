/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/cursor.h"
#include "support/d9_test.h"

#include <string.h>

static struct d9__cursor over(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	return (struct d9__cursor) { p, p + len, 0 };
}

static void test_cursor_reads_integers_of_every_width(void)
{
	static const uint8_t bytes[] = { 1, 2, 0, 3, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0x80 };
	struct d9__cursor in = over(bytes, sizeof(bytes));
	uint64_t v64 = 0;
	uint32_t v24 = 0, v32 = 0;
	uint16_t v16 = 0;
	uint8_t v8 = 0;

	CU_ASSERT(d9__cursor_u8(&in, &v8) && d9__cursor_u16(&in, &v16) &&
		  d9__cursor_u24(&in, &v24) && d9__cursor_u32(&in, &v32) &&
		  d9__cursor_u64(&in, &v64));

	CU_ASSERT_EQUAL(v8, 1);
	CU_ASSERT_EQUAL(v16, 2);
	CU_ASSERT_EQUAL(v24, 3);
	CU_ASSERT_EQUAL(v32, 4);
	CU_ASSERT_EQUAL(v64, UINT64_C(0x8000000000000005));
	CU_ASSERT_EQUAL(d9__cursor_left(&in), 0);
}

static void test_cursor_that_lacks_bytes_stays_and_tells_how_many(void)
{
	struct d9__cursor in = over("\x01\x02\x03", 3);
	uint64_t value = 7;

	CU_ASSERT_FALSE(d9__cursor_u64(&in, &value));

	CU_ASSERT_EQUAL(in.missing, 5);
	CU_ASSERT_EQUAL(d9__cursor_left(&in), 3);
	CU_ASSERT_EQUAL(value, 7);
}

static void test_cursor_refuses_lengths_that_would_wrap(void)
{
	struct d9__cursor in = over("abc", 3);

	CU_ASSERT_FALSE(d9__cursor_skip(&in, UINT64_MAX));
	CU_ASSERT_FALSE(d9__cursor_holds(&in, UINT32_MAX, 8));

	CU_ASSERT_EQUAL(in.missing, (uint64_t)UINT32_MAX * 8 - 3);
	CU_ASSERT_EQUAL(d9__cursor_left(&in), 3);
}

static void test_varint_reads_shortest_padded_and_largest_forms(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		int got;
		uint64_t value;
	} cases[] = {
		{ "\x00", 1, 1, 0 },
		{ "\xac\x02", 2, 1, 300 },
		{ "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, 1, 1 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9, 1, UINT64_MAX >> 1 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 1, UINT64_MAX },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, -EBADMSG, 0 },
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, -EBADMSG, 0 },
		{ "\x80", 1, 0, 0 },
		{ "", 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct d9__cursor in = over(cases[i].bytes, cases[i].len);
		uint64_t value = 0;

		CU_ASSERT_EQUAL(d9__cursor_varint(&in, &value), cases[i].got);
		CU_ASSERT_EQUAL(value, cases[i].value);
		CU_ASSERT_EQUAL(d9__cursor_left(&in), cases[i].got == 1 ? 0 : cases[i].len);
	}
}

static void test_blob_is_a_length_and_its_bytes(void)
{
	struct d9__cursor in = over("\x02\x00\x00\x00okX", 7);
	const uint8_t *text = NULL;
	uint32_t len = 0;

	CU_ASSERT_TRUE(d9__cursor_blob(&in, &text, &len));

	CU_ASSERT_EQUAL(len, 2);
	CU_ASSERT_EQUAL(memcmp(text, "ok", 2), 0);
	CU_ASSERT_EQUAL(d9__cursor_left(&in), 1);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "reads integers of every width", test_cursor_reads_integers_of_every_width },
		{ "that lacks bytes stays and tells how many",
		  test_cursor_that_lacks_bytes_stays_and_tells_how_many },
		{ "refuses lengths that would wrap", test_cursor_refuses_lengths_that_would_wrap },
		{ "varint reads shortest, padded and largest forms",
		  test_varint_reads_shortest_padded_and_largest_forms },
		{ "blob is a length and its bytes", test_blob_is_a_length_and_its_bytes },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("cursor", tests);
}
