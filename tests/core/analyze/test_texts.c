/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "analyze/growth_curve.h"
#include "analyze/metadata.h"
#include "analyze/texts.h"
#include "analyze/worst.h"
#include "support/d9_test.h"

static void test_equal_texts_have_one_number(void)
{
	struct d9__texts texts = { 0 };
	uint32_t first, again, empty;

	CU_ASSERT_EQUAL(d9__texts_number(&texts, "abcd", 3, &first), 0);
	for (char text[8] = "aaa"; text[0] <= 'z'; text[0]++)
		for (text[1] = 'a'; text[1] <= 'z'; text[1]++)
			CU_ASSERT_EQUAL(d9__texts_number(&texts, text, 3, &again), 0);
	CU_ASSERT_EQUAL(d9__texts_number(&texts, "abc", 3, &again), 0);
	CU_ASSERT_EQUAL(d9__texts_number(&texts, "", 0, &empty), 0);

	CU_ASSERT_EQUAL(first, again);
	CU_ASSERT_STRING_EQUAL(texts.items[first], "abc");
	CU_ASSERT_EQUAL(texts.n, 26 * 26 + 2);
	d9__texts_release(&texts);
}

static void test_bounded_list_keeps_the_largest_in_order(void)
{
	uint64_t items[4], *place;
	size_t n = 0;
	bool evicted;

	for (uint64_t i = 0; i < 100; i++) {
		uint64_t value = i * 37 % 101;

		place = d9__worst_place(items, &n, 4, sizeof(items[0]), value, NULL, &evicted);
		if (place)
			*place = value;
	}

	CU_ASSERT_EQUAL(n, 4);
	CU_ASSERT_EQUAL(items[0], 100);
	CU_ASSERT_EQUAL(items[3], 97);
}

static void test_curve_that_rises_all_through_grows(void)
{
	struct d9__growth_curve curve = { 0 };

	for (uint64_t i = 0; i < 10000; i++)
		d9__growth_curve_set(&curve, i * 1000000, (int64_t)i);

	CU_ASSERT_TRUE(d9__growth_curve_grows(&curve, UINT64_C(9999000000), 2));
	CU_ASSERT_FALSE(d9__growth_curve_grows(&curve, UINT64_C(9999000000), 5));
}

static void test_curve_that_levels_off_or_falls_does_not_grow(void)
{
	struct d9__growth_curve level = { 0 }, saw = { 0 };

	for (uint64_t i = 0; i < 10000; i++) {
		d9__growth_curve_set(&level, i * 1000000, i < 3000 ? (int64_t)i : 3000);
		d9__growth_curve_set(&saw, i * 1000000, (int64_t)(i % 2500 + i / 10));
	}

	CU_ASSERT_FALSE(d9__growth_curve_grows(&level, UINT64_C(9999000000), 2));
	CU_ASSERT_FALSE(d9__growth_curve_grows(&saw, UINT64_C(9999000000), 2));
}

static void put(struct d9__metadata *metadata, const char *key, const char *value)
{
	CU_ASSERT_EQUAL(d9__metadata_put(metadata, key, strlen(key), value, strlen(value)), 0);
}

static void test_capabilities_of_all_loops_make_the_coverage(void)
{
	struct d9__metadata metadata = { 0 };

	put(&metadata, "loop.libevent.capabilities",
	    "poll=full,wake=public,lateness=off,task=event");
	CU_ASSERT_EQUAL(d9__metadata_coverage(&metadata, "poll"), D9__COVERAGE_FULL);
	CU_ASSERT_EQUAL(d9__metadata_coverage(&metadata, "task"), D9__COVERAGE_FULL);
	CU_ASSERT_EQUAL(d9__metadata_coverage(&metadata, "wake"), D9__COVERAGE_PARTIAL);
	CU_ASSERT_EQUAL(d9__metadata_coverage(&metadata, "lateness"), D9__COVERAGE_NONE);
	CU_ASSERT_EQUAL(d9__metadata_coverage(&metadata, "ate"), D9__COVERAGE_FULL);
	put(&metadata, "loop.glib.capabilities", "lateness=on");

	CU_ASSERT_EQUAL(d9__metadata_coverage(&metadata, "lateness"), D9__COVERAGE_PARTIAL);
	d9__metadata_release(&metadata);
}

static void test_best_values_of_each_adapter_are_full_coverage(void)
{
	static const char *const lists[] = {
		"poll=full,park=on,wake=full,spawn=on,depth=on,lateness=on",
		"poll=full,park=all,wake=exact,spawn=site,depth=exact,"
		"task_end=destroy+finalize,lateness=on",
	};
	static const char *const keys[] = { "poll",  "park",	 "wake",    "spawn",
					    "depth", "lateness", "task_end" };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct d9__metadata metadata = { 0 };

		put(&metadata, "loop.one.capabilities", lists[i]);
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			CU_ASSERT_EQUAL(d9__metadata_coverage(&metadata, keys[k]),
					D9__COVERAGE_FULL);
		d9__metadata_release(&metadata);
	}
}

static void test_later_metadata_win_and_name_lanes(void)
{
	struct d9__metadata metadata = { 0 };

	put(&metadata, "runtime.web", "1");
	put(&metadata, "runtime.web", "1,12");

	CU_ASSERT_STRING_EQUAL(d9__metadata_value(&metadata, "runtime.web"), "1,12");
	CU_ASSERT_STRING_EQUAL(d9__metadata_group(&metadata, 12), "web");
	CU_ASSERT_PTR_NULL(d9__metadata_group(&metadata, 2));
	d9__metadata_release(&metadata);
}

static const CU_TestInfo tests[] = {
	{ "equal texts have one number", test_equal_texts_have_one_number },
	{ "bounded list keeps the largest in order", test_bounded_list_keeps_the_largest_in_order },
	{ "curve that rises all through grows", test_curve_that_rises_all_through_grows },
	{ "curve that levels off or falls does not grow",
	  test_curve_that_levels_off_or_falls_does_not_grow },
	{ "capabilities of all loops make the coverage",
	  test_capabilities_of_all_loops_make_the_coverage },
	{ "best values of each adapter are full coverage",
	  test_best_values_of_each_adapter_are_full_coverage },
	{ "later metadata win and name lanes", test_later_metadata_win_and_name_lanes },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("texts", tests);
}
