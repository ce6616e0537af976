/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "support/d9_test.h"
#include "symbol/intervals.h"
#include "symbol/module_map.h"

static void learn(struct d9__module_map *map, uint32_t binary, uint64_t start, uint64_t end, uint64_t ns, bool unloaded)
{
	struct d9__stay stay = { .base = start, .start = start, .end = end, .from_ns = ns, .binary = binary };

	CU_ASSERT_EQUAL(d9__module_map_learn(map, &stay, unloaded), 0);
}

/* The binary at |address| at |ns|, or -1. */
static int find(struct d9__module_map *map, uint64_t address, uint64_t ns)
{
	const struct d9__stay *stay = d9__module_map_find(map, address, ns);

	return stay ? (int)stay->binary : -1;
}

static void test_address_belongs_to_who_was_there_then(void)
{
	struct d9__module_map map = { 0 };

	learn(&map, 1, 0x1000, 0x3000, 100, false);
	learn(&map, 1, 0x1000, 0x3000, 200, true);
	learn(&map, 2, 0x2000, 0x5000, 300, false);
	learn(&map, 2, 0x2000, 0x5000, 400, true);
	learn(&map, 1, 0x1000, 0x3000, 500, false);

	CU_ASSERT_EQUAL(find(&map, 0x2800, 150), 1);
	CU_ASSERT_EQUAL(find(&map, 0x2800, 350), 2);
	CU_ASSERT_EQUAL(find(&map, 0x2800, 500), 1);
	CU_ASSERT_EQUAL(find(&map, 0x1800, 350), 1);
	CU_ASSERT_EQUAL(find(&map, 0x0fff, 350), -1);
	CU_ASSERT_EQUAL(find(&map, 0x5000, 350), -1);
	d9__module_map_release(&map);
}

static void test_module_is_told_of_a_moment_after_it_is_loaded(void)
{
	struct d9__module_map map = { 0 };

	learn(&map, 1, 0x1000, 0x3000, 100, false);
	CU_ASSERT_EQUAL(find(&map, 0x1000, 1), 1);

	learn(&map, 1, 0x1000, 0x3000, 200, true);
	CU_ASSERT_EQUAL(find(&map, 0x1000, 250), 1);
	learn(&map, 2, 0x1000, 0x3000, 300, false);
	CU_ASSERT_EQUAL(find(&map, 0x1000, 250), 2);
	d9__module_map_release(&map);
}

static void test_what_each_segment_repeats_changes_nothing(void)
{
	struct d9__module_map map = { 0 };

	for (uint64_t ns = 0; ns < 1000; ns++)
		learn(&map, 1, 0x1000, 0x3000, ns, false);
	CU_ASSERT_EQUAL(map.n, 1);
	learn(&map, 1, 0x1000, 0x3000, 2000, true);
	learn(&map, 1, 0x1000, 0x3000, 2000, true);
	learn(&map, 2, 0x9000, 0xa000, 50, true);
	CU_ASSERT_EQUAL(map.n, 2);
	CU_ASSERT_EQUAL(find(&map, 0x9000, 10), 2);
	d9__module_map_release(&map);
}

/* The index against looking at each, with ranges that overlap as they like. */
static void test_index_finds_what_a_look_at_each_finds(void)
{
	enum { N = 3000, MAX = 4000 };
	static uint64_t starts[N], ends[N];
	static size_t found[MAX];
	struct d9__intervals intervals = { 0 };

	srand(1);
	for (size_t i = 0; i < N; i++) {
		starts[i] = (uint64_t)(rand() % 10000);
		ends[i] = starts[i] + (uint64_t)(rand() % (i % 100 ? 50 : 5000));
	}
	CU_ASSERT_EQUAL(d9__intervals_build(&intervals, starts, ends, sizeof(*starts), N), 0);
	for (uint64_t address = 0; address < 16000; address += 7) {
		size_t n = d9__intervals_find(&intervals, address, found, MAX), wanted = 0;

		for (size_t i = 0; i < N; i++)
			wanted += address >= starts[i] && address < ends[i];
		for (size_t i = 0; i < n; i++)
			CU_ASSERT_TRUE(address >= starts[found[i]] && address < ends[found[i]]);
		CU_ASSERT_EQUAL(n, wanted);
	}
	d9__intervals_release(&intervals);
}

static void test_index_without_ranges_finds_nothing(void)
{
	struct d9__intervals intervals = { 0 };
	size_t found[1];

	CU_ASSERT_EQUAL(d9__intervals_find(&intervals, 0, found, 1), 0);
	d9__intervals_release(&intervals);
}

static void test_many_modules_are_found_by_the_index(void)
{
	struct d9__module_map map = { 0 };

	for (uint32_t i = 0; i < 5000; i++) {
		learn(&map, i, 0x10000 * (uint64_t)i, 0x10000 * (uint64_t)i + 0x8000, 10, false);
		if (i % 997 == 0)
			CU_ASSERT_EQUAL(find(&map, 0x10000 * (uint64_t)i + 5, 10), (int)i);
	}
	for (uint32_t i = 0; i < 5000; i += 11) {
		CU_ASSERT_EQUAL(find(&map, 0x10000 * (uint64_t)i + 0x7fff, 20), (int)i);
		CU_ASSERT_EQUAL(find(&map, 0x10000 * (uint64_t)i + 0x8000, 20), -1);
	}
	d9__module_map_release(&map);
}

static const CU_TestInfo tests[] = {
	{ "address belongs to who was there then", test_address_belongs_to_who_was_there_then },
	{ "module is told of a moment after it is loaded", test_module_is_told_of_a_moment_after_it_is_loaded },
	{ "what each segment repeats changes nothing", test_what_each_segment_repeats_changes_nothing },
	{ "index finds what a look at each finds", test_index_finds_what_a_look_at_each_finds },
		{ "index without ranges finds nothing", test_index_without_ranges_finds_nothing },
	{ "many modules are found by the index", test_many_modules_are_found_by_the_index },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("module_map", tests);
}
