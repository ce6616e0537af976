/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "support/d9_test.h"

static void test_array_grows_by_one_and_keeps_its_elements(void)
{
	uint64_t *items = NULL;
	size_t n = 0;

	while (n < 1000) {
		CU_ASSERT_FATAL(d9__array_grow(items, n));
		items[n] = n * n;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(items[i], i * i);
	d9__free(items);
}

static void test_array_that_lost_elements_grows_again(void)
{
	uint16_t *items = NULL;
	size_t n = 0;

	/* Every length is left behind and reached again: a sanitizer sees a write behind what is allocated. */
	for (size_t most = 1; most < 70; most++) {
		while (n < most) {
			CU_ASSERT_FATAL(d9__array_grow(items, n));
			items[n++] = (uint16_t)most;
		}
		n = most / 2;
	}
	CU_ASSERT_EQUAL(items[0], 2);
	d9__free(items);
}

static void test_array_without_memory_stays_as_it_was(void)
{
	struct large { char bytes[1 << 20]; } *items = NULL;
	char *bytes = NULL;
	size_t capacity = 0;

	CU_ASSERT_FALSE(d9__array_grow(items, SIZE_MAX / 2 + 1));
	CU_ASSERT_PTR_NULL(items);
	CU_ASSERT_FATAL(d9__array_reserve(bytes, &capacity, 0, 3));
	bytes[2] = 'x';
	CU_ASSERT_FALSE(d9__array_reserve(bytes, &capacity, 3, SIZE_MAX - 8));
	CU_ASSERT_EQUAL(bytes[2], 'x');
	CU_ASSERT(capacity >= 3);
	d9__free(bytes);
}

static void test_reserve_gives_room_for_all_that_was_asked_for(void)
{
	uint32_t *items = NULL;
	size_t capacity = 0, n = 0;

	for (size_t more = 1; more < 3000; more *= 3) {
		CU_ASSERT_FATAL(d9__array_reserve(items, &capacity, n, more));
		CU_ASSERT(capacity >= n + more);
		for (size_t i = 0; i < more; i++)
			items[n++] = (uint32_t)more;
	}
	CU_ASSERT_EQUAL(items[0], 1);
	CU_ASSERT_EQUAL(items[n - 1], 2187);
	n = 0;
	CU_ASSERT(d9__array_reserve(items, &capacity, n, 1)); /* emptied: what there is does */
	d9__free(items);
}

static void test_reach_makes_zeros_up_to_the_index(void)
{
	uint16_t *items = NULL;
	size_t n = 0;

	for (size_t index = 0; index < 3000; index = 3 * index / 2 + 1) {
		size_t before = n;

		CU_ASSERT_FATAL(d9__array_reach(items, &n, index));
		CU_ASSERT_EQUAL(n, index + 1);
		for (size_t i = before; i < n; i++)
			CU_ASSERT_EQUAL(items[i], 0);
		memset(items, 0xff, n * sizeof(*items));
	}
	CU_ASSERT(d9__array_reach(items, &n, 0));
	CU_ASSERT_EQUAL(items[0], 0xffff);
	/* An array that d9__array_reach() made grows on by one. */
	for (size_t i = 0; i < 3000; i++) {
		CU_ASSERT_FATAL(d9__array_grow(items, n));
		items[n++] = 1;
	}
	CU_ASSERT_FALSE(d9__array_reach(items, &n, SIZE_MAX / 2));
	CU_ASSERT_EQUAL(items[n - 1], 1);
	d9__free(items);
}

static const CU_TestInfo tests[] = {
	{ "an array grows by one and keeps its elements", test_array_grows_by_one_and_keeps_its_elements },
	{ "an array that lost elements grows again", test_array_that_lost_elements_grows_again },
	{ "an array without memory stays as it was", test_array_without_memory_stays_as_it_was },
	{ "reserve gives room for all that was asked for", test_reserve_gives_room_for_all_that_was_asked_for },
	{ "reach makes zeros up to the index", test_reach_makes_zeros_up_to_the_index },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("array", tests);
}
