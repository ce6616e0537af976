/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/latency.h"
#include "analyze/stalls.h"
#include "support/d9_test.h"

/* A task on a worker, without a trace around them. */
struct bench {
	struct d9__callbacks callbacks;
	struct d9__latency latency;
	struct d9__worker worker;
	struct d9__traced_task task;
};

static void begin(struct bench *b)
{
	*b = (struct bench){ .task = { .id = 7 } };
	b->task.callback = d9__callbacks_at(&b->callbacks, "a+0x1 @ a+0x2", 13);
}

static void wake(struct bench *b, uint64_t ns, unsigned reason)
{
	d9__latency_wake(&b->latency, &b->task, ns, 0, reason);
}

/* A call; returns the delay that was counted for it, 0 if none. */
static uint64_t call(struct bench *b, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t before = b->latency.delays.sum;

	CU_ASSERT_EQUAL(d9__latency_start(&b->latency, &b->worker, &b->task, from_ns), 0);
	b->task.polled = true;
	b->task.last_start_ns = from_ns;
	b->task.last_end_ns = to_ns;
	return b->latency.delays.sum - before;
}

static void end(struct bench *b)
{
	d9__latency_release(&b->latency);
	d9__callbacks_release(&b->callbacks);
}

static void test_delay_counts_from_the_newest_wake(void)
{
	struct bench b;

	begin(&b);
	wake(&b, 100, D9__WAKE_FD);
	wake(&b, 150, D9__WAKE_FD);

	CU_ASSERT_EQUAL(call(&b, 400, 500), 250);
	end(&b);
}

static void test_wake_is_used_only_once(void)
{
	struct bench b;

	begin(&b);
	wake(&b, 100, D9__WAKE_FD);

	CU_ASSERT_EQUAL(call(&b, 400, 500), 300);
	CU_ASSERT_EQUAL(call(&b, 900, 950), 0);
	CU_ASSERT_EQUAL(b.latency.delays.count, 1);
	end(&b);
}

static void test_wake_during_a_call_counts_from_its_end(void)
{
	struct bench b;

	begin(&b);
	call(&b, 100, 500);
	wake(&b, 300, D9__WAKE_ACTIVE);

	CU_ASSERT_EQUAL(call(&b, 600, 700), 100);
	end(&b);
}

static void test_wake_read_after_the_poll_of_the_same_stamp_belongs_to_that_poll(void)
{
	struct bench b;

	begin(&b);
	call(&b, 100, 500);
	wake(&b, 100, D9__WAKE_FD);

	CU_ASSERT_EQUAL(call(&b, 600, 700), 0);
	end(&b);
}

static void test_wait_with_lost_events_in_it_is_not_known(void)
{
	struct bench b;

	begin(&b);
	wake(&b, 100, D9__WAKE_FD);
	b.worker.lost_from_ns = 200;
	b.worker.lost_to_ns = 300;
	CU_ASSERT_EQUAL(call(&b, 400, 500), 0);
	CU_ASSERT_EQUAL(b.latency.newest_ns, UINT64_MAX);

	wake(&b, 600, D9__WAKE_FD);
	CU_ASSERT_EQUAL(call(&b, 650, 700), 50);
	end(&b);
}

static void test_wait_of_more_than_a_second_counts(void)
{
	struct bench b;

	begin(&b);
	wake(&b, 0, D9__WAKE_FD);

	CU_ASSERT_EQUAL(call(&b, 3 * D9__SECOND_NS, 3001 * D9__MS_NS), 3 * D9__SECOND_NS);
	end(&b);
}

static void test_timer_lateness_counts_from_the_deadline(void)
{
	struct bench b;

	begin(&b);
	call(&b, 100, 900);
	wake(&b, 500, D9__WAKE_TIMER);
	call(&b, 1000, 1100);

	/* As a wait it begins with the end of the previous call, as lateness it does not. */
	CU_ASSERT_EQUAL(b.latency.delays.max, 100);
	CU_ASSERT_EQUAL(b.latency.lateness.max, 500);
	end(&b);
}

static void test_timer_that_is_in_time_counts_as_zero_late(void)
{
	struct bench b;

	begin(&b);
	wake(&b, 500, D9__WAKE_TIMER);
	call(&b, 500, 600);

	CU_ASSERT_EQUAL(b.latency.lateness.count, 1);
	CU_ASSERT_EQUAL(b.latency.lateness.max, 0);
	end(&b);
}

static void test_deadline_that_passes_before_an_overdue_call_waits_for_its_own(void)
{
	struct bench b;

	begin(&b);
	wake(&b, 100, D9__WAKE_TIMER);
	wake(&b, 200, D9__WAKE_TIMER);
	call(&b, 300, 310);
	CU_ASSERT_EQUAL(b.latency.lateness.max, 200);
	call(&b, 320, 330);

	CU_ASSERT_EQUAL(b.latency.lateness.count, 2);
	CU_ASSERT_EQUAL(b.latency.lateness.sum, 200 + 120);
	end(&b);
}

static void test_two_long_calls_together_explain_a_wait(void)
{
	struct bench b;
	struct d9__stall *first, *second;

	begin(&b);
	first = d9__stall_new();
	second = d9__stall_new();
	first->start_ns = 10 * D9__MS_NS;
	first->end_ns = 40 * D9__MS_NS;
	second->start_ns = 40 * D9__MS_NS;
	second->end_ns = b.worker.stalls_end_ns = 80 * D9__MS_NS;
	d9__worker_add_stall(&b.worker, first);
	d9__worker_add_stall(&b.worker, second);
	wake(&b, 10 * D9__MS_NS, D9__WAKE_FD);
	call(&b, 81 * D9__MS_NS, 82 * D9__MS_NS);

	CU_ASSERT_EQUAL(b.latency.behind_long, 1);
	CU_ASSERT_EQUAL(first->waited, 1);
	CU_ASSERT_EQUAL(second->victims[0].delay_ns, 71 * D9__MS_NS);
	for (size_t i = 0; i < 2; i++)
		d9__stall_unref(b.worker.stalls[i]);
	d9__stall_unref(first);
	d9__stall_unref(second);
	end(&b);
}

static void test_wake_without_a_reason_is_counted_as_unknown(void)
{
	struct bench b;

	begin(&b);
	wake(&b, 100, UINT32_MAX);
	call(&b, 200, 300);

	CU_ASSERT_FALSE(b.latency.reasons);
	CU_ASSERT_EQUAL(b.latency.by_reason[D9__WAKE_UNKNOWN], 1);
	CU_ASSERT_EQUAL(b.latency.lateness.count, 0);
	end(&b);
}

static const CU_TestInfo tests[] = {
	{ "delay counts from the newest wake", test_delay_counts_from_the_newest_wake },
	{ "wake is used only once", test_wake_is_used_only_once },
	{ "wake during a call counts from its end", test_wake_during_a_call_counts_from_its_end },
	{ "wake read after the poll of the same stamp belongs to that poll",
	  test_wake_read_after_the_poll_of_the_same_stamp_belongs_to_that_poll },
	{ "wait with lost events in it is not known", test_wait_with_lost_events_in_it_is_not_known },
	{ "wait of more than a second counts", test_wait_of_more_than_a_second_counts },
	{ "timer lateness counts from the deadline",
	  test_timer_lateness_counts_from_the_deadline },
	{ "timer that is in time counts as zero late",
	  test_timer_that_is_in_time_counts_as_zero_late },
	{ "deadline that passes before an overdue call waits for its own",
	  test_deadline_that_passes_before_an_overdue_call_waits_for_its_own },
	{ "two long calls together explain a wait",
	  test_two_long_calls_together_explain_a_wait },
	{ "wake without a reason is counted as unknown",
	  test_wake_without_a_reason_is_counted_as_unknown },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("latency", tests);
}
