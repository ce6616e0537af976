/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes that polls tell (FORMAT.md 9.3), as the reader delivers them. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dial9/loop.h>
#include <dial9/reader.h>

#include "support/d9_test.h"
#include "support/trace_builder.h"

#define PATH "told_wakes.bin"

enum { START = 1, END, UNPARK, WAKE, SPAWN };

static struct trace t;

static void next_batch(void)
{
	trace_batch(&t);
	trace_builtin_fields(&t, START, "PollStartEvent",
			     "worker_id local_queue task_id spawn_loc wake");
	trace_builtin(&t, END, "PollEndEvent");
	trace_builtin(&t, UNPARK, "WorkerUnparkEvent");
	trace_builtin(&t, WAKE, "WakeEventEvent");
	trace_string(&t, "here");
}

static void begin(void)
{
	t = (struct trace) { 0 };
	next_batch();
}

static void unpark(uint64_t ns, uint64_t worker)
{
	trace_event(&t, UNPARK, ns, worker, UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(7));
}

static void poll(uint64_t ns, uint64_t worker, uint64_t task, uint64_t told, uint64_t end_ns)
{
	trace_event(&t, START, ns, worker, UINT64_C(1), task, UINT64_C(0), told);
	if (end_ns)
		trace_event(&t, END, end_ns, worker);
}

static uint64_t delay(uint64_t ns, enum d9_wake_reason reason)
{
	return ns << 4 | reason;
}

/*
 * The story as the reader delivers it: U, ( with its wake and ), and w with time, waker, task,
 * worker and reason.
 */
static const char *read_back(bool file_order)
{
	static char story[4096];
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	uint64_t wake;
	size_t n = 0;
	int err;

	trace_save(&t, PATH, "plain");
	story[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	d9_reader_set_file_order(reader, file_order);
	CU_ASSERT_EQUAL_FATAL(d9_reader_add(reader, PATH), 0);
	while ((err = d9_reader_next(reader, &event)) == 1) {
		switch (event->kind) {
		case D9_EVENT_WORKER_UNPARK:
			n += (size_t)sprintf(story + n, "U");
			break;
		case D9_EVENT_POLL_END:
			n += (size_t)sprintf(story + n, ")");
			break;
		case D9_EVENT_POLL_START:
			wake = d9_event_known_u64(event, D9_POLL_START_WAKE, 0);
			n += (size_t)sprintf(story + n, "(");
			if (wake)
				n += (size_t)sprintf(story + n, "%" PRIu64, wake);
			break;
		case D9_EVENT_WAKE:
			n += (size_t)sprintf(
				story + n,
				"w%" PRIu64 ",%" PRIu64 ">%" PRIu64 ",%" PRIu64 ",%" PRIu64 " ",
				event->timestamp_ns, d9_event_u64(event, "waker_task_id", 99),
				d9_event_u64(event, "woken_task_id", 99),
				d9_event_u64(event, "target_worker", 99),
				d9_event_u64(event, "reason", 99));
			break;
		default:
			CU_FAIL("another event");
		}
	}
	CU_ASSERT_EQUAL(err, 0);
	d9_reader_free(reader);
	unlink(PATH);
	return story;
}

static void test_descriptor_that_the_wait_found_is_woken_at_its_end(void)
{
	begin();
	unpark(1000, 3);
	poll(1010, 3, 5, 1, 1020);
	poll(1020, 3, 6, 1, 1030);
	poll(1030, 3, 7, 0, 1040);
	CU_ASSERT_STRING_EQUAL(read_back(false), "Uw1000,0>5,3,1 w1000,0>6,3,1 ()()()");
	/* File order tells what is written. */
	CU_ASSERT_STRING_EQUAL(read_back(true), "U(1)(1)()");
	trace_free(&t);
}

static void test_wait_is_the_workers_own_and_in_its_batch(void)
{
	begin();
	unpark(1000, 3);
	unpark(1005, 4);
	poll(1010, 3, 5, 1, 1020);
	next_batch();
	poll(1030, 3, 6, 1, 1040);
	CU_ASSERT_STRING_EQUAL(read_back(false), "Uw1000,0>5,3,1 U()w1030,0>6,3,1 ()");
	trace_free(&t);
}

static void test_waker_is_the_poll_that_was_open_then(void)
{
	begin();
	unpark(1000, 0);
	poll(1010, 0, 5, 0, 1100);
	poll(1100, 0, 6, 0, 1200);
	/* In the first, at its end, at none's time, at the very beginning of the second. */
	poll(1300, 0, 7, delay(1300 - 1050, D9_WAKE_ACTIVE), 1310);
	poll(1310, 0, 8, delay(1310 - 1100, D9_WAKE_ACTIVE), 1320);
	poll(1320, 0, 9, delay(1320 - 1250, D9_WAKE_DEFERRED), 1330);
	poll(1330, 0, 10, delay(1330 - 1150, D9_WAKE_DEFERRED), 1340);
	/* The kernel wakes, whatever runs. */
	poll(1340, 0, 11, delay(1340 - 1150, D9_WAKE_FD), 1350);
	CU_ASSERT_STRING_EQUAL(read_back(false), "U(w1050,5>7,0,4 )(w1100,5>8,0,4 w1150,6>10,0,6 "
						 "w1150,0>11,0,1 )w1250,0>9,0,6 ()()()()()");
	trace_free(&t);
}

static void test_task_that_stays_ready_has_no_waker(void)
{
	begin();
	poll(1010, 0, 5, 0, 1100);
	poll(1100, 0, 6, 0, 1200);
	poll(1200, 0, 5, delay(100, D9_WAKE_DEFERRED), 1300);
	CU_ASSERT_STRING_EQUAL(read_back(false), "()(w1100,0>5,0,6 )()");
	trace_free(&t);
}

static void test_wake_longer_ago_than_the_batch_comes_in_time(void)
{
	begin();
	poll(5000, 1, 5, delay(4000, D9_WAKE_FD), 5100);
	next_batch();
	poll(2000, 2, 6, 0, 2100);
	CU_ASSERT_STRING_EQUAL(read_back(false), "w1000,0>5,1,1 ()()");
	trace_free(&t);
}

static void test_batch_that_is_not_in_order_has_its_wakes_in_order(void)
{
	begin();
	unpark(1000, 0);
	trace_event(&t, WAKE, UINT64_C(900), UINT64_C(0), UINT64_C(5), UINT64_C(0), UINT64_C(2));
	poll(1010, 0, 5, 0, 1020);
	poll(1020, 0, 6, 1, 1030);
	CU_ASSERT_STRING_EQUAL(read_back(false), "w900,0>5,0,2 Uw1000,0>6,0,1 ()()");
	trace_free(&t);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "descriptor that the wait found is woken at its end",
		  test_descriptor_that_the_wait_found_is_woken_at_its_end },
		{ "wait is the worker's own and in its batch",
		  test_wait_is_the_workers_own_and_in_its_batch },
		{ "waker is the poll that was open then",
		  test_waker_is_the_poll_that_was_open_then },
		{ "task that stays ready has no waker", test_task_that_stays_ready_has_no_waker },
		{ "wake longer ago than the batch comes in time",
		  test_wake_longer_ago_than_the_batch_comes_in_time },
		{ "batch that is not in order has its wakes in order",
		  test_batch_that_is_not_in_order_has_its_wakes_in_order },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("told_wakes", tests);
}
