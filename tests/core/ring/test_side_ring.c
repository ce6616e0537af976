/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/sanitized.h"
#include "core/record/fixture.h"
#include "ring/side_ring.h"
#include "support/d9_test.h"

#define T0 UINT64_C(5000000000)

static void put(struct d9__slot *slot, uint64_t ns, uint8_t byte, uint32_t len)
{
	uint8_t *p = d9__side_begin(slot, D9__EVENT_QUEUE_SAMPLE, ns, len);

	if (!p)
		return;
	memset(p, byte, len);
	d9__side_end(slot, p + len);
}

static bool holds(const struct d9__side_record *record, uint64_t ns, uint8_t byte, uint32_t len)
{
	for (uint32_t i = 0; i < record->len; i++)
		if (record->payload[i] != byte)
			return false;
	return record->ns == ns && record->len == len;
}

static void test_side_record_is_taken_as_it_was_put(void)
{
	struct d9__side_record record;

	fixture_ring(8);
	put(d9__slot_self(), T0, 7, 3);
	CU_ASSERT_EQUAL_FATAL(d9__side_take(0, &record), 1);
	CU_ASSERT_EQUAL(record.type_id, D9__EVENT_QUEUE_SAMPLE);
	CU_ASSERT(holds(&record, T0, 7, 3));
	CU_ASSERT_EQUAL(d9__side_take(0, &record), 0);
}

static void test_side_records_nest_and_wait_for_the_outer_one(void)
{
	struct d9__side_record record;
	struct d9__slot *slot;
	uint8_t *outer;

	fixture_ring(8);
	slot = d9__slot_self();
	outer = d9__side_begin(slot, D9__EVENT_WAKE, T0, 2);
	put(slot, T0 + 1, 1, 5);
	CU_ASSERT_EQUAL(d9__side_take(0, &record), 0);
	*outer = 9;
	d9__side_end(slot, outer + 1);
	CU_ASSERT_EQUAL(d9__side_take(0, &record), 1);
	CU_ASSERT(holds(&record, T0, 9, 1));
	CU_ASSERT_EQUAL(d9__side_take(0, &record), 1);
	CU_ASSERT(holds(&record, T0 + 1, 1, 5));
}

static void test_side_ring_goes_around_and_counts_what_does_not_fit(void)
{
	struct d9__side_record record;
	struct d9__slot *slot;
	unsigned put_in = 0, out = 0, bad = 0;

	fixture_ring(8);
	slot = d9__slot_self();
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 200; i++, put_in++)
			put(slot, put_in, (uint8_t)i, (put_in * 37) % D9__SIDE_PAYLOAD_MAX + 1);
		for (uint64_t last = 0; d9__side_take(0, &record); out++, last = record.ns)
			bad += record.ns < last ||
			       record.len != (record.ns * 37) % D9__SIDE_PAYLOAD_MAX + 1;
	}
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT(fixture_lost_for(0, D9__LOSS_SIDE_RING) > 0);
	CU_ASSERT_EQUAL(out + fixture_lost(0), put_in);
	CU_ASSERT_PTR_NULL(d9__side_begin(slot, 1, T0, D9__SIDE_PAYLOAD_MAX + 1));
	CU_ASSERT_EQUAL(fixture_lost_for(0, D9__LOSS_TOO_BIG), 1);
}

/* TSan keeps a signal back until the thread calls something. */
#define HANDLED (D9__SANITIZED == 2 ? 200 : 5000)

static _Atomic(unsigned) handled, nested, stop;
static struct d9__slot *victim;

/* Recorded inside whatever it interrupted; once in three a second handler comes on top. */
static void handler(int number)
{
	uint8_t *p;

	if (number == SIGUSR2) {
		nested++;
	} else if (++handled % 3 == 0) {
		raise(SIGUSR2);
	}
	d9__emit_wake(victim, d9__slot_now(victim), 1, 2, 0, 3);
	p = d9__emit_begin(victim, D9__EVENT_QUEUE_SAMPLE, d9__slot_now(victim), 1);
	if (!p)
		return;
	if (number == SIGUSR1 && handled % 5 == 0)
		raise(SIGUSR2); /* between begin and end */
	*p++ = 1;
	d9__emit_end(victim, p);
}

static _Atomic(uint64_t) side_taken;

static void take_side(void)
{
	struct d9__side_record record;

	while (d9__side_take(0, &record))
		side_taken++;
}

static void *shoot(void *arg)
{
	while (!stop) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		take_side();
		sched_yield();
	}
	return NULL;
}

static uint64_t wakes_and_samples;

static void count_handlers(const struct walk_event *event, void *arg)
{
	(void)arg;
	wakes_and_samples += walk_is(event, "WakeEventEvent") || walk_is(event, "QueueSampleEvent");
}

static void test_side_ring_takes_what_handlers_record_inside_an_event(void)
{
	/* Each signal waits for its own handler: two deep, or a busy machine nests without end. */
	struct sigaction action = { .sa_handler = handler };
	struct fixture_taken taken = { 0 };
	pthread_t self = pthread_self(), shooter;
	uint32_t loc = d9__name_intern("callback", 8);
	unsigned polls = 0;

	fixture_ring(32);
	victim = d9__slot_self();
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	pthread_create(&shooter, NULL, shoot, &self);
	while (handled < HANDLED && polls < 20000000) {
		d9__emit_poll_start(victim, d9__slot_now(victim), 0, 1, 1, loc);
		d9__emit_poll_end(victim, d9__slot_now(victim), 0);
		if (++polls % 4096 == 0)
			fixture_drain(&taken, count_handlers, NULL);
	}
	stop = 1;
	pthread_join(shooter, NULL);
	take_side();
	fixture_drain_all(&taken, count_handlers, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.events - wakes_and_samples, 2 * polls);
	CU_ASSERT_EQUAL(wakes_and_samples + side_taken + fixture_lost(0), 2 * (handled + nested));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "record is taken as it was put", test_side_record_is_taken_as_it_was_put },
		{ "records nest and wait for the outer one",
		  test_side_records_nest_and_wait_for_the_outer_one },
		{ "goes around and counts what does not fit",
		  test_side_ring_goes_around_and_counts_what_does_not_fit },
		{ "takes what handlers record inside an event",
		  test_side_ring_takes_what_handlers_record_inside_an_event },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("side_ring", tests);
}
