/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/merge.h"

#include <stdlib.h>

#include "support/d9_test.h"

static uint64_t random_of(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void test_merge_gives_items_by_time_and_equal_times_by_order(void)
{
	struct d9__merge merge = { 0 };
	uint64_t seed = 1, last_time = 0, last_order = 0;

	for (uint64_t i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(
			d9__merge_push(&merge,
				       (struct d9__merge_item) { random_of(&seed) % 50, i, NULL }),
			0);

	for (size_t n = 1000; n > 0; n--) {
		struct d9__merge_item top = *d9__merge_top(&merge);

		CU_ASSERT(top.time_ns > last_time ||
			  (top.time_ns == last_time && (n == 1000 || top.order > last_order)));
		last_time = top.time_ns;
		last_order = top.order;
		d9__merge_pop(&merge);
	}
	CU_ASSERT_PTR_NULL(d9__merge_top(&merge));
	d9__merge_release(&merge);
}

static void test_merge_of_runs_that_advance_stays_in_order(void)
{
	struct d9__merge merge = { 0 };
	uint64_t seed = 7, last = 0;

	for (uint64_t i = 0; i < 33; i++)
		d9__merge_push(&merge, (struct d9__merge_item) { i, i, NULL });

	for (int i = 0; i < 20000; i++) {
		struct d9__merge_item *top = d9__merge_top(&merge);

		CU_ASSERT(top->time_ns >= last);
		last = top->time_ns;
		top->time_ns += random_of(&seed) % 100;
		d9__merge_settle(&merge);
	}
	d9__merge_release(&merge);
}

/* Offsets number the entries, so that what became of equal times can be seen. */
static void check_sorted(struct d9__index_entry *entries, size_t n)
{
	struct d9__index_entry *scratch = malloc((n + 1) * sizeof(*scratch));

	d9__index_sort(entries, n, scratch);
	for (size_t i = 1; i < n; i++)
		if (entries[i].time_ns < entries[i - 1].time_ns ||
		    (entries[i].time_ns == entries[i - 1].time_ns &&
		     entries[i].offset < entries[i - 1].offset))
			CU_FAIL("out of order");
	free(scratch);
}

static void test_index_sort_is_stable_for_any_disorder(void)
{
	static const uint64_t ranges[] = { 1, 2, 10, 1000, 1u << 30 };
	struct d9__index_entry entries[999];
	uint64_t seed = 3;

	for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
		for (size_t n = 0; n <= 999; n = n * 2 + 1) {
			for (size_t i = 0; i < n; i++)
				entries[i] =
					(struct d9__index_entry) { random_of(&seed) % ranges[r],
								   i };
			check_sorted(entries, n);
		}
	}
}

/* Wakes: each is told behind events that came after it, a few or half the batch. */
static void test_index_sort_is_stable_where_some_are_told_late(void)
{
	static const uint64_t back[] = { 1, 3, 40, 3000 };
	struct d9__index_entry entries[6000];
	uint64_t seed = 5;

	for (size_t b = 0; b < sizeof(back) / sizeof(back[0]); b++) {
		for (uint64_t i = 0; i < 6000; i++) {
			uint64_t ns = i / 2 + 3000;

			if (random_of(&seed) % 3 == 0)
				ns -= random_of(&seed) % (back[b] + 1);
			entries[i] = (struct d9__index_entry) { ns, i };
		}
		check_sorted(entries, 6000);
	}
}

static void test_index_sort_of_times_that_only_fall(void)
{
	struct d9__index_entry entries[500];

	for (size_t i = 0; i < 500; i++)
		entries[i] = (struct d9__index_entry) { 500 - i, i };

	check_sorted(entries, 500);
	CU_ASSERT_EQUAL(entries[0].offset, 499);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "gives items by time, and equal times by order",
		  test_merge_gives_items_by_time_and_equal_times_by_order },
		{ "of runs that advance stays in order",
		  test_merge_of_runs_that_advance_stays_in_order },
		{ "index sort is stable for any disorder",
		  test_index_sort_is_stable_for_any_disorder },
		{ "index sort is stable where some are told late",
		  test_index_sort_is_stable_where_some_are_told_late },
		{ "index sort of times that only fall", test_index_sort_of_times_that_only_fall },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("merge", tests);
}
