/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin and end of a poll around a callback, as an adapter calls them, against one
 * clock_gettime(CLOCK_MONOTONIC) of the same run.
 */
#include "config.h"

#include <stdbool.h>

#include <dial9/loop.h>

#include "bench/bench_recorder.h"
#include "bench/bench_variants.h"

#define BUDGET_NS	  20.0
#define BETWEEN_BUDGET_NS 8.0 /* what a round more takes as the time outside of it is told */

static struct d9_loop *loop;
static const struct d9_callsite *callsite;
static volatile uint64_t sink;

static __attribute__((noinline)) void callback(uint64_t i)
{
	sink = i;
}

static void (*volatile dispatch)(uint64_t) = callback;

static void bare(uint64_t i)
{
	dispatch(i);
}

static void clock_read(uint64_t i)
{
	struct timespec ts;

	dispatch(i);
	clock_gettime(CLOCK_MONOTONIC, &ts);
}

static void poll_with(uint64_t i, uint64_t key, uint16_t flags, uint64_t ready_ns)
{
	struct d9_poll poll;

	/* Field by field: an initialiser may become a string instruction, some 5 ns. */
	poll.loop = loop;
	poll.task.key = key;
	poll.task.identity = 7;
	poll.task.callsite = callsite;
	poll.task.name = NULL;
	poll.task.fd = -1;
	poll.task.kind = D9_TASK_ACTIVE;
	poll.task.flags = 0;
	poll.depth = 1;
	poll.flags = flags;
	poll.ready_ns = ready_ns;
	poll.reason = D9_WAKE_UNKNOWN;
	d9_poll_begin(&poll);
	dispatch(i);
	d9_poll_end(&poll);
}

static void shared_stamp(uint64_t i)
{
	poll_with(i, 1000, D9_POLL_BATCHED, 0);
}

static void own_stamps(uint64_t i)
{
	poll_with(i, 1000, 0, 0);
}

static void many_tasks(uint64_t i)
{
	poll_with(i, 1000 + i % 32 * 128, D9_POLL_BATCHED, 0);
}

static void woken(uint64_t i)
{
	d9_wake(loop, 1000, D9_WAKE_ACTIVE, NULL);
	poll_with(i, 1000, D9_POLL_BATCHED, 0);
}

static void park(uint64_t i)
{
	d9_loop_park(loop, -1);
	dispatch(i);
	d9_loop_unpark(loop);
}

/* The rounds that follow are of a loop inside another run: nothing lies between them. */
static void be_inside(bool wanted)
{
	static struct d9_loop_run run;
	static bool inside;

	if (wanted == inside)
		return;
	inside = wanted;
	if (wanted)
		d9_loop_enter(loop, &run);
	else
		d9_loop_leave(&run);
}

static void go_round(uint64_t i)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	poll_with(i, 1000, D9_POLL_BATCHED, 0);
	d9_loop_leave(&run);
}

static void round_alone(uint64_t i)
{
	be_inside(false);
	go_round(i);
}

static void round_inside(uint64_t i)
{
	be_inside(true);
	go_round(i);
}

enum { CLOCK = 1, SHARED, ROUND = 7, ROUND_INSIDE };

static const struct bench_variant variants[] = {
	{ "callback alone", bare, false },
	{ "clock_gettime", clock_read, false },
	{ "loop API: poll, shared stamp", shared_stamp, false },
	{ "loop API: poll, own stamps", own_stamps, false },
	{ "loop API: poll, 32 tasks", many_tasks, false },
	{ "loop API: wake and poll", woken, false },
	{ "loop API: park and unpark", park, false },
	{ "loop API: round of a loop driven by ONCE", round_alone, false },
	{ "loop API: the same inside another run", round_inside, false },
	{ "loop API: poll, recording off", shared_stamp, true },
	{ "loop API: poll again", shared_stamp, false },
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static int start(void)
{
	if (bench_start_recorder() || d9_loop_register(D9_LIBRARY_OWN, &loop, "bench", &loop))
		return 1;
	callsite = d9_callsite((const void *)(uintptr_t)callback, (const void *)(uintptr_t)start, 0);
	return 0;
}

static void print_between(void)
{
	const double *alone = bench_cost(ROUND), *inside = bench_cost(ROUND_INSIDE);
	double added[BENCH_ROUNDS];

	for (size_t i = 0; i < BENCH_ROUNDS; i++)
		added[i] = alone[i] - inside[i];
	bench_value("loop driven by ONCE: the time between two rounds", "ns", added, BENCH_ROUNDS,
		    BETWEEN_BUDGET_NS);
}

int main(void)
{
	if (start()) {
		fputs("cannot start recording\n", stderr);
		return 1;
	}
	bench_measure_all(variants, VARIANTS);
	bench_same("a poll", bench_cost(SHARED), bench_cost(VARIANTS - 1), BENCH_ROUNDS);
	for (size_t v = SHARED; v < VARIANTS - 1; v++)
		bench_ratio(variants[v].name, "ns", bench_cost(v), "clock_gettime", bench_cost(CLOCK),
			    BENCH_ROUNDS, 0);
	bench_value("poll through the loop API, shared stamp", "ns", bench_cost(SHARED),
		    BENCH_ROUNDS, BUDGET_NS);
	print_between();
	return 0;
}
