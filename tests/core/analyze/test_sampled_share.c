/* SPDX-License-Identifier: Apache-2.0 */
/* Which share of the process's CPU time samples stand for. */
#include "config.h"

#include "analyze/analysis.h"
#include "support/d9_test.h"

static struct d9__analysis a;

/* At |ms| the process had used |cpu_ms|, the recorder |recorder_ms| of it. */
static void use(uint64_t ms, uint64_t cpu_ms, uint64_t recorder_ms)
{
	const uint64_t values[D9__USAGE_FIELDS] = { [D9__USAGE_USER_NS] = cpu_ms * D9__MS_NS };

	d9__usage_add(&a.usage, ms * D9__MS_NS, values, recorder_ms * D9__MS_NS);
}

static void begin(uint64_t samples)
{
	a = (struct d9__analysis) { .samples = { .on = samples, .period_ns = 10 * D9__MS_NS } };
}

static void test_the_recorders_own_time_and_what_was_used_before_it_do_not_count(void)
{
	begin(90);
	use(0, 5000, 0);
	use(1000, 5700, 200);
	use(2000, 6500, 500);
	CU_ASSERT_DOUBLE_EQUAL(d9__analysis_sampled_share(&a), 0.9, 0.001);
	/* Another thread of the recorder's begins at 0. */
	use(3000, 7600, 100);
	CU_ASSERT_DOUBLE_EQUAL(d9__analysis_sampled_share(&a), 0.45, 0.001);
}

static void test_time_in_which_nothing_was_recorded_does_not_count(void)
{
	begin(90);
	use(0, 0, 0);
	use(1000, 1000, 0);
	use(9000, 9000, 0);
	CU_ASSERT_DOUBLE_EQUAL(d9__analysis_sampled_share(&a), 0.9, 0.001);
}

static void test_nothing_is_said_of_little_time_or_without_samples(void)
{
	begin(10);
	use(0, 0, 0);
	use(1000, 499, 0);
	CU_ASSERT(d9__analysis_sampled_share(&a) < 0);
	use(1100, 501, 0);
	CU_ASSERT_DOUBLE_EQUAL(d9__analysis_sampled_share(&a), 0.2, 0.001);
	a.samples.period_ns = 0;
	CU_ASSERT(d9__analysis_sampled_share(&a) < 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "the recorder's own time, and what was used before it, do not count",
		  test_the_recorders_own_time_and_what_was_used_before_it_do_not_count },
		{ "time in which nothing was recorded does not count",
		  test_time_in_which_nothing_was_recorded_does_not_count },
		{ "nothing is said of little time, or without samples",
		  test_nothing_is_said_of_little_time_or_without_samples },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("sampled_share", tests);
}
