/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/breaker.h"
#include "support/d9_test.h"

#define SECOND UINT64_C(1000000000)

static void test_breaker_doubles_from_a_second_to_five_minutes(void)
{
	static const uint64_t longest[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300 };
	struct d9__breaker breaker = { 0 };
	uint64_t now_ns = SECOND;

	for (size_t i = 0; i < sizeof(longest) / sizeof(longest[0]); i++) {
		/* The largest that a random number can make of it. */
		d9__breaker_fail(&breaker, now_ns, 0, longest[i] * SECOND);
		CU_ASSERT_EQUAL(breaker.until_ns, now_ns + longest[i] * SECOND);
		now_ns = breaker.until_ns;
	}
}

static void test_breaker_waits_any_part_of_that(void)
{
	struct d9__breaker breaker = { 0 };

	d9__breaker_fail(&breaker, SECOND, 0, 0);
	CU_ASSERT_EQUAL(breaker.until_ns, SECOND);
	d9__breaker_fail(&breaker, SECOND, 0, 7 + 3 * (2 * SECOND + 1));
	CU_ASSERT_EQUAL(breaker.until_ns, SECOND + 7);
}

static void test_breaker_allows_none_then_one_then_all(void)
{
	struct d9__breaker breaker = { 0 };

	CU_ASSERT_EQUAL(d9__breaker_allows(&breaker, 0, 4), 4);
	d9__breaker_fail(&breaker, SECOND, 0, SECOND / 2);
	CU_ASSERT_EQUAL(d9__breaker_allows(&breaker, breaker.until_ns - 1, 4), 0);
	CU_ASSERT_EQUAL(d9__breaker_allows(&breaker, breaker.until_ns, 4), 1);
	d9__breaker_succeed(&breaker);
	CU_ASSERT_EQUAL(d9__breaker_allows(&breaker, 0, 4), 4);
}

static void test_breaker_obeys_the_store_up_to_five_minutes(void)
{
	struct d9__breaker breaker = { 0 };

	d9__breaker_fail(&breaker, 0, 30, 0);
	CU_ASSERT_EQUAL(breaker.until_ns, 30 * SECOND);
	d9__breaker_succeed(&breaker);
	d9__breaker_fail(&breaker, 0, 3600, 0);
	CU_ASSERT_EQUAL(breaker.until_ns, 300 * SECOND);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "doubling", test_breaker_doubles_from_a_second_to_five_minutes },
		{ "jitter", test_breaker_waits_any_part_of_that },
		{ "none, one, all", test_breaker_allows_none_then_one_then_all },
		{ "Retry-After", test_breaker_obeys_the_store_up_to_five_minutes },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("breaker", tests);
}
