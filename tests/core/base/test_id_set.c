/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include "base/id_set.h"
#include "support/d9_test.h"

static int sum_up(void *arg, uint64_t id)
{
	*(uint64_t *)arg += id;
	return 0;
}

static int refuse(void *arg, uint64_t id)
{
	(void)arg;
	return id ? -EIO : 0;
}

static void test_set_holds_what_was_added_and_nothing_else(void)
{
	static const uint64_t ids[] = { 0, 1, 63, 64, 2047, 2048, UINT64_C(1) << 40, UINT64_MAX };
	struct d9__id_set set = { 0 };

	CU_ASSERT_FALSE(d9__id_set_has(&set, 0));
	for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		CU_ASSERT_FALSE(d9__id_set_has(&set, ids[i]));
		CU_ASSERT_EQUAL(d9__id_set_add(&set, ids[i]), 0);
		CU_ASSERT_EQUAL(d9__id_set_add(&set, ids[i]), 0);
		CU_ASSERT(d9__id_set_has(&set, ids[i]));
		CU_ASSERT_EQUAL(set.n, i + 1);
	}
	CU_ASSERT_FALSE(d9__id_set_has(&set, 2));
	CU_ASSERT_FALSE(d9__id_set_has(&set, UINT64_MAX - 1));
	CU_ASSERT(d9__id_set_remove(&set, 64));
	CU_ASSERT_FALSE(d9__id_set_remove(&set, 64));
	CU_ASSERT_FALSE(d9__id_set_has(&set, 64));
	CU_ASSERT(d9__id_set_has(&set, 63));
	d9__id_set_release(&set);
}

/* Ids of one page, of a thousand that grow the table, and each of them once. */
static void test_all_are_visited_once_or_until_an_error(void)
{
	struct d9__id_set set = { 0 };
	uint64_t sum = 0, want = 0;

	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t id = i % 2 ? i : i * 5000;

		CU_ASSERT_EQUAL(d9__id_set_add(&set, id), 0);
		want += id;
	}
	CU_ASSERT_EQUAL(set.n, 5000);
	CU_ASSERT_EQUAL(d9__id_set_each(&set, sum_up, &sum), 0);
	CU_ASSERT_EQUAL(sum, want);
	CU_ASSERT_EQUAL(d9__id_set_each(&set, refuse, NULL), -EIO);
	d9__id_set_release(&set);
}

static void test_memory_is_bounded_however_the_ids_lie(void)
{
	struct d9__id_set set = { 0 };
	uint64_t i = 0;

	while (i <= D9__ID_PAGES_MAX && !d9__id_set_add(&set, i * D9__ID_PAGE_BITS))
		i++;
	CU_ASSERT_EQUAL(i, D9__ID_PAGES_MAX);
	CU_ASSERT_EQUAL(d9__id_set_add(&set, 1), 0);
	d9__id_set_release(&set);
}

static const CU_TestInfo tests[] = {
	{ "set holds what was added, and nothing else", test_set_holds_what_was_added_and_nothing_else },
	{ "all are visited, once or until an error", test_all_are_visited_once_or_until_an_error },
	{ "memory is bounded, however the ids lie", test_memory_is_bounded_however_the_ids_lie },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("id set", tests);
}
