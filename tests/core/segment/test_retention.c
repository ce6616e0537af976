/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include <string.h>

#include "segment/retention.h"
#include "support/d9_test.h"

#define MIB (UINT64_C(1) << 20)

static void test_retention_evicts_the_oldest_until_an_active_file_fits(void)
{
	struct d9__retention ret;
	struct d9__family victim = { 0 };
	uint64_t gone = 0;

	d9__retention_init(&ret, 10 * MIB, 2 * MIB, 1);
	for (uint64_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(d9__retention_add(&ret, 0, i, 2 * MIB, i), 0);
	while (d9__retention_victim(&ret, &victim)) {
		CU_ASSERT_EQUAL(victim.index, gone);
		d9__retention_remove(&ret, &victim, true);
		gone++;
	}

	CU_ASSERT_EQUAL(gone, 2);
	CU_ASSERT_EQUAL(ret.bytes, 8 * MIB);
	CU_ASSERT_EQUAL(ret.evicted_bytes, 4 * MIB);
	CU_ASSERT_EQUAL(ret.next_index, 6);
	d9__retention_release(&ret);
}

static void test_retention_lets_the_dead_go_before_the_living(void)
{
	struct d9__retention ret;
	struct d9__family victim = { 0 };

	d9__retention_init(&ret, 4 * MIB, MIB, 1);
	d9__retention_add(&ret, 0, 0, MIB, 1);
	d9__retention_add(&ret, 2, 7, MIB, 300);
	d9__retention_add(&ret, 1, 9, MIB, 200);
	d9__retention_add(&ret, 0, 1, MIB, 2);

	CU_ASSERT_FATAL(d9__retention_victim(&ret, &victim));
	CU_ASSERT_EQUAL(victim.peer, 1);
	d9__retention_remove(&ret, &victim, true);
	CU_ASSERT_FALSE(d9__retention_victim(&ret, &victim));
	d9__retention_release(&ret);
}

static void test_retention_spares_the_dead_while_a_shipper_has_them(void)
{
	struct d9__retention ret;
	struct d9__retained_dump dump;
	struct d9__family victim = { 0 };

	d9__retention_init(&ret, 4 * MIB, MIB, 1);
	ret.dump_budget = 1;
	ret.spares_peers = true;
	for (uint64_t i = 0; i < 5; i++)
		d9__retention_add(&ret, 1, i, MIB, 100);
	d9__retention_add_dump(&ret, 1, "A", (uint64_t[]){ 0 }, 1);
	d9__retention_leave(&ret, 1, 0);
	d9__retention_add(&ret, 0, 0, 3 * MIB, 1);
	CU_ASSERT_FALSE(d9__retention_victim(&ret, &victim));
	d9__retention_add(&ret, 0, 1, MIB, 2);

	CU_ASSERT_FATAL(d9__retention_victim(&ret, &victim));
	CU_ASSERT_EQUAL(victim.peer, 0);
	CU_ASSERT_EQUAL(victim.index, 0);
	/* Dumps, too: of ours the newest stays. */
	d9__retention_add_dump(&ret, 0, "B", (uint64_t[]){ 0 }, 1);
	CU_ASSERT_FALSE(d9__retention_take_dump(&ret, &dump));
	d9__retention_add_dump(&ret, 0, "C", (uint64_t[]){ 1 }, 1);
	d9__retention_leave(&ret, 0, 0);
	CU_ASSERT_FATAL(d9__retention_take_dump(&ret, &dump));
	CU_ASSERT_STRING_EQUAL(dump.id, "B");
	free(dump.segments);
	/* It is gone. */
	ret.spares_peers = false;
	CU_ASSERT_FATAL(d9__retention_victim(&ret, &victim));
	CU_ASSERT_EQUAL(victim.peer, 1);
	d9__retention_release(&ret);
}

static void test_retention_counts_all_files_of_a_family_as_one(void)
{
	struct d9__retention ret;

	d9__retention_init(&ret, MIB, MIB / 4, 1);
	d9__retention_add(&ret, 0, 41, 1000, 1);
	d9__retention_add(&ret, 0, 41, 200, 1);

	CU_ASSERT_EQUAL(ret.n, 1);
	CU_ASSERT_EQUAL(ret.bytes, 1200);
	CU_ASSERT_EQUAL(ret.next_index, 42);
	d9__retention_release(&ret);
}

static void test_retention_rotates_by_size_and_by_age_of_real_events(void)
{
	struct d9__retention ret;

	d9__retention_init(&ret, 10 * MIB, MIB, 1000);

	CU_ASSERT_FALSE(d9__retention_full(&ret, MIB - 1));
	CU_ASSERT(d9__retention_full(&ret, MIB));
	CU_ASSERT_FALSE(d9__retention_aged(&ret, 500, 1499, true));
	CU_ASSERT(d9__retention_aged(&ret, 500, 1500, true));
	CU_ASSERT_FALSE(d9__retention_aged(&ret, 500, 9999, false));
	CU_ASSERT_FALSE(d9__retention_aged(&ret, 500, 400, true));
}

static void test_dumps_have_a_budget_beside_the_traces(void)
{
	struct d9__retention ret;
	struct d9__retained_dump dump;
	struct d9__family victim;

	d9__retention_init(&ret, 4 * MIB, MIB, 1);
	ret.dump_budget = 2 * MIB;
	for (uint64_t i = 0; i < 4; i++)
		d9__retention_add(&ret, 0, i, MIB, i);
	CU_ASSERT_EQUAL(d9__retention_add_dump(&ret, 0, "B", (uint64_t[]){ 1, 2 }, 2), 0);
	CU_ASSERT_EQUAL(d9__retention_add_dump(&ret, 0, "A", (uint64_t[]){ 0, 1, 9 }, 3), 0);
	/* A segment that the trace evicts is kept for dumps as long as one lists it. */
	CU_ASSERT_FATAL(d9__retention_victim(&ret, &victim));
	CU_ASSERT_EQUAL(victim.index, 0);
	CU_ASSERT_EQUAL(victim.dumps, 1);
	for (uint64_t i = 0; i < 3; i++)
		d9__retention_leave(&ret, 0, i);
	d9__retention_leave(&ret, 0, 2);
	CU_ASSERT_EQUAL(ret.bytes, MIB);
	CU_ASSERT_EQUAL(ret.dump_bytes, 3 * MIB);
	CU_ASSERT_FALSE(d9__retention_victim(&ret, &victim));
	/* The oldest goes with what is no younger one's. */
	CU_ASSERT_FATAL(d9__retention_take_dump(&ret, &dump));
	CU_ASSERT_STRING_EQUAL(dump.id, "A");
	CU_ASSERT_EQUAL(dump.n, 3);
	CU_ASSERT(d9__retention_is_left(&ret, 0, 0, &victim));
	CU_ASSERT_FALSE(d9__retention_is_left(&ret, 0, 1, &victim));
	CU_ASSERT_FALSE(d9__retention_is_left(&ret, 0, 3, &victim));
	CU_ASSERT_FALSE(d9__retention_is_left(&ret, 0, 9, &victim));
	CU_ASSERT(d9__retention_is_left(&ret, 0, 0, &victim));
	d9__retention_remove(&ret, &victim, true);
	free(dump.segments);
	CU_ASSERT_EQUAL(ret.dump_bytes, 2 * MIB);
	/* The newest stays, however large it is. */
	ret.dump_budget = 1;
	CU_ASSERT_FALSE(d9__retention_take_dump(&ret, &dump));
	d9__retention_release(&ret);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "the oldest go first", test_retention_evicts_the_oldest_until_an_active_file_fits },
		{ "the dead go first", test_retention_lets_the_dead_go_before_the_living },
		{ "the dead are a shipper's", test_retention_spares_the_dead_while_a_shipper_has_them },
		{ "a family is one", test_retention_counts_all_files_of_a_family_as_one },
		{ "size and age", test_retention_rotates_by_size_and_by_age_of_real_events },
		{ "dumps have a budget beside the trace's", test_dumps_have_a_budget_beside_the_traces },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("retention", tests);
}
