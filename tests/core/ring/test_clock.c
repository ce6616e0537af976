/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block/call.h"
#include "core/record/fixture.h"
#include "core/record/stepping.h"
#include "support/d9_test.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* A machine whose ticks run at 2 GHz: 1 ns is 2 ticks. */
static uint64_t mono, ticks;

static uint64_t read_mono(void)
{
	return mono;
}

static uint64_t read_ticks(void)
{
	return ticks;
}

static void pass(uint64_t ns)
{
	mono += ns;
	ticks += 2 * ns;
}

/* Time passes with the flush thread at work. */
static void pass_ticking(uint64_t ns)
{
	for (uint64_t i = 0; i < ns / (100 * MS); i++) {
		pass(100 * MS);
		d9__clock_tick(NULL);
	}
}

static struct d9__slot *start_fake(void)
{
	mono = 1000 * SECOND;
	ticks = UINT64_C(1) << 40;
	d9__clock_fake(read_ticks, read_mono);
	fixture_ring(8);
	d9__clock_start(D9__CLOCK_AUTO);
	return d9__slot_self();
}

static enum d9__clock_kind kind(void)
{
	struct d9__clock_status status;

	d9__clock_status(&status);
	return status.kind;
}

static uint64_t steps(void)
{
	struct d9__clock_status status;

	d9__clock_status(&status);
	return status.steps;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void test_clock_changes_to_ticks_after_100_ms(void)
{
	struct d9__slot *slot = start_fake();

	CU_ASSERT_EQUAL(d9__slot_now(slot), mono);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	pass(50 * MS);
	d9__clock_tick(NULL);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	pass(50 * MS);
	d9__clock_tick(NULL);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_FAKE);
	d9__slot_now(slot);
	CU_ASSERT_EQUAL(slot->clock, D9__CLOCK_FAKE);
	pass(12345);
	CU_ASSERT(distance(d9__slot_now(slot), mono) <= 1);
}

static void test_clock_stays_right_when_the_flush_thread_starves(void)
{
	struct d9__slot *slot = start_fake();

	pass_ticking(SECOND);
	for (unsigned i = 0; i < 100; i++) {
		pass(i % 7 * 100 * MS + 1000);
		CU_ASSERT(distance(d9__slot_now(slot), mono) <= 20);
	}
	CU_ASSERT_EQUAL(steps(), 0);
}

static void test_clock_follows_drift_of_500_ppm(void)
{
	struct d9__slot *slot = start_fake();

	pass_ticking(2 * SECOND);
	for (unsigned i = 0; i < 100; i++) {
		mono += 100 * MS + 50000; /* 500 ppm faster than before */
		ticks += 200 * MS;
		d9__clock_tick(NULL);
		CU_ASSERT(distance(d9__slot_now(slot), mono) <= 200000);
	}
	CU_ASSERT(distance(d9__slot_now(slot), mono) <= 150000);
	CU_ASSERT_EQUAL(steps(), 0);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_FAKE);
}

/* Drift of the crystal, and slewing by NTP, at their worst; a conversion is 350 ms old at most. */
static void test_clock_follows_a_rate_that_changes_by_1000_ppm(void)
{
	static const int64_t ppm[] = { 1000, 0, -500, 500, -500, 0, 1000 };
	struct d9__slot *slot = start_fake();
	uint64_t worst = 0, late;

	pass_ticking(2 * SECOND);
	for (size_t i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++)
		for (unsigned j = 0; j < 30; j++) {
			mono += 100 * MS + (uint64_t)(ppm[i] * 100);
			ticks += 200 * MS;
			late = distance(d9__slot_now(slot), mono);
			worst = late > worst ? late : worst;
			d9__clock_tick(NULL);
		}
	CU_ASSERT(worst <= 350000);
	CU_ASSERT(distance(d9__slot_now(slot), mono) <= 150000);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_FAKE);
}

static void test_clock_whose_ticks_jump_ahead_keeps_its_order(void)
{
	struct d9__slot *slot = start_fake();
	uint64_t before;

	pass_ticking(SECOND);
	d9__slot_now(slot);
	ticks += 20 * SECOND; /* further than a conversion is valid */
	CU_ASSERT(distance(d9__slot_now(slot), mono) <= 20);
	pass_ticking(SECOND);
	d9__slot_now(slot);
	ticks += 60 * MS; /* 30 ms, which do not show before the next anchor */
	before = d9__slot_now(slot);
	CU_ASSERT(before >= mono && before <= mono + 31 * MS);
	pass(MS);
	d9__clock_tick(NULL);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	CU_ASSERT(d9__slot_now(slot) >= before);
	mono += SECOND;
	CU_ASSERT_EQUAL(d9__slot_now(slot), mono);
}

static void test_clock_never_goes_back_within_a_slot(void)
{
	struct d9__slot *slot = start_fake();
	uint64_t before;

	pass_ticking(SECOND);
	before = d9__slot_now(slot);
	ticks -= 100; /* another processor, 50 ns behind */
	CU_ASSERT_EQUAL(d9__slot_now(slot), before);
	CU_ASSERT_EQUAL(steps(), 0);
	ticks += 10 * MS;
	mono += 5 * MS;
	before = d9__slot_now(slot);
	ticks -= 8 * MS; /* 4 ms back: a step */
	CU_ASSERT_EQUAL(d9__slot_now(slot), before);
	CU_ASSERT_EQUAL(steps(), 1);
}

static void test_clock_whose_ticks_restart_is_left_until_two_slopes_agree(void)
{
	struct d9__slot *slot = start_fake();

	pass_ticking(SECOND);
	d9__slot_now(slot);
	ticks = 5; /* a virtual machine was resumed */
	mono += MS;
	CU_ASSERT(distance(d9__slot_now(slot), mono) <= 20); /* anchors by itself */
	d9__clock_tick(NULL);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	CU_ASSERT_EQUAL(steps(), 1);
	CU_ASSERT_EQUAL(d9__slot_now(slot), mono);
	pass_ticking(200 * MS);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	pass_ticking(300 * MS);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_FAKE);
	pass(777);
	CU_ASSERT(distance(d9__slot_now(slot), mono) <= 20);
}

static void test_clock_that_steps_three_times_in_an_hour_is_left_for_good(void)
{
	struct d9__slot *slot = start_fake();

	for (unsigned i = 0; i < 3; i++) {
		pass_ticking(2 * SECOND);
		CU_ASSERT_EQUAL(kind(), D9__CLOCK_FAKE);
		ticks += 20 * SECOND; /* ran on while the clock stood still */
		d9__clock_tick(NULL);
		CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	}
	pass_ticking(10 * SECOND);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	CU_ASSERT_EQUAL(d9__slot_now(slot), mono);
}

static void test_clock_that_stops_is_noticed(void)
{
	struct d9__slot *slot = start_fake();

	pass_ticking(2 * SECOND);
	d9__slot_now(slot);
	mono += 10 * SECOND; /* ticks stood still */
	d9__clock_tick(NULL);
	CU_ASSERT_EQUAL(steps(), 1);
	CU_ASSERT_EQUAL(d9__slot_now(slot), mono);
}

/* As of a counter of |hz|, after 2 s. */
static enum d9__clock_kind kind_at(uint64_t hz, struct d9__slot **slot)
{
	*slot = start_fake();
	for (unsigned i = 1; i <= 20; i++) {
		mono += 100 * MS;
		ticks = (UINT64_C(1) << 40) + hz / 10 * i;
		d9__clock_tick(NULL);
	}
	mono += 200 * MS;
	ticks += hz / 5;
	return kind();
}

static void test_clock_is_right_with_counters_of_all_speeds(void)
{
	static const uint64_t hz[] = { 300000000, 1000000000, 2600000000, 6000000000 };
	struct d9__slot *slot;

	for (unsigned i = 0; i < sizeof(hz) / sizeof(hz[0]); i++) {
		CU_ASSERT_EQUAL(kind_at(hz[i], &slot), D9__CLOCK_FAKE);
		CU_ASSERT(distance(d9__slot_now(slot), mono) <= 2);
	}
}

static void test_clock_leaves_a_counter_that_is_too_slow_and_says_so(void)
{
	struct d9__clock_status status;
	struct d9__slot *slot;

	CU_ASSERT_EQUAL(kind_at(10000000, &slot), D9__CLOCK_MONOTONIC);
	CU_ASSERT_EQUAL(d9__slot_now(slot), mono);
	d9__clock_status(&status);
	CU_ASSERT_STRING_EQUAL(status.reason, "the ticks are too slow");
}

static void test_clock_asked_to_be_monotonic_reads_no_ticks(void)
{
	struct d9__slot *slot;

	start_fake();
	d9__clock_start(D9__CLOCK_WANT_MONOTONIC);
	slot = d9__slot_self();
	pass_ticking(2 * SECOND);
	CU_ASSERT_EQUAL(kind(), D9__CLOCK_MONOTONIC);
	CU_ASSERT_EQUAL(d9__slot_now(slot), mono);
}

/* The machine's own ticks, whatever they are: within 100 us even where others take the cores. */
static void test_clock_of_this_machine_lies_between_two_readings_of_the_kernel(void)
{
	struct d9__slot *slot;
	uint64_t worst = 0;

	d9__clock_fake(NULL, NULL);
	fixture_ring(8);
	d9__clock_start(D9__CLOCK_AUTO);
	slot = d9__slot_self();
	for (unsigned i = 0; i < 3; i++) {
		usleep(110000);
		d9__clock_tick(NULL);
	}
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t before = d9__clock_mono_ns(), now = d9__slot_now(slot);
		uint64_t after = d9__clock_mono_ns();
		uint64_t off = now < before ? before - now : now > after ? now - after : 0;

		worst = off > worst ? off : worst;
	}
	CU_ASSERT(worst < 100000);
}

/* ---- handlers ---- */

static struct d9__slot *interrupted;

/* A handler takes a stamp, and finds the slot's conversion too old. */
static void replace_conversion(void)
{
	uint64_t valid = atomic_exchange(&d9__clock_hot.valid, 1);

	d9__slot_now(interrupted);
	atomic_store(&d9__clock_hot.valid, valid);
}

static __attribute__((noinline)) uint64_t stamp(struct d9__slot *slot)
{
	return d9__slot_now(slot);
}

static __attribute__((noinline)) uint64_t stamp_of_call(struct d9__slot *slot)
{
	return d9__block_now(slot);
}

/* At every instruction of |take|, with a conversion that is 50 ms old. */
static void check_interrupted(uint64_t (*take)(struct d9__slot *slot))
{
	const uint64_t base_ticks = interrupted->base_ticks, base_ns = interrupted->base_ns;
	uint64_t before, ns, after, bad = 0;
	unsigned at = 0;
	bool more;

	do {
		interrupted->base_ticks = base_ticks;
		interrupted->base_ns = base_ns;
		before = d9__clock_mono_ns();
		stepping_begin(at++);
		ns = take(interrupted);
		more = stepping_end();
		after = d9__clock_mono_ns();
		/* Half of what is wrong where the halves of two conversions are mixed; a busy machine measures its slope badly. */
		bad += ns + 25 * MS < before || ns > after + 25 * MS || interrupted->last_ns > after + 25 * MS;
	} while (more);
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT(at > 8);
}

static void test_clock_of_a_slot_is_right_when_a_handler_replaces_its_conversion(void)
{
	d9__clock_fake(NULL, NULL);
	fixture_ring(8);
	d9__clock_start(D9__CLOCK_WANT_TICKS);
	interrupted = d9__slot_self();
	for (unsigned i = 0; i < 2; i++) {
		usleep(110000);
		d9__clock_tick(NULL);
	}
	d9__slot_now(interrupted);
	if (interrupted->clock != D9__CLOCK_TICKS || !stepping_start(replace_conversion))
		return;
	/* A busy machine must not make it too old. */
	atomic_store(&d9__clock_hot.valid, UINT64_C(1) << 40);
	usleep(50000);
	check_interrupted(stamp);
	check_interrupted(d9__clock_slot_now_slow);
	check_interrupted(stamp_of_call);
}

/* ---- every processor ---- */

#define CPUS_MAX 64

struct reader {
	pthread_t thread;
	int cpu; /* -1: one after the other */
	uint64_t n, over_100ns, worst, back;
};

static cpu_set_t cpus;
static _Atomic(bool) ended;

static void move_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static int next_cpu(int cpu)
{
	do
		cpu = (cpu + 1) % CPU_SETSIZE;
	while (!CPU_ISSET((size_t)cpu, &cpus));
	return cpu;
}

static void *read_clock(void *arg)
{
	struct reader *reader = arg;
	struct d9__slot *slot = d9__slot_self();
	int cpu = reader->cpu < 0 ? next_cpu(0) : reader->cpu;
	uint64_t last = 0;

	for (; slot && !ended; reader->n++) {
		uint64_t before, now, after, off;

		if (reader->n % 1000 == 0)
			move_to(cpu = reader->cpu < 0 ? next_cpu(cpu) : cpu);
		before = d9__clock_mono_ns();
		now = d9__slot_now(slot);
		after = d9__clock_mono_ns();
		off = now < before ? before - now : now > after ? now - after : 0;
		reader->over_100ns += off > 100;
		reader->worst = off > reader->worst ? off : reader->worst;
		reader->back += now < last;
		last = now;
	}
	return NULL;
}

static unsigned start_readers(struct reader *readers)
{
	unsigned n = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE && n < CPUS_MAX - 1; cpu++)
		if (CPU_ISSET((size_t)cpu, &cpus))
			readers[n++].cpu = cpu;
	readers[n++].cpu = -1;
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&readers[i].thread, NULL, read_clock,
						     &readers[i]), 0);
	return n;
}

/*
 * 300 ms; with D9_LONG a minute, in which all but one stamp of a thousand lie within 100 ns of the kernel's
 * readings around them.  The bound of the short form is for machines whose wall clock is being slewed.
 */
static void test_clock_is_right_on_every_processor(void)
{
	bool all = getenv("D9_LONG") != NULL;
	static struct reader readers[CPUS_MAX];
	unsigned n;

	d9__clock_fake(NULL, NULL);
	fixture_ring(CPUS_MAX * 2);
	d9__clock_start(D9__CLOCK_AUTO);
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	n = start_readers(readers);
	for (unsigned i = 0; i < (all ? 600 : 3); i++) {
		usleep(100000);
		d9__clock_tick(NULL);
	}
	ended = true;
	if (all)
		printf("by %s\n", kind() == D9__CLOCK_MONOTONIC ? "the kernel's clock" : "ticks");
	for (unsigned i = 0; i < n; i++) {
		const struct reader *r = &readers[i];

		pthread_join(r->thread, NULL);
		if (all)
			printf("cpu %d: %lu stamps, %lu off by over 100 ns, worst %lu ns\n", r->cpu,
			       (unsigned long)r->n, (unsigned long)r->over_100ns,
			       (unsigned long)r->worst);
		CU_ASSERT(r->n > 0);
		CU_ASSERT_EQUAL(r->back, 0);
		CU_ASSERT(r->worst < 100000);
		CU_ASSERT(!all || r->over_100ns < r->n / 1000 + 1);
	}
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "changes to ticks after 100 ms", test_clock_changes_to_ticks_after_100_ms },
		{ "is right on every processor", test_clock_is_right_on_every_processor },
		{ "stays right when the flush thread starves",
		  test_clock_stays_right_when_the_flush_thread_starves },
		{ "follows drift of 500 ppm", test_clock_follows_drift_of_500_ppm },
		{ "follows a rate that changes by 1000 ppm",
		  test_clock_follows_a_rate_that_changes_by_1000_ppm },
		{ "whose ticks jump ahead keeps its order",
		  test_clock_whose_ticks_jump_ahead_keeps_its_order },
		{ "never goes back within a slot", test_clock_never_goes_back_within_a_slot },
		{ "whose ticks restart is left until two slopes agree",
		  test_clock_whose_ticks_restart_is_left_until_two_slopes_agree },
		{ "that steps three times in an hour is left for good",
		  test_clock_that_steps_three_times_in_an_hour_is_left_for_good },
		{ "that stops is noticed", test_clock_that_stops_is_noticed },
		{ "is right with counters of all speeds", test_clock_is_right_with_counters_of_all_speeds },
		{ "leaves a counter that is too slow, and says so",
		  test_clock_leaves_a_counter_that_is_too_slow_and_says_so },
		{ "asked to be monotonic reads no ticks",
		  test_clock_asked_to_be_monotonic_reads_no_ticks },
		{ "of a slot is right when a handler replaces its conversion",
		  test_clock_of_a_slot_is_right_when_a_handler_replaces_its_conversion },
		{ "of this machine lies between two readings of the kernel",
		  test_clock_of_this_machine_lies_between_two_readings_of_the_kernel },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("clock", tests);
}
