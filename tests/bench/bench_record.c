/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording one event costs, against a bare tick read and clock_gettime() of the same run.
 *
 * Rounds of all variants forwards, then backwards; medians of the rounds' differences to the
 * zero line (an empty call).  "complete" runs twice: if it differs from itself by more than 5 %,
 * the machine is too noisy and the exit status is 77.  1: a budget is broken by over 10 %.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "record/emit_inl.h"
#include "record/gate.h"

#define ROUNDS 61
#define EVENTS 16384u
#define CELLS  (1u << 16) /* 256 KiB: random work that hits L2 */

static struct d9__slot *slot;
static uint32_t loc;
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
	if (!d9__gate_open(D9__GATE_LOOP))
		return;
	if (i & 1)
		d9__emit_poll_end(slot, d9__slot_now(slot), 0);
	else
		d9__emit_poll_start(slot, d9__slot_now(slot), 0, 1, 300, loc);
}

/* The end of a callback is the start of the next. */
__attribute__((noinline)) static void one_shared(unsigned i)
{
	static uint64_t stamp;

	if (i & 1) {
		stamp = d9__slot_now(slot);
		d9__emit_poll_end(slot, stamp, 0);
	} else {
		d9__emit_poll_start(slot, stamp, 0, 1, 300, loc);
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
	uint64_t begin;

	take_all();
	d9__clock_tick(NULL);
	for (unsigned i = 0; i < 256; i++) /* warm */
		fn(i);
	begin = now_ns();
	for (unsigned i = 0; i < EVENTS; i++) {
		fn(i);
		work();
	}
	return (double)(now_ns() - begin) / EVENTS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median of |v|; of its differences to the zero line of the same round, unless it is that. */
static double median(enum variant v)
{
	double diff[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++)
		diff[r] = times[v][r] - (v == EMPTY ? 0 : times[EMPTY][r]);
	qsort(diff, ROUNDS, sizeof(diff[0]), by_value);
	return diff[ROUNDS / 2];
}

/* A line; 1 if the budget is broken by more than the noise. */
static int line(const char *name, double ns, const char *peer_name, double peer, double budget)
{
	double ratio = peer > 0 ? ns / peer : 0;

	printf("  %-28s %6.2f ns   %5.2f x %-24s budget %.2f%s\n", name, ns, ratio, peer_name,
	       budget, ratio > budget ? "  over" : "");
	return ratio > budget * 1.1;
}

static void run(void)
{
	for (unsigned r = 0; r < ROUNDS; r++)
		for (unsigned i = 0; i < VARIANTS; i++) {
			enum variant v = (enum variant)(r & 1 ? VARIANTS - 1 - i : i);

			times[v][r] = measure(v);
		}
}

static bool noisy(void)
{
	double a = median(EVENT), b = median(AGAIN), most = a > b ? a : b;

	return most > 1 && (a > b ? a - b : b - a) > 0.05 * most;
}

static int report(const char *title, bool worked)
{
	double gettime = median(GETTIME);
	int broken = 0;

	printf("%s: round %.0f ns, bare tick read %.2f ns, clock_gettime %.2f ns%s\n", title,
	       median(EMPTY), median(TICK), gettime,
	       noisy() ? " (inconclusive: the same variant twice differs by over 5 %)" : "");
	broken |= line("complete", median(EVENT), "clock_gettime", gettime, worked ? 0.25 : 0.5);
	if (!worked)
		broken |= line("complete", median(EVENT), "bare tick read", median(TICK), 1.3);
	broken |= line("shared stamp", median(SHARED), "clock_gettime", gettime,
		       worked ? 0.25 : 0.3);
	broken |= line("gate closed", median(GATE), "clock_gettime", gettime, 0.05);
	return broken;
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
	slot = d9__slot_self();
	loc = d9__name_intern("mod+0x10 @ mod+0x20", 19);
	for (uint32_t i = 0; i < CELLS; i++)
		cell[i] = i * 2654435761u;
	return slot ? 0 : -1;
}

int main(void)
{
	int broken, inconclusive;

	if (start())
		return 99;
	run();
	broken = report("back to back", false);
	inconclusive = noisy();
	working = true;
	run();
	broken |= report("with work between", true);
	inconclusive |= noisy();
	working = false;
	d9__clock_start(D9__CLOCK_WANT_MONOTONIC);
	d9__clock_slot_init(slot);
	run();
	printf("without ticks:\n");
	broken |= line("complete", median(EVENT), "clock_gettime", median(GETTIME), 1.2);
	return inconclusive ? 77 : broken;
}
