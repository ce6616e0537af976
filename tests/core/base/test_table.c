/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/table.h"

#include "base/hash.h"
#include "support/d9_test.h"

static void test_entries_survive_the_removal_of_their_neighbours(void)
{
	struct d9__table table = { 0 };
	static char values[5000];
	size_t left = 0;
	void *value;

	for (uint64_t i = 0; i < 5000; i++)
		CU_ASSERT_EQUAL(d9__table_add(&table, i * 4096, &values[i]), 0);
	for (uint64_t i = 0; i < 5000; i += 2)
		d9__table_remove(&table, i * 4096);

	for (uint64_t i = 0; i < 5000; i++)
		CU_ASSERT_PTR_EQUAL(d9__table_find(&table, i * 4096), i % 2 ? &values[i] : NULL);
	for (size_t place = 0; (place = d9__table_next(&table, place, &value));)
		left++;
	CU_ASSERT_EQUAL(left, 2500);
	d9__table_release(&table);
}

static void test_empty_table_finds_and_removes_nothing(void)
{
	struct d9__table table = { 0 };
	void *value;

	d9__table_remove(&table, 1);

	CU_ASSERT_PTR_NULL(d9__table_find(&table, 1));
	CU_ASSERT_EQUAL(d9__table_next(&table, 0, &value), 0);
}

static void test_numbers_0_and_the_largest_are_keys_like_others(void)
{
	struct d9__table table = { 0 };
	static char none, most;

	CU_ASSERT_EQUAL(d9__table_add(&table, 0, &none), 0);
	CU_ASSERT_PTR_NULL(d9__table_find(&table, UINT64_MAX));
	CU_ASSERT_EQUAL(d9__table_add(&table, UINT64_MAX, &most), 0);

	CU_ASSERT_PTR_EQUAL(d9__table_find(&table, 0), &none);
	CU_ASSERT_PTR_EQUAL(d9__table_find(&table, UINT64_MAX), &most);
	d9__table_remove(&table, 0);
	CU_ASSERT_PTR_NULL(d9__table_find(&table, 0));
	CU_ASSERT_EQUAL(table.n, 1);
	d9__table_release(&table);
}

static void test_table_that_was_released_is_empty_and_can_be_filled_again(void)
{
	struct d9__table table = { 0 };
	static char first, second;

	CU_ASSERT_EQUAL(d9__table_add(&table, 1, &first), 0);
	d9__table_release(&table);

	CU_ASSERT_PTR_NULL(d9__table_find(&table, 1));
	CU_ASSERT_EQUAL(d9__table_add(&table, 1, &second), 0);
	CU_ASSERT_PTR_EQUAL(d9__table_find(&table, 1), &second);
	d9__table_release(&table);
}

static void test_texts_serve_as_keys_by_their_hash(void)
{
	char again[] = "service/day";

	CU_ASSERT_EQUAL(d9__hash_text("service/day"), d9__hash_text(again));
	CU_ASSERT_NOT_EQUAL(d9__hash_text("service/day"), d9__hash_text("service/dax"));
	CU_ASSERT_NOT_EQUAL(d9__hash_text(""), d9__hash_text("a"));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "entries survive the removal of their neighbours",
		  test_entries_survive_the_removal_of_their_neighbours },
		{ "an empty table finds and removes nothing",
		  test_empty_table_finds_and_removes_nothing },
		{ "0 and the largest number are keys like others",
		  test_numbers_0_and_the_largest_are_keys_like_others },
		{ "a table that was released is empty and can be filled again",
		  test_table_that_was_released_is_empty_and_can_be_filled_again },
		{ "texts serve as keys by their hash", test_texts_serve_as_keys_by_their_hash },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("table", tests);
}
