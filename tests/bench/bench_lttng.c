/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LTTng-UST records equal events in the same rounds: PollStart and PollEnd with the same fields,
 * back to back and with some 50 ns of memory work between.  bench_lttng.sh sets up a session.
 */
#include "config.h"

#include <stdbool.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/plain_events.h"
#include "ring/gate.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/lttng_provider.h"

#define ROUNDS 41
#define EVENTS 4096u
#define CELLS  (1u << 16)

static struct plain_events events;
static uint32_t cell[CELLS];
static bool working;

static inline void work(void)
{
	static uint32_t at;

	for (unsigned i = 0; working && i < 8; i++)
		at = cell[(at * 5 + i) & (CELLS - 1)];
}

static __attribute__((noinline)) void one_empty(unsigned i)
{
	__asm__ volatile("" ::"r"(i) : "memory");
}

static __attribute__((noinline)) void one_ours(unsigned i)
{
	if (d9__gate_open(D9__GATE_LOOP))
		plain_event(&events, i & 1);
}

static __attribute__((noinline)) void one_theirs(unsigned i)
{
	if (i & 1)
		lttng_ust_tracepoint(d9_bench, poll_end, 0);
	else
		lttng_ust_tracepoint(d9_bench, poll_start, 0, 1, PLAIN_TASK, events.loc);
}

static void take_all(void)
{
	struct d9__batch batch;

	while (d9__chunk_pop_full(&batch))
		d9__chunk_release(&batch);
}

static double measure(void (*fn)(unsigned))
{
	double begin;

	take_all();
	d9__clock_tick(NULL);
	for (unsigned i = 0; i < 256; i++)
		fn(i);
	begin = bench_cpu_ns();
	for (unsigned i = 0; i < EVENTS; i++) {
		fn(i);
		work();
	}
	begin = bench_cpu_ns() - begin;
	/* Their consumer, a process of its own, must keep up: neither side may lose events. */
	usleep(2000);
	return begin / EVENTS;
}

static void compare(const char *what, double least)
{
	double ours[ROUNDS], theirs[ROUNDS], again[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++) {
		double empty = measure(one_empty);

		ours[r] = measure(one_ours) - empty;
		theirs[r] = measure(one_theirs) - empty;
		again[r] = measure(one_ours) - empty;
	}
	bench_same("one event", ours, again, ROUNDS);
	bench_ratio(what, "ns", theirs, "ours", ours, ROUNDS, -least);
}

int main(void)
{
	static const struct d9__ring_options options = { .kind = D9__RING_AUTO, .boot_id = "bench" };

	if (d9__ring_start(&options))
		return 99;
	d9__ring_unlink();
	d9__clock_start(D9__CLOCK_AUTO);
	for (unsigned i = 0; i < 12; i++) {
		usleep(100000);
		d9__clock_tick(NULL);
	}
	d9__gate_set(D9__GATE_LOOP);
	events.slot = d9__slot_self();
	events.loc = d9__name_intern("mod+0x10 @ mod+0x20", 19);
	for (uint32_t i = 0; i < CELLS; i++)
		cell[i] = i * 2654435761u;
	if (!events.slot)
		return 99;
	if (!lttng_ust_tracepoint_enabled(d9_bench, poll_start)) {
		fputs("no LTTng session records d9_bench:*; see bench_lttng.sh\n", stderr);
		return 77;
	}
	compare("one event through LTTng-UST, back to back", 5);
	working = true;
	compare("one event through LTTng-UST, work between", 10);
	return 0;
}
