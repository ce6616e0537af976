/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of arming a watcher with task dumps: a callback arms one timer again and again, through a few frames of its
 * own.  Without them an adapter asks the gate, and that is all.
 *
 *	mean    of known places, recaptures included
 *	worst   an arming from a place that is new: its stack is taken
 */
#include "config.h"

#include <alloca.h>
#include <stdbool.h>
#include <stdlib.h>

#include <dial9/loop.h>

#include "bench/bench.h"
#include "bench/bench_recorder.h"
#include "loop/adapter.h"
#include "ring/gate.h"

#define ROUNDS	     31
#define PER_ROUND    20000
#define PLACES	     400
#define BUDGET_MEAN  10.0 /* ns */
#define BUDGET_WORST 3000.0

static struct d9_loop *loop;
static double without[ROUNDS], with[ROUNDS], ticks[ROUNDS], taken[PLACES];

/* As the adapters' hooks do. */
static __attribute__((noinline)) void arm(bool asked)
{
	if (asked && d9__gate_arms())
		d9__task_waits(loop, 1, -1, (const void *)(uintptr_t)arm, __builtin_return_address(0), false);
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void start_timer(bool asked)
{
	arm(asked);
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) double run(bool asked)
{
	double start = bench_cpu_ns();

	for (int i = 0; i < PER_ROUND; i++)
		start_timer(asked);
	return (bench_cpu_ns() - start) / PER_ROUND;
}

static double read_ticks(void)
{
	double start = bench_cpu_ns();

	for (int i = 0; i < PER_ROUND; i++)
		d9_loop_now();
	return (bench_cpu_ns() - start) / PER_ROUND;
}

/* Each depth of the stack is another place. */
static __attribute__((noinline)) void arm_deeper(unsigned bytes, double *ns)
{
	volatile char *room = alloca(bytes);
	double start;

	room[0] = 0;
	start = bench_clock(CLOCK_MONOTONIC);
	arm(true);
	*ns = bench_clock(CLOCK_MONOTONIC) - start;
	room[0]++;
}

static void begin(struct d9_poll *poll)
{
	*poll = (struct d9_poll){ .loop = loop, .task = { .key = 1, .identity = 1, .fd = -1 } };
	d9_poll_begin(poll);
}

int main(void)
{
	struct d9_poll poll;

	setenv("DIAL9_TASK_DUMP_ENABLED", "true", 1);
	if (bench_start_recorder() || d9_loop_register(D9_LIBRARY_OWN, &loop, "bench", &loop)) {
		fputs("cannot start recording\n", stderr);
		return 1;
	}
	begin(&poll);
	run(true);
	for (unsigned i = 0; i < ROUNDS; i++) {
		without[i] = run(false);
		with[i] = run(true) - without[i];
		ticks[i] = read_ticks();
	}
	for (unsigned i = 0; i < PLACES; i++)
		arm_deeper(16 + 16 * i, &taken[i]);
	d9_poll_end(&poll);
	bench_ratio("arming with task dumps, against without", "ns", with, "stamp", ticks, ROUNDS, 0);
	bench_value("the same", "ns", with, ROUNDS, BUDGET_MEAN);
	bench_value("arming from a new place, two clock_gettime() included", "ns", taken, PLACES, 0);
	printf("worst of 100 of those: %.0f ns, budget %.0f\n", bench_quantile(taken, PLACES, 0.99), BUDGET_WORST);
	return 0;
}
