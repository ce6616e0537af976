/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/pace.h"
#include "support/d9_test.h"

#define MS	 UINT64_C(1000000)
#define START	 (1000 * MS)
#define ROTATION (60000 * MS)

struct clockwork {
	struct d9__pace pace;
	uint64_t now_ns;
	unsigned ticks;
};

static struct clockwork begin(void)
{
	struct clockwork work = { .now_ns = START };

	d9__pace_begin(&work.pace, work.now_ns);
	return work;
}

/* For |ms|: ticks, each of which finds |events|. */
static void run(struct clockwork *work, uint64_t ms, uint64_t events)
{
	uint64_t end_ns = work->now_ns + ms * MS;

	while (work->now_ns < end_ns) {
		work->now_ns += work->pace.period_ns;
		d9__pace_events(&work->pace, work->now_ns, events);
		d9__pace_choose(&work->pace, work->now_ns, ROTATION);
		work->ticks++;
	}
}

static void test_ticks_come_every_100_ms_however_many_events_flow(void)
{
	struct clockwork work = begin();

	CU_ASSERT_EQUAL(work.pace.period_ns, 100 * MS);
	run(&work, 1000, 1);
	run(&work, 1000, 1000000);
	CU_ASSERT_EQUAL(work.pace.period_ns, 100 * MS);
	CU_ASSERT_EQUAL(work.ticks, 20);
	CU_ASSERT_EQUAL(work.pace.look_ns, 0);
}

static void test_silence_makes_ticks_rare_up_to_one_a_second(void)
{
	struct clockwork work = begin();

	run(&work, 1000, 1);
	run(&work, 200, 0);
	CU_ASSERT(d9__pace_active(&work.pace, work.now_ns));
	run(&work, 10000, 0);
	CU_ASSERT_FALSE(d9__pace_active(&work.pace, work.now_ns));
	CU_ASSERT_EQUAL(work.pace.period_ns, 1000 * MS);
	work.ticks = 0;
	run(&work, 10000, 0);
	CU_ASSERT_EQUAL(work.ticks, 10);
}

static void test_the_first_event_after_silence_ends_it(void)
{
	struct clockwork work = begin();

	run(&work, 20000, 0);
	run(&work, 1000, 1);
	CU_ASSERT(d9__pace_active(&work.pace, work.now_ns));
	CU_ASSERT_EQUAL(work.pace.period_ns, 100 * MS);
}

static void test_segments_that_live_shorter_have_more_ticks(void)
{
	struct clockwork work = begin();

	d9__pace_choose(&work.pace, work.pace.active_ns, 300 * MS);
	CU_ASSERT_EQUAL(work.pace.period_ns, 30 * MS);
	d9__pace_choose(&work.pace, work.pace.active_ns, 20 * MS);
	CU_ASSERT_EQUAL(work.pace.period_ns, 10 * MS);
	d9__pace_choose(&work.pace, work.pace.active_ns, ROTATION);
	CU_ASSERT_EQUAL(work.pace.period_ns, 100 * MS);
}

static void test_calls_that_are_over_at_the_next_look_have_one_look_after_each_tick(void)
{
	struct clockwork work = begin();

	for (unsigned i = 0; i < 5; i++) {
		d9__pace_open_calls(&work.pace, UINT64_MAX, true);
		CU_ASSERT_EQUAL(work.pace.look_ns, 10 * MS);
		d9__pace_open_calls(&work.pace, UINT64_MAX, false);
		CU_ASSERT_EQUAL(work.pace.look_ns, 0);
	}
}

static void test_a_call_that_stays_open_is_looked_at_every_10_ms_then_half_as_often_each_time(void)
{
	struct clockwork work = begin();
	uint64_t age_ns = 7 * MS;

	d9__pace_open_calls(&work.pace, UINT64_MAX, true);
	for (unsigned i = 0; i < 9; i++) {
		CU_ASSERT_EQUAL(work.pace.look_ns, 10 * MS);
		age_ns += work.pace.look_ns;
		d9__pace_open_calls(&work.pace, age_ns, false);
	}
	CU_ASSERT_EQUAL(work.pace.look_ns, 10 * MS);
	for (uint64_t wanted = 20; wanted < 100; wanted *= 2) {
		age_ns += work.pace.look_ns;
		d9__pace_open_calls(&work.pace, age_ns, false);
		CU_ASSERT_EQUAL(work.pace.look_ns, wanted * MS);
	}
	while (age_ns + work.pace.look_ns < 1000 * MS) {
		age_ns += work.pace.look_ns;
		d9__pace_open_calls(&work.pace, age_ns, false);
		CU_ASSERT_EQUAL(work.pace.look_ns, 100 * MS);
	}
	for (uint64_t wanted = 200; wanted < 1000; wanted *= 2) {
		age_ns += work.pace.look_ns;
		d9__pace_open_calls(&work.pace, age_ns, false);
		CU_ASSERT_EQUAL(work.pace.look_ns, wanted * MS);
	}
	d9__pace_open_calls(&work.pace, age_ns + 800 * MS, false);
	CU_ASSERT_EQUAL(work.pace.look_ns, 1000 * MS);
	d9__pace_open_calls(&work.pace, UINT64_MAX, false);
	CU_ASSERT_EQUAL(work.pace.look_ns, 0);
}

static void test_a_call_that_is_old_already_when_it_is_found_is_looked_at_soon(void)
{
	struct clockwork work = begin();

	d9__pace_open_calls(&work.pace, 5000 * MS, true);
	CU_ASSERT_EQUAL(work.pace.look_ns, 10 * MS);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "ticks come every 100 ms, however many events flow",
		  test_ticks_come_every_100_ms_however_many_events_flow },
		{ "silence makes ticks rare, up to one a second",
		  test_silence_makes_ticks_rare_up_to_one_a_second },
		{ "the first event after silence ends it",
		  test_the_first_event_after_silence_ends_it },
		{ "segments that live shorter have more ticks",
		  test_segments_that_live_shorter_have_more_ticks },
		{ "calls that are over at the next look have one look after each tick",
		  test_calls_that_are_over_at_the_next_look_have_one_look_after_each_tick },
		{ "a call that stays open is looked at every 10 ms, then half as often each time",
		  test_a_call_that_stays_open_is_looked_at_every_10_ms_then_half_as_often_each_time },
		{ "a call that is old already when it is found is looked at soon",
		  test_a_call_that_is_old_already_when_it_is_found_is_looked_at_soon },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("pace", tests);
}
