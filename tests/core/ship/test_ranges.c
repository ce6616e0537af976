/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of numbers: what is put in and taken out, and how they are written. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ship/ranges.h"
#include "support/d9_test.h"

#define NUMBERS 200

static void expect(const struct d9__ranges *ranges, const char *text, uint64_t count)
{
	char out[256];

	d9__ranges_write(ranges, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, text);
	CU_ASSERT_EQUAL(d9__ranges_count(ranges), count);
}

static void test_ranges_that_touch_become_one(void)
{
	struct d9__ranges ranges = { 0 };

	CU_ASSERT_EQUAL(d9__ranges_parse(&ranges, "60,41-57,58,62-61,0,x,70"), 0);
	expect(&ranges, "0,41-58,60", 20);
	CU_ASSERT_EQUAL(d9__ranges_add(&ranges, 59, 59), 0);
	expect(&ranges, "0,41-60", 21);
	d9__ranges_release(&ranges);
}

static void test_removal_splits_a_range(void)
{
	struct d9__ranges ranges = { 0 };

	CU_ASSERT_EQUAL(d9__ranges_parse(&ranges, "0-9,20-29"), 0);
	CU_ASSERT_EQUAL(d9__ranges_remove(&ranges, 3, 3), 0);
	CU_ASSERT_EQUAL(d9__ranges_remove(&ranges, 8, 21), 0);
	expect(&ranges, "0-2,4-7,22-29", 15);
	CU_ASSERT_EQUAL(d9__ranges_remove(&ranges, 0, UINT64_MAX), 0);
	expect(&ranges, "", 0);
	d9__ranges_release(&ranges);
}

static void test_ends_of_all_numbers_are_no_special_case(void)
{
	struct d9__ranges ranges = { 0 };

	CU_ASSERT_EQUAL(d9__ranges_parse(&ranges, "0-18446744073709551615,7"), 0);
	expect(&ranges, "0-18446744073709551615", UINT64_MAX);
	CU_ASSERT_EQUAL(d9__ranges_remove(&ranges, UINT64_MAX, UINT64_MAX), 0);
	CU_ASSERT_EQUAL(d9__ranges_remove(&ranges, 0, 0), 0);
	expect(&ranges, "1-18446744073709551614", UINT64_MAX - 1);
	d9__ranges_release(&ranges);
}

static void test_text_without_room_says_that_it_is_cut(void)
{
	struct d9__ranges ranges = { 0 };
	char out[16];

	CU_ASSERT_EQUAL(d9__ranges_parse(&ranges, "1,3,5,7,9,100-300"), 0);
	d9__ranges_write(&ranges, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, "1,3,5,7,9,...");
	d9__ranges_write(&ranges, out, 8);
	CU_ASSERT_STRING_EQUAL(out, "1,3,...");
	d9__ranges_release(&ranges);
}

/* A plain table of numbers is the measure. */
static void test_random_steps_leave_what_a_table_has(void)
{
	struct d9__ranges ranges = { 0 };
	bool in[NUMBERS] = { false };
	unsigned seed = 7, wrong = 0;

	for (unsigned step = 0; step < 20000; step++) {
		uint64_t first = (uint64_t)rand_r(&seed) % NUMBERS, last = first + (uint64_t)rand_r(&seed) % 8;
		bool put = rand_r(&seed) % 2;

		last = last < NUMBERS ? last : NUMBERS - 1;
		wrong += (put ? d9__ranges_add : d9__ranges_remove)(&ranges, first, last) != 0;
		for (uint64_t i = first; i <= last; i++)
			in[i] = put;
		for (unsigned i = 0; i < NUMBERS; i++)
			wrong += d9__ranges_has(&ranges, i) != in[i];
		for (size_t i = 1; i < ranges.n; i++)
			wrong += ranges.items[i].first <= ranges.items[i - 1].last + 1;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	d9__ranges_release(&ranges);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "touch", test_ranges_that_touch_become_one },
		{ "removal", test_removal_splits_a_range },
		{ "ends", test_ends_of_all_numbers_are_no_special_case },
		{ "no room", test_text_without_room_says_that_it_is_cut },
		{ "random", test_random_steps_leave_what_a_table_has },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("ranges", tests);
}
