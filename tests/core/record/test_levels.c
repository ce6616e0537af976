/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that hold for a while, with times of the test's own. */
#include "config.h"

#include <string.h>

#include <dial9/loop.h>

#include "core/record/fixture.h"
#include "drain/rates.h"
#include "record/levels.h"
#include "ring/names.h"
#include "support/d9_test.h"

#define STEP D9__RATES_STEP_NS
#define T0   (1000 * STEP)
#define MANY 30000u /* more than four chunks hold */
#define MS   UINT64_C(1000000)

static struct d9__level level;
static struct d9__trigger trigger;
static uint64_t value;

static void begin(const char *text)
{
	struct d9__trigger_fault fault;

	CU_ASSERT_FATAL(d9__trigger_parse(text, strlen(text), &trigger, &fault));
	level = (struct d9__level) { 0 };
	value = 0;
}

static bool look(uint64_t ns)
{
	d9__rates_look(ns);
	return d9__level_look(&level, &trigger, ns, &value);
}

/* ---- the queue ---- */

static uint64_t waiting[2];

static uint64_t queue_of(bool (*wanted)(const void *arg, const char *name), const void *arg)
{
	return (wanted(arg, "main") ? waiting[0] : 0) + (wanted(arg, "other") ? waiting[1] : 0);
}

static void worker_name(uint32_t worker, char *out, size_t size)
{
	snprintf(out, size, "%s", worker == 1 ? "main" : worker == 2 ? "other" : "");
}

static void test_a_queue_holds_above_its_threshold_and_not_at_it(void)
{
	d9__levels_provide(queue_of, worker_name);
	begin("queue > 50");
	waiting[0] = 30;
	for (waiting[1] = 19; waiting[1] < 21; waiting[1]++)
		CU_ASSERT_FALSE(look(T0));
	CU_ASSERT(look(T0));
	CU_ASSERT_EQUAL(value, 51);

	begin("queue > 20 where loop ~ o*");
	waiting[1] = 20;
	CU_ASSERT_FALSE(look(T0));
	waiting[1] = 21;
	CU_ASSERT(look(T0));
	CU_ASSERT_EQUAL(value, 21);
	begin("queue > 0 where loop ~ nobody");
	CU_ASSERT_FALSE(look(T0));
}

static void test_a_queue_has_to_be_long_at_each_look_for_as_long_as_it_says(void)
{
	begin("queue > 5 for 2s");
	waiting[0] = 6;
	waiting[1] = 0;
	CU_ASSERT_FALSE(look(T0));
	CU_ASSERT_FALSE(look(T0 + 2000 * MS - 1));
	CU_ASSERT(look(T0 + 2000 * MS));
	CU_ASSERT(look(T0 + 3000 * MS));
	waiting[0] = 5;
	CU_ASSERT_FALSE(look(T0 + 3001 * MS));
	waiting[0] = 6;
	CU_ASSERT_FALSE(look(T0 + 3002 * MS));
	CU_ASSERT_FALSE(look(T0 + 5001 * MS));
	CU_ASSERT(look(T0 + 5002 * MS));
}

/* ---- rates ---- */

static struct d9__slot *slot;

static void begin_rate(const char *text, unsigned chunks)
{
	d9__rates_switch(false);
	fixture_ring(chunks);
	d9__rates_switch(true);
	slot = d9__slot_self();
	begin(text);
	CU_ASSERT_FALSE(look(T0 - 11 * STEP));
}

static void polls_at(uint64_t ns, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		d9__emit_poll_start(slot, ns, 1, 0, 7, D9__NAME_EMPTY);
		d9__emit_poll_end(slot, ns, 1);
	}
}

static void wakes_at(uint64_t ns, unsigned n, unsigned reason)
{
	for (unsigned i = 0; i < n; i++)
		d9__emit_wake(slot, ns, 0, 7, 1, reason);
}

static void test_a_rate_is_what_was_recorded_in_a_second(void)
{
	begin_rate("polls > 1000/s", 16);
	polls_at(T0, 500);
	polls_at(T0 + 10 * STEP - 1, 500);
	CU_ASSERT_FALSE(look(T0 + 10 * STEP));
	/* The first 500 are out of it: it is a second, wherever it begins. */
	polls_at(T0 + 10 * STEP, 500);
	CU_ASSERT_FALSE(look(T0 + 11 * STEP));
	polls_at(T0 + 11 * STEP, 1);
	CU_ASSERT_FALSE(look(T0 + 12 * STEP - 1));
	CU_ASSERT(look(T0 + 12 * STEP));
	CU_ASSERT_EQUAL(value, 1001);
}

static void test_polls_and_wakes_are_counted_apart(void)
{
	begin_rate("wakes > 3/s", 16);
	polls_at(T0, 100);
	wakes_at(T0, 3, D9_WAKE_FD);
	/* Another piece of a callback that was counted is neither. */
	wakes_at(T0, 5, D9_WAKE_RESUMPTION);
	CU_ASSERT_FALSE(look(T0 + STEP));
	wakes_at(T0 + STEP, 1, D9_WAKE_ACTIVE);
	CU_ASSERT(look(T0 + 2 * STEP));
	CU_ASSERT_EQUAL(value, 4);
	begin("polls > 100/s");
	CU_ASSERT_FALSE(look(T0 + 2 * STEP));
	polls_at(T0 + 13 * STEP, 100);
	wakes_at(T0 + 13 * STEP, 1, D9_WAKE_RESUMPTION);
	polls_at(T0 + 13 * STEP, 1);
	CU_ASSERT_FALSE(look(T0 + 14 * STEP));
	polls_at(T0 + 14 * STEP, 1);
	CU_ASSERT(look(T0 + 15 * STEP));
	CU_ASSERT_EQUAL(value, 101);
}

/* A timer's wake has the time when it was due, which may be long ago. */
static void test_a_wake_counts_when_it_is_written(void)
{
	begin_rate("wakes > 9/s", 16);
	polls_at(T0, 1);
	CU_ASSERT_FALSE(look(T0 + STEP));
	wakes_at(T0 - 100 * STEP, 10, D9_WAKE_TIMER);
	CU_ASSERT(look(T0 + 2 * STEP));
	CU_ASSERT_EQUAL(value, 10);
}

static void test_a_rate_has_to_be_high_in_each_second_for_as_long_as_it_says(void)
{
	begin_rate("polls > 10/s for 2s", 16);
	for (unsigned i = 0; i <= 20; i++) {
		polls_at(T0 + i * STEP, i < 20 ? 2 : 1);
		CU_ASSERT_EQUAL(look(T0 + (i + 1) * STEP), false);
	}
	begin_rate("polls > 10/s for 2s", 16);
	for (unsigned i = 0; i <= 25; i++) {
		polls_at(T0 + i * STEP, 2);
		/* Six steps have more than ten. */
		CU_ASSERT_EQUAL(look(T0 + (i + 1) * STEP), i + 1 == 26);
	}
}

static void test_a_rate_is_of_the_loops_that_are_named(void)
{
	begin_rate("polls > 10/s where loop ~ other", 16);
	polls_at(T0, 11);
	CU_ASSERT_FALSE(look(T0 + STEP));
	begin_rate("polls > 10/s where loop ~ m*n", 16);
	polls_at(T0, 11);
	CU_ASSERT(look(T0 + STEP));
}

static void count_many(bool recycling, bool taken)
{
	struct d9__batch batch;

	begin_rate("polls > 29999/s", 32);
	d9__chunk_set_recycling(recycling);
	for (unsigned i = 0; i < MANY; i += MANY / 10) {
		polls_at(T0 + i, MANY / 10);
		if (i % 2)
			continue;
		CU_ASSERT_FALSE(look(T0 + STEP - 1));
		while (taken && d9__chunk_pop_full(&batch)) {
			d9__rates_take(&batch);
			d9__chunk_release(&batch);
		}
	}
	CU_ASSERT(look(T0 + STEP));
	CU_ASSERT_EQUAL(value, MANY);
	d9__chunk_set_recycling(false);
}

static void test_nothing_is_counted_twice_or_forgotten_as_chunks_fill(void)
{
	count_many(false, false);
	count_many(false, true);
	count_many(true, false);
}

/* Events that threads have overwritten meanwhile cannot be counted. */
static void test_a_ring_that_turned_over_is_counted_as_far_as_it_goes(void)
{
	begin_rate("polls > 1000/s", 4);
	d9__chunk_set_recycling(true);
	polls_at(T0, MANY);
	CU_ASSERT(look(T0 + STEP));
	CU_ASSERT(value > 1000);
	CU_ASSERT(value < MANY);
	polls_at(T0 + STEP, MANY);
	CU_ASSERT_EQUAL(fixture_lost(-1), 0);
	d9__chunk_set_recycling(false);
}

/* The flush thread did not run for long: it knows nothing of the time before, and says nothing of
 * it. */
static void test_a_look_that_comes_late_begins_anew(void)
{
	begin_rate("polls > 1000/s for 1s", 16);
	polls_at(T0, 1001);
	CU_ASSERT_FALSE(look(T0 + STEP));
	CU_ASSERT_NOT_EQUAL(level.since_ns, 0);
	CU_ASSERT_FALSE(look(T0 + 1000 * STEP));
	CU_ASSERT_EQUAL(level.since_ns, 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a queue holds above its threshold and not at it",
		  test_a_queue_holds_above_its_threshold_and_not_at_it },
		{ "a queue has to be long at each look for as long as it says",
		  test_a_queue_has_to_be_long_at_each_look_for_as_long_as_it_says },
		{ "a rate is what was recorded in a second",
		  test_a_rate_is_what_was_recorded_in_a_second },
		{ "polls and wakes are counted apart", test_polls_and_wakes_are_counted_apart },
		{ "a wake counts when it is written", test_a_wake_counts_when_it_is_written },
		{ "a rate has to be high in each second for as long as it says",
		  test_a_rate_has_to_be_high_in_each_second_for_as_long_as_it_says },
		{ "a rate is of the loops that are named",
		  test_a_rate_is_of_the_loops_that_are_named },
		{ "nothing is counted twice or forgotten as chunks fill",
		  test_nothing_is_counted_twice_or_forgotten_as_chunks_fill },
		{ "a ring that turned over is counted as far as it goes",
		  test_a_ring_that_turned_over_is_counted_as_far_as_it_goes },
		{ "a look that comes late begins anew", test_a_look_that_comes_late_begins_anew },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("levels", tests);
}
