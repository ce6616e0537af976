/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of what is added up at two moments is what happened between them. */
#include "config.h"

#include <string.h>

#include "analyze/sums.h"
#include "story.h"
#include "support/d9_test.h"

#define WORK "app+0x100 @ app+0x110"
#define TICK "app+0x200 @ app+0x210"

#define MS(n) ((n)*UINT64_C(1000000))
#define AT(ms) ((ms)*UINT64_C(1000)) /* of a story */

static uint64_t calls_ns(const struct d9__sums *sums, const char *place)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < sums->n_calls; i++)
		if (!strcmp(sums->calls[i].callback->location, place))
			ns += sums->calls[i].on.ns;
	return ns;
}

/* It works for |ms| from |from_ms| on, behind a sleep of so long, on the CPU. */
static void turn(struct story *s, uint64_t from_ms, uint64_t ms, const char *place)
{
	story_park(s, 0, AT(from_ms - ms), AT(from_ms - ms) / 2);
	story_unpark(s, 0, AT(from_ms), AT(from_ms - ms) / 2);
	story_poll(s, 0, AT(from_ms), AT(from_ms + ms), 1 + (place[6] == '2'), place);
}

static void test_difference_is_of_the_time_between(void)
{
	struct d9__sums first = { .n_loops = 0 }, second = { .n_loops = 0 };
	struct story s;

	story_begin(&s);
	for (uint64_t ms = 10; ms < 100; ms += 20)
		turn(&s, ms, 10, WORK);
	turn(&s, 110, 10, TICK);
	turn(&s, 130, 10, TICK);
	story_park(&s, 0, AT(140), AT(70));
	story_cut(&s, AT(60), &first);
	story_cut(&s, AT(140), &second);
	story_analyse(&s);
	d9__sums_subtract(&second, &first);

	/* The sleep from 60 on is the newest event, and the call before it is over. */
	CU_ASSERT_EQUAL(calls_ns(&first, WORK), MS(30));
	CU_ASSERT_EQUAL(first.loops[0].time.asleep_ns, MS(30));
	CU_ASSERT_EQUAL(calls_ns(&second, WORK), MS(20));
	CU_ASSERT_EQUAL(calls_ns(&second, TICK), MS(20));
	CU_ASSERT_EQUAL(second.loops[0].time.asleep_ns, MS(40));
	CU_ASSERT_EQUAL(second.loops[0].time.callback_ns, MS(40));
	CU_ASSERT_EQUAL(second.loops[0].cpu_ns, MS(40));
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&second.loops[0].time), MS(80));
	d9__sums_release(&first);
	d9__sums_release(&second);
	story_free(&s);
}

static void test_sleep_that_goes_on_is_told_and_counts_once(void)
{
	struct d9__sums first = { .n_loops = 0 }, second = { .n_loops = 0 };
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, AT(0), 0);
	story_park(&s, 0, AT(10), AT(10));
	story_queue(&s, AT(3000), 0);
	story_unpark(&s, 0, AT(5000), AT(10));
	story_park(&s, 0, AT(5010), AT(20));
	story_cut(&s, AT(3000), &first);
	story_cut(&s, AT(5010), &second);
	story_analyse(&s);
	CU_ASSERT_EQUAL(first.loops[0].time.asleep_ns, MS(2990));
	d9__sums_subtract(&second, &first);
	CU_ASSERT_EQUAL(second.loops[0].time.asleep_ns, MS(2000));
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&second.loops[0].time), MS(2010));
	d9__sums_release(&first);
	d9__sums_release(&second);
	story_free(&s);
}

static void test_call_that_goes_on_is_told_and_counts_once(void)
{
	struct d9__sums first = { .n_loops = 0 }, second = { .n_loops = 0 };
	struct story s;

	story_begin(&s);
	story_park(&s, 0, AT(0), 0);
	story_unpark(&s, 0, AT(100), 0);
	story_start(&s, 0, AT(100), 1, WORK);
	story_queue(&s, AT(3100), 0);
	story_end(&s, 0, AT(5100));
	story_park(&s, 0, AT(5100), AT(5000));
	story_cut(&s, AT(3100), &first);
	story_cut(&s, AT(5100), &second);
	story_analyse(&s);
	CU_ASSERT_EQUAL(calls_ns(&first, WORK), MS(3000));
	CU_ASSERT_EQUAL(first.loops[0].time.callback_ns, MS(3000));
	d9__sums_subtract(&second, &first);
	CU_ASSERT_EQUAL(calls_ns(&second, WORK), MS(2000));
	CU_ASSERT_EQUAL(second.loops[0].time.callback_ns, MS(2000));
	CU_ASSERT_EQUAL(second.loops[0].time.round_ns, 0);
	d9__sums_release(&first);
	d9__sums_release(&second);
	story_free(&s);
}

static void test_short_call_that_goes_on_waits_for_its_readings(void)
{
	struct d9__sums first = { .n_loops = 0 };
	struct story s;

	story_begin(&s);
	story_park(&s, 0, AT(0), 0);
	story_unpark(&s, 0, AT(100), 0);
	story_start(&s, 0, AT(100), 1, WORK);
	story_end(&s, 0, AT(300));
	story_park(&s, 0, AT(300), AT(200));
	story_cut(&s, AT(200), &first);
	story_analyse(&s);
	CU_ASSERT_EQUAL(calls_ns(&first, WORK), 0);
	CU_ASSERT_EQUAL(first.loops[0].time.callback_ns, 0);
	d9__sums_release(&first);
	story_free(&s);
}

static void test_library_that_goes_round_in_a_wait_is_told(void)
{
	struct d9__sums first = { .n_loops = 0 };
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, AT(0), 0);
	story_park(&s, 0, AT(10), AT(10));
	story_library(&s, 0, AT(2010), AT(2000), AT(1900));
	story_cut(&s, AT(2010), &first);
	story_analyse(&s);
	CU_ASSERT_EQUAL(first.loops[0].library_ns, MS(1900));
	CU_ASSERT_EQUAL(first.loops[0].time.wait_cpu_ns, MS(1900));
	CU_ASSERT_EQUAL(first.loops[0].time.asleep_ns, MS(100));
	CU_ASSERT_EQUAL(first.loops[0].cpu_ns, MS(1910));
	d9__sums_release(&first);
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "difference is of the time between",
	  test_difference_is_of_the_time_between },
	{ "sleep that goes on is told and counts once",
	  test_sleep_that_goes_on_is_told_and_counts_once },
	{ "call that goes on is told and counts once",
	  test_call_that_goes_on_is_told_and_counts_once },
	{ "short call that goes on waits for its readings",
	  test_short_call_that_goes_on_waits_for_its_readings },
	{ "library that goes round in a wait is told",
	  test_library_that_goes_round_in_a_wait_is_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("sums", tests);
}
