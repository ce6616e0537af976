/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of allocations, sites, and which of them grow. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/heap.h"
#include "support/d9_test.h"

static void put(struct d9__heap *heap, uint64_t ns, uint64_t address, uint64_t size, uint64_t from)
{
	const uint64_t addresses[] = { from, 0x9000 };
	const struct d9__heap_alloc alloc = { .ns = ns, .size = size, .address = address, .addresses = addresses, .n = 2 };

	CU_ASSERT_EQUAL(d9__heap_alloc(heap, &alloc), 0);
}

static const struct d9__heap_site *site_at(const struct d9__heap_site *sites, size_t n, uint64_t from)
{
	for (size_t i = 0; i < n; i++)
		if (sites[i].stack->addresses[0] == from)
			return &sites[i];
	return NULL;
}

static void test_a_sample_stands_for_as_many_as_its_size_says(void)
{
	struct d9__heap_sum big = d9__heap_weigh(1 << 30, 4096), small = d9__heap_weigh(16, 524288);
	struct d9__heap_sum all = d9__heap_weigh(7, 1);

	CU_ASSERT_DOUBLE_EQUAL(big.bytes, 1 << 30, 1);
	CU_ASSERT_DOUBLE_EQUAL(big.count, 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(small.bytes, 524288 + 8, 1);
	CU_ASSERT_DOUBLE_EQUAL(small.count, 32768.5, 1);
	CU_ASSERT_DOUBLE_EQUAL(all.bytes, 7, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(all.count, 1, 1e-9);
}

static void test_a_sample_has_its_own_rate_or_the_one_told_last(void)
{
	const struct d9__heap_alloc coarse = { .ns = 10, .size = 16, .rate = 4096 };
	struct d9__heap heap = { .rate = 1 };

	put(&heap, 9, 0, 16, 0x1000);
	CU_ASSERT_DOUBLE_EQUAL(heap.allocated.bytes, 16, 1e-9);
	CU_ASSERT_EQUAL(d9__heap_alloc(&heap, &coarse), 0);
	CU_ASSERT_DOUBLE_EQUAL(heap.allocated.bytes, 16 + 4096 + 8, 1);
	put(&heap, 11, 0, 16, 0x1000);
	CU_ASSERT_DOUBLE_EQUAL(heap.allocated.bytes, 16 + 2 * (4096 + 8), 1);
	d9__heap_release(&heap);
}

static void test_without_a_rate_the_originals_default_holds(void)
{
	struct d9__heap heap = { 0 };

	put(&heap, 10, 0, 16, 0x1000);
	CU_ASSERT_DOUBLE_EQUAL(heap.allocated.bytes, 524288 + 8, 1);
	CU_ASSERT_FALSE(heap.followed);
	d9__heap_release(&heap);
}

static void test_a_free_ends_the_allocation_with_its_time(void)
{
	struct d9__heap heap = { .rate = 1 };

	put(&heap, 10, 0x100, 16, 0x1000);
	d9__heap_free(&heap, 20, 0x100, 9); /* of one before the trace, at the same address */
	CU_ASSERT_EQUAL(heap.live.samples, 1);
	d9__heap_free(&heap, 21, 0x100, 10);
	CU_ASSERT_EQUAL(heap.live.samples, 0);
	CU_ASSERT_EQUAL(heap.frees, 1);
	/* A lost free: the address comes again. */
	put(&heap, 30, 0x100, 16, 0x1000);
	put(&heap, 40, 0x100, 24, 0x1000);
	CU_ASSERT_EQUAL(heap.live.samples, 1);
	CU_ASSERT_DOUBLE_EQUAL(heap.live.bytes, 24, 1e-9);
	d9__heap_release(&heap);
}

/* Three places for 3,000 ns: one leaks one block in ten, one keeps its last hundred, one allocates at the start only. */
static void fill(struct d9__heap *heap)
{
	for (uint64_t i = 1; i <= 3000; i++) {
		put(heap, 10 * i, 0x100000 + 64 * i, 100, 0x1000);
		if (i % 10)
			d9__heap_free(heap, 10 * i + 1, 0x100000 + 64 * i, 10 * i);
		put(heap, 10 * i + 2, 0x200000 + 64 * i, 100, 0x2000);
		if (i > 100)
			d9__heap_free(heap, 10 * i + 3, 0x200000 + 64 * (i - 100), 10 * (i - 100) + 2);
		if (i <= 200)
			put(heap, 10 * i + 4, 0x300000 + 64 * i, 100, 0x3000);
	}
}

static void test_only_what_was_allocated_all_along_and_stays_grows(void)
{
	struct d9__heap heap = { .rate = 1 };
	struct d9__heap_site *sites;
	size_t n;

	fill(&heap);
	sites = d9__heap_sites(&heap, NULL, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sites);
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_TRUE(d9__heap_site_grows(&heap, site_at(sites, n, 0x1000)));
	CU_ASSERT_FALSE(d9__heap_site_grows(&heap, site_at(sites, n, 0x2000)));
	CU_ASSERT_FALSE(d9__heap_site_grows(&heap, site_at(sites, n, 0x3000)));
	CU_ASSERT_EQUAL(site_at(sites, n, 0x1000)->live.samples, 300);
	CU_ASSERT_EQUAL(site_at(sites, n, 0x1000)->allocated.samples, 3000);
	/* Most live bytes first. */
	CU_ASSERT_PTR_EQUAL(&sites[0], site_at(sites, n, 0x1000));
	free(sites);
	d9__heap_release(&heap);
}

static void test_a_site_is_the_innermost_function_of_the_program(void)
{
	struct d9__heap heap = { .rate = 1 };
	struct d9__heap_site *sites;
	void *item;
	size_t n;

	put(&heap, 10, 0x100, 16, 0x1000);
	put(&heap, 11, 0x200, 16, 0x2000);
	for (size_t place = 0; (place = d9__table_next(&heap.stacks, place, &item));) {
		struct d9__heap_stack *stack = item;

		stack->names = calloc(2, sizeof(*stack->names));
		CU_ASSERT_PTR_NOT_NULL_FATAL(stack->names);
		stack->names[0] = stack->addresses[0] == 0x1000
					  ? (struct d9__frame_name){ "strdup", NULL, "libc.so.6", 0, true }
					  : (struct d9__frame_name){ "std::vector<int>::reserve", "vector.tcc", "prog", 70, true };
		stack->names[1] = (struct d9__frame_name){ "keep", "a.c", "prog", 12, true };
	}
	sites = d9__heap_sites(&heap, "/usr/bin/prog", &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sites);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_STRING_EQUAL(d9__heap_site_name(&sites[0]).text, "keep (a.c:12)");
	CU_ASSERT_EQUAL(sites[0].live.samples, 2);
	free(sites);
	d9__heap_release(&heap);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a sample stands for as many as its size says", test_a_sample_stands_for_as_many_as_its_size_says },
		{ "a sample has its own rate, or the one told last", test_a_sample_has_its_own_rate_or_the_one_told_last },
		{ "without a rate the original's default holds", test_without_a_rate_the_originals_default_holds },
		{ "a free ends the allocation with its time", test_a_free_ends_the_allocation_with_its_time },
		{ "only what was allocated all along, and stays, grows",
		  test_only_what_was_allocated_all_along_and_stays_grows },
		{ "a site is the innermost function of the program", test_a_site_is_the_innermost_function_of_the_program },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("heap", tests);
}
