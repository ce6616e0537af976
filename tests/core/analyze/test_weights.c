/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time that samples stand for: that of their callback, or of their loop, divided among
 * them. */
#include "config.h"

#include <stdlib.h>

#include "analyze/hot_threads.h"
#include "base/time.h"
#include "story.h"
#include "support/d9_test.h"

#define PERIOD_NS (10 * D9__MS_NS)

/* Two places of one function, and another one. */
#define FIRST  "app+0x100 @ app+0x900"
#define SECOND "app+0x100 @ app+0x910"
#define OTHER  "app+0x200 @ app+0x920"

static void begin(struct story *s)
{
	story_begin(s);
	story_say(s, "cpu.sample_hz", "100");
}

/* A call of |us| with |samples| inside, all of it on the CPU. */
static void call(struct story *s, uint64_t from_us, uint64_t us, uint64_t task, const char *place,
		 unsigned samples)
{
	story_start(s, 0, from_us, task, place);
	for (unsigned i = 0; i < samples; i++)
		story_sample(s, 0, from_us + 10 + i);
	story_end(s, 0, from_us + us);
	if (us >= 1000)
		story_off_cpu(s, 0, from_us + us, task, 0, 0);
}

static const struct d9__weight *weight_of(const struct story *s, const char *place)
{
	const struct d9__callback *callback = story_callback(s, place);

	CU_ASSERT_PTR_NOT_NULL_FATAL(callback);
	return &callback->weight;
}

static uint64_t sampled_ns(const struct d9__weight *weight)
{
	return d9__weight_ns(weight, weight->samples, PERIOD_NS);
}

static void test_samples_of_a_callback_share_its_cpu_time_however_often_they_met_it(void)
{
	struct story s;

	begin(&s);
	story_unpark(&s, 0, 1000, 0);
	call(&s, 1000, 60000, 1, FIRST, 3);
	call(&s, 61000, 60000, 2, OTHER, 12);
	story_park(&s, 0, 121000, 120000);
	story_analyse(&s);
	CU_ASSERT_EQUAL(sampled_ns(weight_of(&s, FIRST)), 60 * D9__MS_NS);
	CU_ASSERT_EQUAL(sampled_ns(weight_of(&s, OTHER)), 60 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__weight_ns(weight_of(&s, OTHER), 1, PERIOD_NS), 5 * D9__MS_NS);
	CU_ASSERT_FALSE(weight_of(&s, FIRST)->about);
	CU_ASSERT_FALSE(weight_of(&s, FIRST)->few);
	story_free(&s);
}

static void test_a_function_with_few_samples_at_one_place_joins_its_other_places(void)
{
	struct story s;

	begin(&s);
	story_unpark(&s, 0, 1000, 0);
	call(&s, 1000, 60000, 1, FIRST, 5);
	call(&s, 61000, 12000, 2, SECOND, 1);
	call(&s, 73000, 20000, 3, OTHER, 2);
	story_park(&s, 0, 93000, 92000);
	story_analyse(&s);
	/* 72 ms in 6 samples. */
	CU_ASSERT_EQUAL(d9__weight_ns(weight_of(&s, FIRST), 1, PERIOD_NS), 12 * D9__MS_NS);
	CU_ASSERT_EQUAL(d9__weight_ns(weight_of(&s, SECOND), 1, PERIOD_NS), 12 * D9__MS_NS);
	CU_ASSERT_FALSE(weight_of(&s, SECOND)->few);
	/* There is none for the other to join: its two samples have what it used, and that is told.
	 */
	CU_ASSERT_EQUAL(d9__weight_ns(weight_of(&s, OTHER), 1, PERIOD_NS), 10 * D9__MS_NS);
	CU_ASSERT_TRUE(weight_of(&s, OTHER)->few);
	story_free(&s);
}

static void test_a_callback_that_no_sample_met_keeps_its_cpu_time(void)
{
	struct story s;
	struct d9__hot_function *functions;
	size_t n;

	begin(&s);
	story_unpark(&s, 0, 1000, 0);
	call(&s, 1000, 60000, 1, FIRST, 5);
	call(&s, 61000, 9000, 3, OTHER, 0);
	story_park(&s, 0, 70000, 69000);
	story_analyse(&s);
	CU_ASSERT_TRUE(weight_of(&s, OTHER)->lonely);
	CU_ASSERT_EQUAL(weight_of(&s, OTHER)->cpu_ns, 9 * D9__MS_NS);
	CU_ASSERT_FALSE(weight_of(&s, FIRST)->lonely);
	functions = d9__hot_functions_on(&s.analysis.samples.threads, &s.analysis.callbacks,
					 PERIOD_NS, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_EQUAL_FATAL(n, 2);
	CU_ASSERT_EQUAL(functions[0].ns, 60 * D9__MS_NS);
	CU_ASSERT_EQUAL(functions[0].n, 5);
	CU_ASSERT_PTR_EQUAL(functions[1].callback, story_callback(&s, OTHER));
	CU_ASSERT_EQUAL(functions[1].ns, 9 * D9__MS_NS);
	free(functions);
	story_free(&s);
}

static void test_short_calls_share_their_loops_readings_and_that_is_an_estimate(void)
{
	struct story s;

	begin(&s);
	for (uint64_t us = 1000; us < 101000; us += 1000) {
		story_unpark(&s, 0, us, us);
		call(&s, us, 400, 1, FIRST, us % 10000 == 0);
		call(&s, us + 400, 400, 2, OTHER, us % 20000 == 0);
		story_park(&s, 0, us + 800, us + 800);
	}
	story_analyse(&s);
	CU_ASSERT_EQUAL(sampled_ns(weight_of(&s, FIRST)), 40 * D9__MS_NS);
	CU_ASSERT_EQUAL(sampled_ns(weight_of(&s, OTHER)), 40 * D9__MS_NS);
	CU_ASSERT_TRUE(weight_of(&s, FIRST)->about);
	story_free(&s);
}

static void test_rounds_and_the_time_between_them_are_strata_of_their_own(void)
{
	struct story s;
	const struct d9__worker *worker;

	begin(&s);
	story_unpark(&s, 0, 1000, 0);
	call(&s, 1000, 10000, 1, FIRST, 3);
	/* In its round for 20 ms, outside of its loop for 60 ms. */
	for (uint64_t us = 12000; us < 17000; us += 1000)
		story_sample(&s, 0, us);
	for (uint64_t us = 32000; us < 36000; us += 1000)
		story_sample(&s, 0, us);
	story_outside(&s, 0, 31000, 91000);
	story_park(&s, 0, 91000, 90000);
	story_analyse(&s);
	worker = s.analysis.timeline.items[0];
	CU_ASSERT_EQUAL(worker->beside.weight.samples, 5);
	CU_ASSERT_EQUAL(worker->between.samples, 4);
	CU_ASSERT_EQUAL(sampled_ns(&worker->beside.weight), 20 * D9__MS_NS);
	CU_ASSERT_EQUAL(sampled_ns(&worker->between), 60 * D9__MS_NS);
	CU_ASSERT_EQUAL(sampled_ns(weight_of(&s, FIRST)), 10 * D9__MS_NS);
	story_free(&s);
}

static void test_without_readings_a_sample_stands_for_a_period_within_its_calls(void)
{
	struct story s;

	begin(&s);
	story_unpark(&s, 0, 1000, 0);
	story_start(&s, 0, 1000, 1, FIRST);
	for (unsigned i = 0; i < 4; i++)
		story_sample(&s, 0, 1010 + i);
	story_end(&s, 0, 61000);
	story_start(&s, 0, 61000, 2, OTHER);
	for (unsigned i = 0; i < 4; i++)
		story_sample(&s, 0, 61010 + i);
	story_end(&s, 0, 81000);
	story_park(&s, 0, 81000, 0);
	story_analyse(&s);
	CU_ASSERT_EQUAL(sampled_ns(weight_of(&s, FIRST)), 4 * PERIOD_NS);
	/* Four samples in calls of 20 ms. */
	CU_ASSERT_EQUAL(sampled_ns(weight_of(&s, OTHER)), 20 * D9__MS_NS);
	CU_ASSERT_TRUE(weight_of(&s, FIRST)->about);
	/* A thread without a loop has no stratum. */
	CU_ASSERT_EQUAL(d9__weight_ns(NULL, 3, PERIOD_NS), 3 * PERIOD_NS);
	story_free(&s);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "samples of a callback share its CPU time, however often they met it",
		  test_samples_of_a_callback_share_its_cpu_time_however_often_they_met_it },
		{ "a function with few samples at one place joins its other places",
		  test_a_function_with_few_samples_at_one_place_joins_its_other_places },
		{ "a callback that no sample met keeps its CPU time",
		  test_a_callback_that_no_sample_met_keeps_its_cpu_time },
		{ "short calls share their loop's readings, and that is an estimate",
		  test_short_calls_share_their_loops_readings_and_that_is_an_estimate },
		{ "rounds and the time between them are strata of their own",
		  test_rounds_and_the_time_between_them_are_strata_of_their_own },
		{ "without readings a sample stands for a period, within its calls",
		  test_without_readings_a_sample_stands_for_a_period_within_its_calls },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("weights", tests);
}
