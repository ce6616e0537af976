/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/record/fixture.h"
#include "support/d9_test.h"

#define T0     UINT64_C(5000000000)
#define SECOND UINT64_C(1000000000)

static void *record_three(void *arg)
{
	struct d9__slot *slot = d9__slot_self();

	for (unsigned i = 0; slot && i < 3; i++)
		d9__emit_wake(slot, d9__slot_now(slot), 0, 1, 255, 0);
	return arg;
}

static void run_threads(unsigned rounds, unsigned at_once)
{
	pthread_t thread[16];

	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < at_once; i++)
			pthread_create(&thread[i], NULL, record_three, NULL);
		for (unsigned i = 0; i < at_once; i++)
			pthread_join(thread[i], NULL);
	}
}

static void test_slot_of_short_threads_is_reused_with_its_chunk(void)
{
	struct fixture_taken taken = { 0 };
	uint64_t lost = 0;

	fixture_ring(32);
	run_threads(300, 4);
	CU_ASSERT(d9__slot_high() <= 4);
	CU_ASSERT(d9__chunk_free_count() >= D9__CHUNKS_FIRST - 4);
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		lost += fixture_lost((int)i);
	CU_ASSERT_EQUAL(taken.events, 300 * 4 * 3);
	CU_ASSERT_EQUAL(lost, 0);
}

static void *park_once(void *arg)
{
	struct d9__left *left = arg;

	d9__emit_park(d9__slot_self(), T0, 1, 0, 0, 1);
	*left = d9__slot_leave();
	return NULL;
}

/* Worker 1 is a thread that ends; what it was is returned. */
static struct d9__left worker_ended(void)
{
	struct d9__left left = { 0, 0 };
	pthread_t thread;

	pthread_create(&thread, NULL, park_once, &left);
	pthread_join(thread, NULL);
	return left;
}

static void test_slot_of_a_worker_that_ends_is_the_next_ones_with_its_chunk(void)
{
	struct d9__left left;
	struct d9__batch batch;

	fixture_ring(8);
	left = worker_ended();
	CU_ASSERT_TRUE(d9__slot_follow(&left, 1, false));
	CU_ASSERT_EQUAL(d9__slot_index(d9__slot_self()), left.slot - 1);
	CU_ASSERT(d9__slot_tid(d9__slot_self()) != left.tid);
	d9__emit_poll_end(d9__slot_self(), T0, 1);
	CU_ASSERT_EQUAL(d9__chunk_sealed_count(), 0);
	CU_ASSERT_EQUAL(d9__chunk_pin_open(left.slot - 1, &batch), 1);
	CU_ASSERT_EQUAL(batch.events, 2);
	d9__chunk_unpin(&batch, false);
}

/* The worker's next events are in another slot: those before come first in the file. */
static void test_slot_of_a_worker_that_ends_is_emptied_for_a_thread_that_stays_in_its_own(void)
{
	struct d9__left left;
	struct d9__batch batch;

	fixture_ring(8);
	record_three(NULL);
	left = worker_ended();
	CU_ASSERT_EQUAL(d9__chunk_full_count(), 0);
	CU_ASSERT_TRUE(d9__slot_follow(&left, 1, false));
	CU_ASSERT_NOT_EQUAL(d9__slot_index(d9__slot_self()), left.slot - 1);
	CU_ASSERT_EQUAL(d9__chunk_pop_full(&batch), 1);
	CU_ASSERT_EQUAL(batch.events, 1);
	CU_ASSERT_EQUAL(batch.exit.worker, 1);
	CU_ASSERT(left.tid != 0 && batch.tid == left.tid);
	/* Nothing is left to hand over: to follow it again succeeds at once. */
	CU_ASSERT_TRUE(d9__slot_follow(&left, 1, true));
	CU_ASSERT_NOT_EQUAL(d9__slot_index(d9__slot_self()), left.slot - 1);
}

static void test_slot_of_a_worker_that_ends_is_taken_instead_of_one_that_knows_none(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__left left;
	uint32_t before;

	fixture_ring(8);
	record_three(NULL);
	before = d9__slot_index(d9__slot_self());
	left = worker_ended();
	CU_ASSERT_TRUE(d9__slot_follow(&left, 1, true));
	CU_ASSERT_EQUAL(d9__slot_index(d9__slot_self()), left.slot - 1);
	CU_ASSERT_NOT_EQUAL(before, left.slot - 1);
	record_three(NULL);
	fixture_drain_all(&taken, NULL, NULL);
	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.events, 7);
}

/* The thread has not given its slot back, or another thread is about to hand over what it left. */
static void test_slot_that_others_are_busy_with_is_not_followed(void)
{
	struct d9__left left;
	struct d9__slot *slot;
	uint64_t idle;

	fixture_ring(8);
	left = worker_ended();
	slot = &d9__ring.slots[left.slot - 1];
	idle = slot->owner;
	slot->owner = (uint64_t)D9__SLOT_TAKEN << 32 | left.tid;
	CU_ASSERT_FALSE(d9__slot_follow(&left, 1, true));
	slot->owner = (uint64_t)D9__SLOT_CLAIMED << 32 | (left.tid + 1);
	CU_ASSERT_FALSE(d9__slot_follow(&left, 1, true));
	/* The thread that has the slot now has handed it over. */
	slot->owner = (uint64_t)D9__SLOT_TAKEN << 32 | (left.tid + 1);
	CU_ASSERT_TRUE(d9__slot_follow(&left, 1, true));
	slot->owner = idle;
	CU_ASSERT_TRUE(d9__slot_follow(&left, 1, true));
}

static void test_slot_of_a_worker_that_ends_gives_its_chunk_when_chunks_are_short(void)
{
	struct d9__batch batch;

	fixture_ring(8);
	worker_ended();
	CU_ASSERT_EQUAL(d9__slot_seal_idle(D9__CHUNKS_FIRST), 1);
	CU_ASSERT_EQUAL(d9__chunk_pop_full(&batch), 1);
	CU_ASSERT_EQUAL(batch.exit.worker, 1);
}

static _Atomic(unsigned) exits;

static void on_exit_record(void)
{
	struct d9__slot *slot = d9__slot_self();

	exits++;
	d9__emit_wake(slot, d9__slot_now(slot), 0, 1, 255, 0);
}

static void test_slot_of_a_thread_that_ends_records_once_more(void)
{
	struct fixture_taken taken = { 0 };

	fixture_ring(8);
	CU_ASSERT_EQUAL(d9__slot_on_exit(on_exit_record), 0);
	run_threads(1, 1);
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_EQUAL(exits, 1);
	CU_ASSERT_EQUAL(taken.events, 4);
}

static void *end_inside_an_event(void *arg)
{
	record_three(arg);
	d9__emit_begin(d9__slot_self(), D9__EVENT_QUEUE_SAMPLE, T0, 1);
	return NULL;
}

/* As after an asynchronous cancellation. */
static void test_slot_of_a_thread_that_ends_inside_an_event_still_closes_its_worker(void)
{
	struct fixture_taken taken = { 0 };
	pthread_t thread;

	fixture_ring(8);
	pthread_create(&thread, NULL, end_inside_an_event, NULL);
	pthread_join(thread, NULL);
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.events, 4); /* three, and on_exit_record()'s */
	CU_ASSERT_EQUAL(fixture_lost(0), 0);
}

static pthread_key_t late_key;

static void record_late(void *value)
{
	/* The third round of destructors is after the recorder's two. */
	if ((uintptr_t)value < 3) {
		pthread_setspecific(late_key, (char *)value + 1);
		return;
	}
	record_three(NULL);
}

static void *end_late(void *arg)
{
	pthread_setspecific(late_key, (void *)1);
	return record_three(arg);
}

static void test_slot_after_it_was_given_back_drops_and_counts(void)
{
	pthread_t thread;

	fixture_ring(8);
	pthread_key_create(&late_key, record_late);
	pthread_create(&thread, NULL, end_late, NULL);
	pthread_join(thread, NULL);

	CU_ASSERT_EQUAL(fixture_lost_for(-1, D9__LOSS_THREAD_EXIT), 1);
	CU_ASSERT_EQUAL(d9__slot_self() != NULL, 1);
	pthread_key_delete(late_key);
}

static void *hold_slot(void *arg)
{
	pthread_barrier_t *barrier = arg;

	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

static void test_slot_that_is_not_to_be_had_is_counted(void)
{
	fixture_ring(8);
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++) {
		d9__self.slot = NULL; /* as if each were another thread's */
		CU_ASSERT_PTR_NOT_NULL_FATAL(d9__slot_self());
	}
	d9__self.slot = NULL;
	CU_ASSERT_PTR_NULL(d9__slot_self());
	CU_ASSERT_PTR_NULL(d9__slot_self());
	CU_ASSERT_EQUAL(fixture_lost_for(-1, D9__LOSS_NO_SLOT), 2);
}

/* Ends in the middle of an event, and its destructor finds nothing, as after a raw exit. */
static void *vanish(void *arg)
{
	record_three(arg);
	d9__emit_begin(d9__slot_self(), D9__EVENT_QUEUE_SAMPLE, T0, 1);
	d9__self.slot = NULL;
	return NULL;
}

static void test_slot_of_a_thread_that_vanished_is_reclaimed(void)
{
	struct fixture_taken taken = { 0 };
	pthread_t thread;
	unsigned n = 0;

	fixture_ring(8);
	pthread_create(&thread, NULL, vanish, NULL);
	pthread_join(thread, NULL);
	/* The kernel knows the thread for a moment longer than who joins it. */
	for (unsigned i = 0; i < 10000 && !n; i++) {
		n = d9__slot_reclaim_dead((100 + 11 * i) * SECOND);
		sched_yield();
	}
	CU_ASSERT_EQUAL(n, 1);
	fixture_drain_all(&taken, NULL, NULL);
	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.events, 3);
	CU_ASSERT_EQUAL(d9__slot_index(d9__slot_self()), 0);
	CU_ASSERT_FALSE(d9__slot_self()->busy);
}

static void test_slot_of_a_living_thread_is_not_reclaimed(void)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	fixture_ring(8);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, hold_slot, &barrier);
	pthread_barrier_wait(&barrier);
	record_three(NULL);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(d9__slot_reclaim_dead((100 + 11 * i) * SECOND), 0);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
}

static void test_slot_that_is_idle_gives_its_chunk_when_chunks_are_short(void)
{
	struct fixture_taken taken = { 0 };

	fixture_ring(8);
	run_threads(1, 4);
	CU_ASSERT(d9__slot_seal_idle(D9__CHUNKS_FIRST) > 0);
	CU_ASSERT_EQUAL(d9__chunk_free_count() + d9__chunk_full_count(), D9__CHUNKS_FIRST);
	fixture_drain(&taken, NULL, NULL);
	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(d9__chunk_free_count(), D9__CHUNKS_FIRST);
}

/* A slot that a hook still holds when the ring is forgotten: nothing is written, nothing crashes. */
static void test_slot_of_a_forgotten_ring_is_dead_and_silent(void)
{
	struct d9__slot *old;

	fixture_ring(8);
	old = d9__slot_self();
	d9__emit_poll_end(old, T0, 1);
	d9__ring_forget_in_child();
	d9__slot_forget_in_child();
	CU_ASSERT_FALSE(d9__gate_open(D9__GATE_ALL));
	CU_ASSERT_PTR_NULL(d9__slot_self());
	fixture_ring(8);
	d9__emit_poll_start(old, d9__slot_now(old), 1, 0, 1, D9__NAME_EMPTY);
	d9__emit_wake(old, T0, 0, 1, 0, 0);
	CU_ASSERT_PTR_NULL(d9__emit_begin(old, D9__EVENT_QUEUE_SAMPLE, T0, 1));
	CU_ASSERT_EQUAL(d9__slot_high(), 0);
	CU_ASSERT_PTR_NOT_EQUAL(d9__slot_self(), old);
}

static void test_slot_of_the_parent_is_untouched_by_a_child_that_forgets(void)
{
	struct fixture_taken taken = { 0 };
	int status = -1;
	pid_t child;

	fixture_ring(8);
	record_three(NULL);
	child = fork();
	if (child == 0) {
		d9__ring_forget_in_child();
		d9__slot_forget_in_child();
		record_three(NULL);
		fixture_ring(8);
		record_three(NULL);
		fixture_drain_all(&taken, NULL, NULL);
		_exit(taken.events == 3 && !taken.error ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	record_three(NULL);
	fixture_drain_all(&taken, NULL, NULL);
	CU_ASSERT_EQUAL(taken.events, 6);
}

static void test_slot_keeps_errno(void)
{
	fixture_ring(8);
	errno = EXDEV;
	d9__slot_self();
	CU_ASSERT_EQUAL(errno, EXDEV);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "of short threads is reused with its chunk",
		  test_slot_of_short_threads_is_reused_with_its_chunk },
		{ "of a worker that ends is the next one's with its chunk",
		  test_slot_of_a_worker_that_ends_is_the_next_ones_with_its_chunk },
		{ "of a worker that ends is emptied for a thread that stays in its own",
		  test_slot_of_a_worker_that_ends_is_emptied_for_a_thread_that_stays_in_its_own },
		{ "of a worker that ends is taken instead of one that knows none",
		  test_slot_of_a_worker_that_ends_is_taken_instead_of_one_that_knows_none },
		{ "that others are busy with is not followed",
		  test_slot_that_others_are_busy_with_is_not_followed },
		{ "of a worker that ends gives its chunk when chunks are short",
		  test_slot_of_a_worker_that_ends_gives_its_chunk_when_chunks_are_short },
		{ "of a thread that ends records once more",
		  test_slot_of_a_thread_that_ends_records_once_more },
		{ "of a thread that ends inside an event still closes its worker",
		  test_slot_of_a_thread_that_ends_inside_an_event_still_closes_its_worker },
		{ "after it was given back drops and counts",
		  test_slot_after_it_was_given_back_drops_and_counts },
		{ "that is not to be had is counted", test_slot_that_is_not_to_be_had_is_counted },
		{ "of a thread that vanished is reclaimed",
		  test_slot_of_a_thread_that_vanished_is_reclaimed },
		{ "of a living thread is not reclaimed",
		  test_slot_of_a_living_thread_is_not_reclaimed },
		{ "that is idle gives its chunk when chunks are short",
		  test_slot_that_is_idle_gives_its_chunk_when_chunks_are_short },
		{ "of a forgotten ring is dead and silent",
		  test_slot_of_a_forgotten_ring_is_dead_and_silent },
		{ "of the parent is untouched by a child that forgets",
		  test_slot_of_the_parent_is_untouched_by_a_child_that_forgets },
		{ "keeps errno", test_slot_keeps_errno },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("slot", tests);
}
