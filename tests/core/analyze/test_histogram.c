/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/histogram.h"
#include "support/d9_test.h"

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Values over twelve powers of ten, the same in each run. */
static void fill(struct d9__histogram *h, uint64_t *values, size_t n)
{
	uint64_t state = 1;

	for (size_t i = 0; i < n; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		values[i] = (uint64_t)pow(10, (double)(state >> 40) / (double)(1 << 24) * 12);
		CU_ASSERT_EQUAL(d9__histogram_add(h, values[i]), 0);
	}
	qsort(values, n, sizeof(*values), compare);
}

static void test_quantiles_of_many_values_stay_within_the_stated_error(void)
{
	static uint64_t values[20000];
	const size_t n = sizeof(values) / sizeof(values[0]);
	struct d9__histogram h = { 0 };

	fill(&h, values, n);

	for (unsigned q = 1; q <= 1000; q++) {
		uint64_t exact = values[(size_t)ceil(q / 1000.0 * (double)n) - 1];
		uint64_t found = d9__histogram_quantile(&h, q / 1000.0);
		double error = fabs((double)found - (double)exact);

		CU_ASSERT(error <= D9__HISTOGRAM_ERROR * (double)exact);
	}
	d9__histogram_release(&h);
}

static void test_small_values_are_exact(void)
{
	struct d9__histogram h = { 0 };

	for (uint64_t i = 1; i <= 100; i++)
		d9__histogram_add(&h, i);

	CU_ASSERT_EQUAL(d9__histogram_quantile(&h, 0.5), 50);
	CU_ASSERT_EQUAL(d9__histogram_quantile(&h, 0.99), 99);
	d9__histogram_release(&h);
}

static void test_ends_and_sum_are_exact(void)
{
	struct d9__histogram h = { 0 };

	d9__histogram_add(&h, UINT64_MAX);
	d9__histogram_add(&h, 1234567);
	d9__histogram_add(&h, 0);

	CU_ASSERT_EQUAL(h.min, 0);
	CU_ASSERT_EQUAL(h.max, UINT64_MAX);
	CU_ASSERT_EQUAL(d9__histogram_quantile(&h, 1), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__histogram_quantile(&h, 0), 0);
	CU_ASSERT_EQUAL(h.sum, 1234566);
	d9__histogram_release(&h);
}

static void test_empty_histogram_answers_zero(void)
{
	struct d9__histogram h = { 0 };

	CU_ASSERT_EQUAL(d9__histogram_quantile(&h, 0.5), 0);
	CU_ASSERT_EQUAL(d9__histogram_above(&h, 0), 0);
}

static void test_one_value_is_every_quantile(void)
{
	struct d9__histogram h = { 0 };

	d9__histogram_add(&h, 50280303);

	CU_ASSERT_EQUAL(d9__histogram_quantile(&h, 0.5), 50280303);
	CU_ASSERT_EQUAL(d9__histogram_quantile(&h, 0.99), 50280303);
	d9__histogram_release(&h);
}

static void test_merged_histograms_are_as_one(void)
{
	struct d9__histogram a = { 0 }, b = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		d9__histogram_add(i % 2 ? &a : &b, i * i);
	CU_ASSERT_EQUAL(d9__histogram_merge(&a, &b), 0);

	CU_ASSERT_EQUAL(a.count, 1000);
	CU_ASSERT_EQUAL(a.min, 0);
	CU_ASSERT_EQUAL(a.max, 998001);
	CU_ASSERT(llabs((long long)d9__histogram_quantile(&a, 0.5) - 499 * 499) < 1000);
	d9__histogram_release(&a);
	d9__histogram_release(&b);
}

static void test_values_above_a_limit_are_counted(void)
{
	struct d9__histogram h = { 0 };

	for (uint64_t i = 1; i <= 1000; i++)
		d9__histogram_add(&h, i * 1000);

	CU_ASSERT_EQUAL(d9__histogram_above(&h, 0), 1000);
	CU_ASSERT(llabs((long long)d9__histogram_above(&h, 500000) - 500) <= 4);
	CU_ASSERT_EQUAL(d9__histogram_above(&h, 1000000), 0);
	CU_ASSERT_EQUAL(d9__histogram_sum_above(&h, 1000000), 0);
	CU_ASSERT(d9__histogram_sum_above(&h, 0) <= h.sum);
	CU_ASSERT(d9__histogram_sum_above(&h, 500000) > h.sum / 100 * 74);
	CU_ASSERT(d9__histogram_sum_above(&h, 500000) < h.sum / 100 * 76);
	d9__histogram_release(&h);
}

static void test_values_that_are_taken_out_leave_the_others(void)
{
	struct d9__histogram all = { .count = 0 }, some = { .count = 0 };

	for (uint64_t i = 1; i <= 1000; i++)
		CU_ASSERT_EQUAL_FATAL(d9__histogram_add(&all, i * 1000), 0);
	for (uint64_t i = 501; i <= 1000; i++)
		CU_ASSERT_EQUAL_FATAL(d9__histogram_add(&some, i * 1000), 0);
	d9__histogram_subtract(&all, &some);
	CU_ASSERT_EQUAL(all.count, 500);
	CU_ASSERT_EQUAL(all.sum, 500 * 501 / 2 * 1000);
	CU_ASSERT_EQUAL(all.min, 1000);
	CU_ASSERT_DOUBLE_EQUAL((double)all.max, 500000, 500000 * D9__HISTOGRAM_ERROR);
	CU_ASSERT_DOUBLE_EQUAL((double)d9__histogram_quantile(&all, 0.5), 250000, 250000 * D9__HISTOGRAM_ERROR);
	/* Its longest value is still itself where it was not taken out. */
	d9__histogram_release(&some);
	CU_ASSERT_EQUAL_FATAL(d9__histogram_add(&some, 1000), 0);
	CU_ASSERT_EQUAL_FATAL(d9__histogram_add(&all, 777777), 0);
	d9__histogram_subtract(&all, &some);
	CU_ASSERT_EQUAL(all.max, 777777);
	CU_ASSERT_DOUBLE_EQUAL((double)all.min, 2000, 2000 * D9__HISTOGRAM_ERROR);
	d9__histogram_release(&all);
	d9__histogram_release(&some);
}

static const CU_TestInfo tests[] = {
	{ "quantiles of many values stay within the stated error",
	  test_quantiles_of_many_values_stay_within_the_stated_error },
	{ "small values are exact", test_small_values_are_exact },
	{ "ends and sum are exact", test_ends_and_sum_are_exact },
	{ "empty histogram answers zero", test_empty_histogram_answers_zero },
	{ "one value is every quantile", test_one_value_is_every_quantile },
	{ "merged histograms are as one", test_merged_histograms_are_as_one },
	{ "values above a limit are counted", test_values_above_a_limit_are_counted },
	{ "values that are taken out leave the others", test_values_that_are_taken_out_leave_the_others },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("histogram", tests);
}
