/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/workers.h"
#include "record/chunk.h"
#include "record/health.h"
#include "record/ring_file.h"
#include "support/d9_test.h"

#define ALIVE   40
#define THREADS 10000

static struct d9_loop *loop;

/* ---- the table ---- */

static void release_all(void)
{
	for (unsigned i = 0; i < D9__WORKERS_MAX; i++)
		d9__workers_release(i, (struct d9__left){ 0, 0 });
}

static void test_ids_are_dense_and_start_at_zero(void)
{
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(d9__workers_take(100, "a", false), i);
	release_all();
}

static void test_freed_id_goes_to_the_same_name_first(void)
{
	CU_ASSERT_EQUAL(d9__workers_take(1, "b", false), 10);
	d9__workers_release(10, (struct d9__left){ 0, 0 });

	CU_ASSERT_EQUAL(d9__workers_take(2, "b", false), 10);
	CU_ASSERT_EQUAL(d9__workers_take(3, "b", false), 11);
	d9__workers_release(10, (struct d9__left){ 0, 0 });
	d9__workers_release(11, (struct d9__left){ 0, 0 });
}

static void test_never_used_ids_go_before_those_of_other_names(void)
{
	for (unsigned i = 12; i < D9__WORKERS_MAX; i++)
		CU_ASSERT_EQUAL(d9__workers_take(4, "c", false), (int)i);
	/* All were used: the longest free one. */
	CU_ASSERT_EQUAL(d9__workers_take(5, "d", false), 0);
	CU_ASSERT_EQUAL(d9__workers_take(5, "e", false), 1);
}

static void test_thread_without_an_id_is_counted(void)
{
	uint64_t before = d9__workers_dropped();

	while (d9__workers_take(6, "f", false) >= 0)
		;

	CU_ASSERT_EQUAL(d9__workers_dropped(), before + 1);
	release_all();
}

/* ---- threads ---- */

static pthread_barrier_t together;

static void *work(void *arg)
{
	struct d9_loop_run run;
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 } };

	d9_loop_enter(loop, &run);
	d9_poll_begin(&poll);
	d9_poll_end(&poll);
	if (arg)
		pthread_barrier_wait(arg);
	d9_loop_leave(&run);
	return NULL;
}

static void run_threads(unsigned n, void *arg)
{
	pthread_t threads[100];

	for (unsigned i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, arg);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void test_ten_thousand_threads_share_64_ids(void)
{
	uint64_t dropped = d9__workers_dropped();

	for (unsigned done = 0; done < THREADS; done += ALIVE) {
		const struct loop_events *events;

		run_threads(ALIVE, NULL);
		if (done % 400)
			continue;
		events = loop_events_collect();
		loop_events_sort();
		CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
		for (size_t i = 0; i < events->n; i++) {
			if (events->items[i].kind == LOOP_UNPARK)
				CU_ASSERT(events->items[i].worker < D9__WORKERS_MAX);
		}
	}
	loop_events_collect();
	CU_ASSERT_EQUAL(d9__workers_dropped(), dropped);
}

static void test_threads_in_a_row_share_a_chunk(void)
{
	uint32_t sealed = d9__chunk_sealed_count();
	const struct loop_events *events;

	for (unsigned i = 0; i < 100; i++)
		run_threads(1, NULL);

	CU_ASSERT(d9__chunk_sealed_count() <= sealed + 1);
	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_START), 100);
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
}

static void test_more_threads_at_once_than_ids_run_unrecorded(void)
{
	uint64_t dropped = d9__workers_dropped(), lost = d9__health_lost_by(D9__LOSS_NO_SLOT);
	const struct loop_events *events;

	pthread_barrier_init(&together, NULL, 100);
	run_threads(100, &together);
	pthread_barrier_destroy(&together);

	CU_ASSERT_EQUAL(d9__workers_dropped(), dropped + 100 - D9__WORKERS_MAX);
	/* The trace tells of it: once for each. */
	CU_ASSERT_EQUAL(d9__health_lost_by(D9__LOSS_NO_SLOT), lost + 100 - D9__WORKERS_MAX);
	/* Fewer if the test's ring had no chunk for some. */
	events = loop_events_collect();
	CU_ASSERT(loop_count(events, LOOP_START) <= D9__WORKERS_MAX);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "ids are dense and start at zero", test_ids_are_dense_and_start_at_zero },
		{ "freed id goes to the same name first", test_freed_id_goes_to_the_same_name_first },
		{ "never used ids go before those of other names",
		  test_never_used_ids_go_before_those_of_other_names },
		{ "thread without an id is counted", test_thread_without_an_id_is_counted },
		{ "ten thousand threads share 64 ids", test_ten_thousand_threads_share_64_ids },
		{ "threads in a row share a chunk", test_threads_in_a_row_share_a_chunk },
		{ "more threads at once than ids run unrecorded",
		  test_more_threads_at_once_than_ids_run_unrecorded },
		CU_TEST_INFO_NULL,
	};

	loop_clock_runs = true;
	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("workers", tests);
}
