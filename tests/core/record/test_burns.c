/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time that a loop uses in its wait.  The test's thread is the loop's and the flush thread. */
#include "config.h"

#include <string.h>
#include <time.h>

#include <dial9/loop.h>

#include "base/time.h"
#include "core/loop/loop_events.h"
#include "loop/running.h"
#include "record/burns.h"
#include "record/open_calls.h"
#include "support/d9_test.h"

#define MS D9__MS_NS

static struct d9_loop *loop;
static struct d9__open_calls calls;
static uint64_t used_ns; /* the thread's CPU clock */
static unsigned readings;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_clock_gettime(clockid_t id, struct timespec *ts);

/* Clocks of threads that are told by their number are below 0. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id >= 0)
		return __real_clock_gettime(id, ts);
	readings++;
	*ts = d9__timespec_of(used_ns);
	return 0;
}

/* |ms| pass, of which the thread uses |burnt_ms|, and the flush thread looks every 10 ms. */
static void pass(uint64_t ms, uint64_t burnt_ms)
{
	for (uint64_t i = 0; i < ms; i += 10) {
		loop_ns += 10 * MS;
		used_ns += burnt_ms * 10 * MS / ms;
		d9__burns_look(&calls, loop_ns);
	}
}

/* Events of the kind so far. */
static size_t told(const struct loop_events **events)
{
	size_t n = 0;

	*events = loop_events_collect();
	for (size_t i = 0; i < (*events)->n; i++) {
		const struct loop_event *event = &(*events)->items[i];

		if (event->kind != LOOP_STUCK)
			continue;
		CU_ASSERT_STRING_EQUAL(event->task_kind, "library");
		CU_ASSERT_EQUAL(event->task, 0);
		n++;
	}
	return n;
}

static size_t count_told(void)
{
	const struct loop_events *events;

	return told(&events);
}

/* A wait of its own for each test, so late that nothing of the test before counts. */
static void park(void)
{
	loop_ns += 10 * D9__SECOND_NS;
	d9_loop_park(loop, -1);
}

static void test_a_loop_that_burns_in_its_wait_is_told(void)
{
	const struct loop_events *events;
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	park();
	pass(100, 60);
	CU_ASSERT_EQUAL(count_told(), 0);
	pass(200, 120);
	CU_ASSERT_EQUAL_FATAL(told(&events), 1);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_STUCK, 0)->cpu_ns, 120 * MS);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_STUCK, 0)->wait_ns, 200 * MS);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_STUCK, 0)->active_ns / MS, 300);
	d9_loop_unpark(loop);
	d9_loop_leave(&run);
}

static void test_a_loop_that_sleeps_in_its_wait_is_not(void)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	park();
	pass(3000, 0);
	pass(3000, 1500);
	CU_ASSERT_EQUAL(count_told(), 0);
	d9_loop_unpark(loop);
	d9_loop_leave(&run);
}

static void test_it_is_told_once_a_second_with_all_that_was_burnt_since(void)
{
	const struct loop_events *events;
	uint64_t cpu_ns = 0;
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	park();
	pass(100, 100);
	pass(5000, 4000);
	CU_ASSERT_EQUAL_FATAL(told(&events), 5);
	for (unsigned i = 0; i < 5; i++)
		cpu_ns += loop_nth(events, LOOP_STUCK, i)->cpu_ns;
	CU_ASSERT_EQUAL(cpu_ns, 3360 * MS);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_STUCK, 4)->cpu_ns, 800 * MS);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_STUCK, 4)->wait_ns, 1000 * MS);
	d9_loop_unpark(loop);
	d9_loop_leave(&run);
}

static void test_rounds_count_and_callbacks_and_programs_do_not(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 7, .fd = -1 } };
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	park();
	d9_loop_unpark(loop);
	d9_poll_begin(&poll);
	pass(1000, 1000);
	CU_ASSERT_EQUAL(count_told(), 0);
	d9_poll_end(&poll);
	pass(310, 310);
	CU_ASSERT_EQUAL(count_told(), 1);
	d9_loop_leave(&run);
	pass(3000, 3000);
	CU_ASSERT_EQUAL(count_told(), 0);
}

static void test_the_clock_of_a_busy_loop_is_not_read(void)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	park();
	readings = 0;
	for (unsigned i = 0; i < 100; i++) {
		pass(50, 50);
		d9_loop_unpark(loop);
		d9_loop_park(loop, -1);
	}
	CU_ASSERT_EQUAL(readings, 0);
	/* And that of one that sleeps five times a second. */
	pass(10000, 0);
	CU_ASSERT(readings > 40 && readings <= 50);
	CU_ASSERT_EQUAL(count_told(), 0);
	d9_loop_unpark(loop);
	d9_loop_leave(&run);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a loop that burns in its wait is told",
		  test_a_loop_that_burns_in_its_wait_is_told },
		{ "a loop that sleeps in its wait is not",
		  test_a_loop_that_sleeps_in_its_wait_is_not },
		{ "it is told once a second, with all that was burnt since",
		  test_it_is_told_once_a_second_with_all_that_was_burnt_since },
		{ "rounds count, and callbacks and programs do not",
		  test_rounds_count_and_callbacks_and_programs_do_not },
		{ "the clock of a busy loop is not read",
		  test_the_clock_of_a_busy_loop_is_not_read },
		CU_TEST_INFO_NULL,
	};

	loop_clock_runs = true;
	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	d9__running_start();
	d9__open_calls_begin(&calls);
	return d9_test_main("burns", tests);
}
