/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/pace.h"
#include "support/d9_test.h"

#define MS	 UINT64_C(1000000)
#define START	 (1000 * MS)
#define ROTATION (60000 * MS)
#define WAKE_UP	 5 /* events */

struct clockwork {
	struct d9__pace pace;
	uint64_t now_ns;
	unsigned looks;
};

static struct clockwork begin(void)
{
	struct clockwork work = { .now_ns = START };

	d9__pace_begin(&work.pace, work.now_ns);
	return work;
}

/* For |ms|: looks, each of which finds |events| in every |every_ms|. */
static void run(struct clockwork *work, uint64_t ms, uint64_t events, uint64_t every_ms)
{
	uint64_t end_ns = work->now_ns + ms * MS, from_ns = work->now_ns;

	while (work->now_ns < end_ns) {
		uint64_t before = (work->now_ns - from_ns) / (every_ms * MS);

		work->now_ns += work->pace.period_ns;
		d9__pace_look(&work->pace, work->now_ns,
			      ((work->now_ns - from_ns) / (every_ms * MS) - before) * events);
		d9__pace_choose(&work->pace, work->now_ns, false, ROTATION);
		work->looks++;
	}
}

static void test_looks_come_every_10_ms_from_the_start(void)
{
	struct clockwork work = begin();

	CU_ASSERT_EQUAL(work.pace.period_ns, 10 * MS);
	run(&work, 1000, WAKE_UP, 10);
	CU_ASSERT_EQUAL(work.pace.period_ns, 10 * MS);
	CU_ASSERT_EQUAL(work.looks, 100);
}

static void test_a_process_that_does_little_is_looked_at_every_100_ms(void)
{
	struct clockwork work = begin();

	run(&work, 2000, WAKE_UP, 100);
	CU_ASSERT_EQUAL(work.pace.period_ns, 100 * MS);
	CU_ASSERT_FALSE(work.pace.brisk);
	CU_ASSERT(work.looks < 40);
}

static void test_one_that_does_more_again_is_looked_at_every_10_ms_again(void)
{
	struct clockwork work = begin();

	run(&work, 2000, WAKE_UP, 100);
	run(&work, 200, WAKE_UP, 10);
	CU_ASSERT(work.pace.brisk);
	CU_ASSERT_EQUAL(work.pace.period_ns, 10 * MS);
}

static void test_silence_makes_looks_rare_up_to_one_a_second(void)
{
	struct clockwork work = begin();

	run(&work, 1000, WAKE_UP, 10);
	run(&work, 200, 0, 10);
	CU_ASSERT(d9__pace_active(&work.pace, work.now_ns));
	run(&work, 10000, 0, 10);
	CU_ASSERT_FALSE(d9__pace_active(&work.pace, work.now_ns));
	CU_ASSERT_EQUAL(work.pace.period_ns, 1000 * MS);
	work.looks = 0;
	run(&work, 10000, 0, 10);
	CU_ASSERT_EQUAL(work.looks, 10);
}

static void test_the_first_event_after_silence_ends_it(void)
{
	struct clockwork work = begin();

	run(&work, 20000, 0, 10);
	work.now_ns += work.pace.period_ns;
	d9__pace_look(&work.pace, work.now_ns, 1);
	d9__pace_choose(&work.pace, work.now_ns, false, ROTATION);
	CU_ASSERT(d9__pace_active(&work.pace, work.now_ns));
	CU_ASSERT_EQUAL(work.pace.period_ns, 100 * MS);
}

static void test_a_look_that_had_work_is_followed_by_one_10_ms_later(void)
{
	struct clockwork work = begin();

	run(&work, 20000, 0, 10);
	d9__pace_choose(&work.pace, work.now_ns, true, ROTATION);
	CU_ASSERT_EQUAL(work.pace.period_ns, 10 * MS);
}

static void test_segments_that_live_shorter_are_looked_at_more_often(void)
{
	struct clockwork work = begin();

	run(&work, 2000, WAKE_UP, 100);
	d9__pace_choose(&work.pace, work.pace.active_ns, false, 300 * MS);
	CU_ASSERT_EQUAL(work.pace.period_ns, 30 * MS);
	d9__pace_choose(&work.pace, work.pace.active_ns, false, 20 * MS);
	CU_ASSERT_EQUAL(work.pace.period_ns, 10 * MS);
	d9__pace_choose(&work.pace, work.pace.active_ns, false, ROTATION);
	CU_ASSERT_EQUAL(work.pace.period_ns, 100 * MS);
}

/* Looks while a call is open from |from_ms| on: how many in its first 100 ms, and the longest period later. */
static unsigned run_open(struct clockwork *work, uint64_t ms, uint64_t *longest_ns)
{
	uint64_t from_ns = work->now_ns, end_ns = from_ns + ms * MS;
	unsigned early = 0;

	*longest_ns = 0;
	while (work->now_ns < end_ns) {
		d9__pace_open_call(&work->pace, work->now_ns - from_ns);
		d9__pace_choose(&work->pace, work->now_ns, false, ROTATION);
		work->now_ns += work->pace.period_ns;
		early += work->now_ns - from_ns <= 100 * MS;
		if (work->pace.period_ns > *longest_ns)
			*longest_ns = work->pace.period_ns;
		d9__pace_look(&work->pace, work->now_ns, 0);
	}
	return early;
}

static void test_an_open_call_is_looked_at_every_10_ms_then_half_as_often_each_time(void)
{
	struct clockwork work = begin();
	uint64_t longest_ns;

	run(&work, 20000, 0, 10);
	CU_ASSERT_EQUAL(work.pace.period_ns, 1000 * MS);
	CU_ASSERT_EQUAL(run_open(&work, 100, &longest_ns), 10);
	CU_ASSERT_EQUAL(longest_ns, 10 * MS);
	d9__pace_open_call(&work.pace, 110 * MS);
	d9__pace_choose(&work.pace, work.now_ns, false, ROTATION);
	CU_ASSERT_EQUAL(work.pace.period_ns, 20 * MS);
	d9__pace_open_call(&work.pace, 130 * MS);
	d9__pace_choose(&work.pace, work.now_ns, false, ROTATION);
	CU_ASSERT_EQUAL(work.pace.period_ns, 40 * MS);
	for (unsigned i = 0; i < 10; i++) {
		d9__pace_open_call(&work.pace, 170 * MS);
		d9__pace_choose(&work.pace, work.now_ns, false, ROTATION);
	}
	CU_ASSERT_EQUAL(work.pace.period_ns, 1000 * MS);
}

static void test_without_an_open_call_rest_is_as_long_as_before(void)
{
	struct clockwork work = begin();

	run(&work, 20000, 0, 10);
	d9__pace_open_call(&work.pace, 3 * MS);
	d9__pace_choose(&work.pace, work.now_ns, false, ROTATION);
	CU_ASSERT_EQUAL(work.pace.period_ns, 10 * MS);
	d9__pace_open_call(&work.pace, UINT64_MAX);
	for (unsigned i = 0; i < 10; i++)
		d9__pace_choose(&work.pace, work.now_ns, false, ROTATION);
	CU_ASSERT_EQUAL(work.pace.period_ns, 1000 * MS);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "looks come every 10 ms from the start",
		  test_looks_come_every_10_ms_from_the_start },
		{ "a process that does little is looked at every 100 ms",
		  test_a_process_that_does_little_is_looked_at_every_100_ms },
		{ "one that does more again is looked at every 10 ms again",
		  test_one_that_does_more_again_is_looked_at_every_10_ms_again },
		{ "silence makes looks rare up to one a second",
		  test_silence_makes_looks_rare_up_to_one_a_second },
		{ "the first event after silence ends it",
		  test_the_first_event_after_silence_ends_it },
		{ "a look that had work is followed by one 10 ms later",
		  test_a_look_that_had_work_is_followed_by_one_10_ms_later },
		{ "segments that live shorter are looked at more often",
		  test_segments_that_live_shorter_are_looked_at_more_often },
		{ "an open call is looked at every 10 ms, then half as often each time",
		  test_an_open_call_is_looked_at_every_10_ms_then_half_as_often_each_time },
		{ "without an open call rest is as long as before",
		  test_without_an_open_call_rest_is_as_long_as_before },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("pace", tests);
}
