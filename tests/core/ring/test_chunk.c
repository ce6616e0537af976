/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "core/record/fixture.h"
#include "support/d9_test.h"

#define T0      UINT64_C(5000000000)
#define EVENTS  200000u
#define THREADS 3u

static void emit_polls(struct d9__slot *slot, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		d9__emit_poll_end(slot, T0 + i, 0);
}

static void test_queue_gives_back_in_order_of_arrival(void)
{
	static struct d9__queue queue;
	uint32_t value;

	atomic_store(&queue.newest, UINT32_MAX - D9__CHUNKS_MAX); /* tickets wrap on the way */
	CU_ASSERT_FALSE(d9__queue_pop(&queue, &value));
	for (uint32_t lap = 0; lap < 3; lap++) {
		for (uint32_t i = 0; i < D9__CHUNKS_MAX; i++)
			d9__queue_push(&queue, i * 7 % D9__CHUNKS_MAX);
		CU_ASSERT_EQUAL(d9__queue_count(&queue), D9__CHUNKS_MAX);
		for (uint32_t i = 0; i < D9__CHUNKS_MAX; i++)
			CU_ASSERT_FATAL(d9__queue_pop(&queue, &value) &&
					value == i * 7 % D9__CHUNKS_MAX);
		CU_ASSERT_FALSE(d9__queue_pop(&queue, &value));
	}
}

static struct d9__queue contended;
static _Atomic(uint64_t) popped_sum, popped_count;

static void *pop_and_push(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t value;

		if (!(i % 2 ? d9__queue_pop(&contended, &value) != 0 : d9__queue_pop_any(&contended, &value)))
			continue;
		atomic_fetch_add(&popped_sum, value);
		atomic_fetch_add(&popped_count, 1);
		d9__queue_push(&contended, value);
	}
	return NULL;
}

static void test_queue_under_contention_loses_and_doubles_nothing(void)
{
	pthread_t thread[THREADS];
	uint64_t present = 0, expected = 0;
	uint32_t value;

	for (uint32_t i = 1; i <= 7; i++) {
		d9__queue_push(&contended, i);
		expected |= UINT64_C(1) << i;
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, pop_and_push, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	while (d9__queue_pop(&contended, &value)) {
		CU_ASSERT_FALSE(present & UINT64_C(1) << value);
		present |= UINT64_C(1) << value;
	}

	CU_ASSERT_EQUAL(present, expected);
	CU_ASSERT(popped_count > 0);
}

static void test_chunk_that_is_full_is_sealed_and_handed_over(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__batch batch;

	fixture_ring(8);
	emit_polls(d9__slot_self(), 12000);

	CU_ASSERT_EQUAL_FATAL(d9__chunk_pop_full(&batch), 1);
	CU_ASSERT_EQUAL(batch.slot, 0);
	CU_ASSERT_EQUAL(batch.serial, 1);
	CU_ASSERT_EQUAL(batch.first_ns, T0);
	CU_ASSERT(batch.last_ns > T0);
	CU_ASSERT(batch.len > D9__BATCH_MAX - D9__EMIT_ROOM);
	taken.events = batch.events;
	d9__chunk_release(&batch);
	fixture_drain_all(&taken, NULL, NULL);
	CU_ASSERT_EQUAL(taken.events, 12000);
}

static void test_chunk_that_was_written_is_used_again_before_a_fresh_one(void)
{
	struct d9__slot *slot;
	struct d9__batch batch;

	fixture_ring(8);
	slot = d9__slot_self();
	for (unsigned lap = 0; lap < 20; lap++) {
		emit_polls(slot, 12000);
		while (d9__chunk_pop_full(&batch)) {
			CU_ASSERT(batch.chunk < 3);
			d9__chunk_release(&batch);
		}
	}
}

static void test_chunk_prefix_taken_twice_gives_only_what_is_new(void)
{
	struct d9__slot *slot;
	struct d9__batch batch;
	uint32_t first_len;

	fixture_ring(8);
	slot = d9__slot_self();
	emit_polls(slot, 10);
	CU_ASSERT_EQUAL_FATAL(d9__chunk_pin_open(0, &batch), 1);
	CU_ASSERT_EQUAL(batch.events, 10);
	first_len = batch.len;
	d9__chunk_unpin(&batch, true);

	CU_ASSERT_EQUAL(d9__chunk_pin_open(0, &batch), 0); /* nothing new */
	emit_polls(slot, 5);
	CU_ASSERT_EQUAL_FATAL(d9__chunk_pin_open(0, &batch), 1);
	CU_ASSERT_EQUAL(batch.taken_bytes, first_len);
	CU_ASSERT_EQUAL(batch.events - batch.taken_events, 5);
	d9__chunk_unpin(&batch, true);
	d9__chunk_seal(slot);
	CU_ASSERT_EQUAL_FATAL(d9__chunk_pop_full(&batch), 1);
	CU_ASSERT_EQUAL(batch.taken_events, 15);
}

static void test_chunk_overrun_takes_the_oldest_and_counts_its_events(void)
{
	struct fixture_taken taken = { 0 };
	uint64_t from = 0, to = 0;

	fixture_ring(4);
	emit_polls(d9__slot_self(), EVENTS);
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.batches, 4);
	CU_ASSERT(fixture_lost_for(0, D9__LOSS_OVERRUN) > 0);
	CU_ASSERT_EQUAL(taken.events + fixture_lost(0), EVENTS);
	CU_ASSERT_EQUAL(d9__loss_take(&d9__ring.losses[0].cause[D9__LOSS_OVERRUN], 0, &from, &to), EVENTS - taken.events);
	CU_ASSERT_EQUAL(from, T0);
	CU_ASSERT(to > from && to < T0 + EVENTS);
}

static void test_chunk_pinned_while_overrun_is_freed_by_the_unpin(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__batch pinned;
	struct walk_totals totals;

	fixture_ring(4);
	emit_polls(d9__slot_self(), 100);
	CU_ASSERT_EQUAL_FATAL(d9__chunk_pin_open(0, &pinned), 1);
	emit_polls(d9__slot_self(), EVENTS); /* around the ring many times */
	totals = walk_batch(pinned.bytes, pinned.len, NULL, NULL);
	CU_ASSERT_PTR_NULL(totals.error); /* it was not overwritten */
	CU_ASSERT_EQUAL(totals.events, 100);
	d9__chunk_unpin(&pinned, true);
	taken.events = 100;
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.events + fixture_lost(0), EVENTS + 100);
	CU_ASSERT_EQUAL(d9__chunk_free_count(), 3); /* all but the open one */
}

static void test_chunk_none_at_all_drops_the_event_and_counts_it(void)
{
	struct d9__batch batch[4];
	unsigned n = 0;

	fixture_ring(4);
	while (n < 4) { /* all chunks in the hands of the consumer */
		d9__emit_poll_end(d9__slot_self(), T0, 0);
		d9__chunk_seal(d9__slot_self());
		CU_ASSERT_FATAL(d9__chunk_pop_full(&batch[n++]));
	}
	d9__emit_park(d9__slot_self(), T0, 0, 0, 0, 1);
	CU_ASSERT_EQUAL(fixture_lost_for(0, D9__LOSS_NO_CHUNK), 1);

	/* A gap in the serials tells, and the state behind it is that of the lost event. */
	d9__chunk_release(&batch[0]);
	d9__emit_unpark(d9__slot_self(), T0, 0, 0, 0, 0, 1);
	CU_ASSERT_EQUAL(fixture_lost_for(0, D9__LOSS_NO_CHUNK), 1);
	CU_ASSERT_EQUAL(d9__slot_self()->serial, 6);
	CU_ASSERT_EQUAL_FATAL(d9__chunk_pin_open(0, &batch[0]), 1);
	CU_ASSERT_EQUAL(batch[0].entry.state, D9__WORKER_PARKED);
	CU_ASSERT_EQUAL(batch[0].serial, 6);
	d9__chunk_unpin(&batch[0], false);
}

static void test_chunk_held_for_a_dump_is_not_recycled_and_keeps_its_place(void)
{
	struct d9__chunk_hold held[2 * D9__CHUNKS_MAX];
	struct d9__batch batch;
	unsigned i;

	fixture_ring(8);
	d9__chunk_set_recycling(true);
	for (i = 1; i <= 6; i++) { /* chunk i ends at i */
		d9__emit_poll_end(d9__slot_self(), T0 + i, 0);
		d9__chunk_seal(d9__slot_self());
	}
	/* The last two; then, with two free ones, of all six the newest four. */
	CU_ASSERT_EQUAL_FATAL(d9__chunk_hold(held, 0, T0 + 5, 0), 2);
	d9__chunk_held_batch(&held[0], &batch);
	CU_ASSERT_EQUAL(batch.last_ns, T0 + 5);
	CU_ASSERT_EQUAL(d9__chunk_full_count(), 4);
	CU_ASSERT_EQUAL(d9__chunk_hold(held, 2, 0, 0), 2);
	for (i = 0; i < 2; i++)
		d9__chunk_let_go(&held[i]);
	CU_ASSERT_EQUAL_FATAL(d9__chunk_hold(held, 0, 0, 4), 4);

	/* Two free ones and two that were left behind: nothing is lost, nothing held is touched. */
	for (i = 7; i <= 10; i++) {
		d9__emit_poll_end(d9__slot_self(), T0 + i, 0);
		d9__chunk_seal(d9__slot_self());
	}
	CU_ASSERT_EQUAL(fixture_lost(0), 0);
	CU_ASSERT_EQUAL(atomic_load(&d9__ring.control->recycled), 2);
	for (i = 0; i < 4; i++) {
		d9__chunk_held_batch(&held[i], &batch);
		CU_ASSERT_EQUAL(batch.last_ns, T0 + 3 + i);
		CU_ASSERT_EQUAL(batch.serial, 3 + i);
		d9__chunk_let_go(&held[i]);
	}
	d9__chunk_set_recycling(false);
	for (i = 3; d9__chunk_pop_full(&batch); i++) {
		CU_ASSERT_EQUAL(batch.serial, i);
		d9__chunk_release(&batch);
	}
	CU_ASSERT_EQUAL(i, 11);
}

static void *emit_thread(void *arg)
{
	_Atomic(uint32_t) *slot_index = arg;

	*slot_index = d9__slot_index(d9__slot_self());
	for (unsigned i = 0; i < EVENTS; i++)
		d9__emit_poll_end(d9__slot_self(), d9__slot_now(d9__slot_self()), *slot_index);
	return NULL;
}

static _Atomic(int) stop;
static uint64_t written[THREADS + 1];
static const char *consumer_error;

static void count_written(const struct d9__batch *batch)
{
	struct walk_totals totals = walk_batch(batch->bytes, batch->len, NULL, NULL);

	if (totals.error || totals.events != batch->events)
		consumer_error = totals.error ? totals.error : "count";
	written[batch->slot] += batch->events - batch->taken_events;
}

static void consume_some(void)
{
	struct d9__batch batch;

	for (unsigned n = 0; n < 2 && d9__chunk_pop_full(&batch); n++) {
		count_written(&batch);
		d9__chunk_release(&batch);
	}
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		if (d9__chunk_pin_open(i, &batch)) {
			count_written(&batch);
			d9__chunk_unpin(&batch, true);
		}
}

static void *consume_thread(void *arg)
{
	(void)arg;
	while (!stop) {
		consume_some();
		sched_yield();
	}
	return NULL;
}

/* Prefixes, full chunks and overruns race; every event is written or lost, never both. */
static void test_chunk_lost_and_written_are_all_that_was_recorded(void)
{
	pthread_t thread[THREADS], consumer;
	_Atomic(uint32_t) index[THREADS];
	struct fixture_taken left = { 0 };

	fixture_ring(6);
	stop = 0;
	pthread_create(&consumer, NULL, consume_thread, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, emit_thread, &index[i]);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	stop = 1;
	pthread_join(consumer, NULL);
	for (unsigned i = 0; i < 20; i++)
		consume_some();
	fixture_drain_all(&left, NULL, NULL);

	CU_ASSERT_PTR_NULL(consumer_error);
	CU_ASSERT_EQUAL(left.events, 0);
	for (unsigned i = 0, total = 0; i < d9__slot_high(); i++) {
		total = 0;
		for (unsigned t = 0; t < THREADS; t++)
			total += index[t] == i ? EVENTS : 0;
		CU_ASSERT_EQUAL(written[i] + fixture_lost((int)i), total);
	}
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "queue gives back in order of arrival",
		  test_queue_gives_back_in_order_of_arrival },
		{ "queue under contention loses and doubles nothing",
		  test_queue_under_contention_loses_and_doubles_nothing },
		{ "that is full is sealed and handed over",
		  test_chunk_that_is_full_is_sealed_and_handed_over },
		{ "that was written is used again before a fresh one",
		  test_chunk_that_was_written_is_used_again_before_a_fresh_one },
		{ "prefix taken twice gives only what is new",
		  test_chunk_prefix_taken_twice_gives_only_what_is_new },
		{ "overrun takes the oldest and counts its events",
		  test_chunk_overrun_takes_the_oldest_and_counts_its_events },
		{ "pinned while overrun is freed by the unpin",
		  test_chunk_pinned_while_overrun_is_freed_by_the_unpin },
		{ "none at all drops the event and counts it",
		  test_chunk_none_at_all_drops_the_event_and_counts_it },
		{ "held for a dump", test_chunk_held_for_a_dump_is_not_recycled_and_keeps_its_place },
		{ "lost and written are all that was recorded",
		  test_chunk_lost_and_written_are_all_that_was_recorded },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("chunk", tests);
}
