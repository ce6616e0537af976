/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of recording one event, against a bare tick read and clock_gettime() of the same run.
 *
 * Rounds of all variants forwards, then backwards, in time of this thread's CPU; ratios of the
 * rounds' differences to the zero line (an empty call).  "complete" runs twice.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/plain_events.h"
#include "ring/gate.h"

#define ROUNDS 61
#define EVENTS 16384u
#define CELLS  (1u << 16) /* 256 KiB: random work that hits L2 */

static __thread struct plain_events events;
static uint32_t cell[CELLS];
static bool working; /* some 50 ns of random memory work between events */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void work(void)
{
	static uint32_t at;

	if (!working)
		return;
	for (unsigned i = 0; i < 8; i++)
		at = cell[(at * 5 + i) & (CELLS - 1)];
}

static inline void keep(uint64_t value)
{
	__asm__ volatile("" ::"r"(value) : "memory");
}

__attribute__((noinline)) static void one_empty(unsigned i)
{
	keep(i);
}

__attribute__((noinline)) static void one_gate_closed(unsigned i)
{
	if (__builtin_expect(d9__gate_open(D9__GATE_EVENT), 0))
		keep(i);
}

__attribute__((noinline)) static void one_tick(unsigned i)
{
	keep(d9__clock_ticks() + i);
}

__attribute__((noinline)) static void one_gettime(unsigned i)
{
	keep(now_ns() + i);
}

__attribute__((noinline)) static void one_event(unsigned i)
{
	if (d9__gate_open(D9__GATE_LOOP))
		plain_event(&events, i & 1);
}

/* The end of a callback is the start of the next. */
__attribute__((noinline)) static void one_shared(unsigned i)
{
	static uint64_t stamp;

	if (i & 1) {
		stamp = d9__slot_now(events.slot);
		plain_end(&events, stamp);
	} else {
		plain_start(&events, stamp);
	}
}

enum variant { EMPTY, GATE, TICK, GETTIME, EVENT, SHARED, AGAIN, VARIANTS };

static void (*const functions[VARIANTS])(unsigned) = {
	[EMPTY] = one_empty, [GATE] = one_gate_closed, [TICK] = one_tick,
	[GETTIME] = one_gettime, [EVENT] = one_event, [SHARED] = one_shared,
	[AGAIN] = one_event,
};

static double times[VARIANTS][ROUNDS];

static void take_all(void)
{
	struct d9__batch batch;

	while (d9__chunk_pop_full(&batch))
		d9__chunk_release(&batch);
}

static double measure(enum variant v)
{
	void (*fn)(unsigned) = functions[v];
	double begin;

	take_all();
	d9__clock_tick(NULL);
	for (unsigned i = 0; i < 256; i++) /* warm */
		fn(i);
	begin = bench_cpu_ns();
	for (unsigned i = 0; i < EVENTS; i++) {
		fn(i);
		work();
	}
	return (bench_cpu_ns() - begin) / EVENTS;
}

/* |v| without the zero line. */
static const double *cost(enum variant v)
{
	static double costs[VARIANTS][ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++)
		costs[v][r] = times[v][r] - times[EMPTY][r];
	return costs[v];
}

static void against(const char *what, enum variant v, const char *peer_name, enum variant peer,
		    double budget)
{
	bench_ratio(what, "ns", cost(v), peer_name, cost(peer), ROUNDS, budget);
}

static void beyond_the_tick(void)
{
	double ns[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++)
		ns[r] = times[EVENT][r] - times[TICK][r];
	bench_value("one event, more than a bare tick read", "ns", ns, ROUNDS, 2.5);
}

static void run(void)
{
	for (unsigned r = 0; r < ROUNDS; r++)
		for (unsigned i = 0; i < VARIANTS; i++) {
			enum variant v = (enum variant)(r & 1 ? VARIANTS - 1 - i : i);

			times[v][r] = measure(v);
		}
}

/* ---- beside another thread ---- */

static atomic_bool enough;

static void *record_too(void *arg)
{
	events = (struct plain_events){ .slot = d9__slot_self(), .loc = *(const uint32_t *)arg };
	for (unsigned i = 0; !atomic_load_explicit(&enough, memory_order_relaxed); i++)
		one_event(i);
	d9__slot_give_back();
	return NULL;
}

static void beside_another(void)
{
	double alone[ROUNDS], beside[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++) {
		pthread_t thread;

		alone[r] = measure(EVENT);
		atomic_store(&enough, false);
		if (pthread_create(&thread, NULL, record_too, &events.loc))
			return;
		beside[r] = measure(EVENT);
		atomic_store(&enough, true);
		pthread_join(thread, NULL);
	}
	bench_ratio("one event while another thread records", "ns", beside, "alone", alone, ROUNDS,
		    1.15);
}

static int start(void)
{
	static const struct d9__ring_options options = { .kind = D9__RING_AUTO, .boot_id = "bench" };
	struct d9__clock_status status;
	int err = d9__ring_start(&options);

	if (err)
		return err;
	d9__ring_unlink();
	d9__clock_start(D9__CLOCK_AUTO);
	for (unsigned i = 0; i < 12; i++) {
		usleep(100000);
		d9__clock_tick(NULL);
	}
	d9__clock_status(&status);
	printf("clock %s%s\n", status.kind == D9__CLOCK_TICKS ? "ticks" : "monotonic ",
	       status.reason);
	d9__gate_set(D9__GATE_LOOP);
	events.slot = d9__slot_self();
	events.loc = d9__name_intern("mod+0x10 @ mod+0x20", 19);
	for (uint32_t i = 0; i < CELLS; i++)
		cell[i] = i * 2654435761u;
	return events.slot ? 0 : -1;
}

int main(void)
{
	static const char gettime[] = "clock_gettime";

	if (start())
		return 99;
	run();
	bench_same("one event", cost(EVENT), cost(AGAIN), ROUNDS);
	against("one event, back to back", EVENT, gettime, GETTIME, 0.6);
	beyond_the_tick();
	against("one event, shared stamp", SHARED, gettime, GETTIME, 0.25);
	against("gate closed", GATE, gettime, GETTIME, 0.05);
	beside_another();
	working = true;
	run();
	bench_same("one event with 50 ns of work", cost(EVENT), cost(AGAIN), ROUNDS);
	against("one event, work between", EVENT, gettime, GETTIME, 0.5);
	working = false;
	d9__clock_start(D9__CLOCK_WANT_MONOTONIC);
	d9__clock_slot_init(events.slot);
	run();
	bench_same("one event without ticks", cost(EVENT), cost(AGAIN), ROUNDS);
	against("one event, clock_gettime for a clock", EVENT, gettime, GETTIME, 1.2);
	return 0;
}
