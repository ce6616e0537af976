/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "support/d9_test.h"

static unsigned compared;

static int by_first_byte(const void *left, const void *right)
{
	compared++;
	return *(const uint8_t *)left - *(const uint8_t *)right;
}

static int by_value(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static void test_items_of_any_size_come_in_order_with_all_their_bytes(void)
{
	uint8_t items[50 * 200];

	for (size_t size = 1; size <= 200; size += 13) {
		unsigned sum = 0;

		for (size_t i = 0; i < 50; i++) {
			memset(items + i * size, (int)(i * 37 % 50), size);
			sum += (unsigned)(i * 37 % 50);
		}
		d9__sort(items, 50, size, by_first_byte);
		for (size_t i = 0; i < 50; i++) {
			CU_ASSERT_EQUAL(items[i * size], i);
			CU_ASSERT_EQUAL(items[i * size + size - 1], i);
			sum -= items[i * size];
		}
		CU_ASSERT_EQUAL(sum, 0);
	}
}

static void test_the_same_order_as_qsorts_of_random_numbers_and_repeated_ones(void)
{
	static uint32_t ours[3000], theirs[3000];
	uint32_t random = 1;

	for (size_t n = 0; n <= 3000; n = n * 2 + 1) {
		for (size_t i = 0; i < n; i++)
			ours[i] = (random = random * 1664525 + 1013904223) >> (n % 4 * 8);
		memcpy(theirs, ours, sizeof(ours));
		d9__sort(ours, n, sizeof(*ours), by_value);
		qsort(theirs, n, sizeof(*theirs), by_value);
		CU_ASSERT_EQUAL(memcmp(ours, theirs, n * sizeof(*ours)), 0);
	}
}

static void test_what_is_in_order_is_only_looked_at(void)
{
	uint8_t items[100];

	for (uint8_t i = 0; i < 100; i++)
		items[i] = i;
	compared = 0;
	d9__sort(items, 100, 1, by_first_byte);
	CU_ASSERT_EQUAL(compared, 99);
}

static const CU_TestInfo tests[] = {
	{ "items of any size come in order, with all their bytes", test_items_of_any_size_come_in_order_with_all_their_bytes },
	{ "the same order as qsort()'s", test_the_same_order_as_qsorts_of_random_numbers_and_repeated_ones },
	{ "what is in order is only looked at", test_what_is_in_order_is_only_looked_at },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("sort", tests);
}
