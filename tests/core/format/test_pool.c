/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "format/pool.h"
#include "support/d9_test.h"

static void test_pool_finds_what_was_added_and_nothing_else(void)
{
	struct d9__pool pool = { 0 };

	CU_ASSERT_PTR_NULL(d9__pool_find(&pool, 0));
	for (uint32_t id = 0; id < 10000; id++)
		CU_ASSERT_EQUAL(d9__pool_add(&pool, id * 3, "x", id, UINT64_MAX), 0);

	for (uint32_t id = 0; id < 10000; id++) {
		const struct d9__pool_entry *entry = d9__pool_find(&pool, id * 3);

		CU_ASSERT_FATAL(entry != NULL);
		CU_ASSERT_EQUAL(entry->n, id);
		CU_ASSERT_PTR_NULL(d9__pool_find(&pool, id * 3 + 1));
	}
	d9__pool_release(&pool);
}

static void test_small_ids_stand_where_their_number_says_whatever_comes_first(void)
{
	struct d9__pool pool = { 0 };

	d9__pool_add(&pool, UINT32_MAX, "large", 5, UINT64_MAX);
	for (uint32_t id = 256; id < 300; id++)
		CU_ASSERT_EQUAL(d9__pool_add(&pool, id, "small", id, UINT64_MAX), 0);

	for (uint32_t id = 256; id < 300; id++)
		CU_ASSERT_EQUAL(pool.entries[id].n, id);
	CU_ASSERT_EQUAL(d9__pool_find(&pool, UINT32_MAX)->n, 5);
	CU_ASSERT_EQUAL(pool.capacity, 512);
	d9__pool_release(&pool);
}

static void test_pool_keeps_the_first_definition_of_an_id(void)
{
	struct d9__pool pool = { 0 };

	d9__pool_add(&pool, UINT32_MAX, "first", 5, UINT64_MAX);
	d9__pool_add(&pool, UINT32_MAX, "second", 6, UINT64_MAX);

	CU_ASSERT_EQUAL(d9__pool_find(&pool, UINT32_MAX)->n, 5);
	d9__pool_release(&pool);
}

static void test_pool_that_was_reset_is_empty_also_when_generations_wrap(void)
{
	struct d9__pool pool = { 0 };

	d9__pool_add(&pool, 1, "x", 1, UINT64_MAX);
	pool.generation = UINT32_MAX;
	d9__pool_reset(&pool);
	CU_ASSERT_PTR_NULL(d9__pool_find(&pool, 1));
	d9__pool_add(&pool, 2, "y", 1, UINT64_MAX);

	CU_ASSERT_PTR_NULL(d9__pool_find(&pool, 1));
	CU_ASSERT_PTR_NOT_NULL(d9__pool_find(&pool, 2));
	d9__pool_release(&pool);
}

static void test_pool_refuses_to_grow_over_its_limit(void)
{
	struct d9__pool pool = { 0 };
	int err = 0;

	for (uint32_t id = 0; !err && id < 100000; id++)
		err = d9__pool_add(&pool, id * 7919, "x", 1, 100000);

	CU_ASSERT_EQUAL(err, -EFBIG);
	CU_ASSERT(pool.capacity * sizeof(*pool.entries) <= 100000);
	d9__pool_release(&pool);
}

static void test_arena_gives_aligned_pieces_that_do_not_overlap(void)
{
	struct d9__arena arena = { 0 };
	uint8_t *pieces[500];

	for (size_t i = 0; i < 500; i++) {
		pieces[i] = d9__arena_alloc(&arena, i * 7);
		CU_ASSERT_FATAL(pieces[i] != NULL);
		CU_ASSERT_EQUAL((uintptr_t)pieces[i] % 8, 0);
		memset(pieces[i], (int)i, i * 7);
	}

	for (size_t i = 1; i < 500; i++)
		CU_ASSERT(pieces[i][0] == (uint8_t)i && pieces[i][i * 7 - 1] == (uint8_t)i);
	d9__arena_release(&arena);
}

static void test_arena_after_a_reset_gives_the_same_memory_again(void)
{
	struct d9__arena arena = { 0 };
	void *first = d9__arena_alloc(&arena, 100);

	d9__arena_reset(&arena);

	CU_ASSERT_PTR_EQUAL(d9__arena_alloc(&arena, 100), first);
	CU_ASSERT_EQUAL(arena.given_bytes, 104);
	d9__arena_release(&arena);
}

static void test_arena_does_not_hold_on_to_a_giant_block(void)
{
	struct d9__arena arena = { 0 };

	CU_ASSERT_PTR_NOT_NULL(d9__arena_alloc(&arena, (size_t)8 << 20));
	d9__arena_reset(&arena);

	CU_ASSERT_PTR_NULL(arena.blocks);
	CU_ASSERT_PTR_NOT_NULL(d9__arena_alloc(&arena, 0));
	CU_ASSERT_PTR_NULL(d9__arena_alloc(&arena, SIZE_MAX - 4));
	d9__arena_release(&arena);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "finds what was added and nothing else",
		  test_pool_finds_what_was_added_and_nothing_else },
		{ "small ids stand where their number says, whatever comes first",
		  test_small_ids_stand_where_their_number_says_whatever_comes_first },
		{ "keeps the first definition of an id",
		  test_pool_keeps_the_first_definition_of_an_id },
		{ "that was reset is empty, also when generations wrap",
		  test_pool_that_was_reset_is_empty_also_when_generations_wrap },
		{ "refuses to grow over its limit", test_pool_refuses_to_grow_over_its_limit },
		{ "arena gives aligned pieces that do not overlap",
		  test_arena_gives_aligned_pieces_that_do_not_overlap },
		{ "arena after a reset gives the same memory again",
		  test_arena_after_a_reset_gives_the_same_memory_again },
		{ "arena does not hold on to a giant block",
		  test_arena_does_not_hold_on_to_a_giant_block },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("pool", tests);
}
