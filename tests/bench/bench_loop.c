/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin and end of a poll around a callback, as an adapter calls them, against one
 * clock_gettime(CLOCK_MONOTONIC) of the same run.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#define ROUNDS 41
#define CALLS  16384
#define BUDGET_NS 20.0

static struct d9_loop *loop;
static const struct d9_callsite *callsite;
static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

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

static void off(uint64_t i)
{
	poll_with(i, 1000, D9_POLL_BATCHED, 0);
}

static const struct {
	const char *name;
	void (*fn)(uint64_t i);
} variants[] = {
	{ "callback alone", bare },
	{ "+ clock_gettime", clock_read },
	{ "+ poll, shared stamp", shared_stamp },
	{ "+ poll, own stamps", own_stamps },
	{ "+ poll, 32 tasks", many_tasks },
	{ "+ wake and poll", woken },
	{ "+ park and unpark", park },
	{ "+ poll, recording off", off },
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static double results[VARIANTS][ROUNDS];

static double measure(size_t v)
{
	uint64_t before;

	if (variants[v].fn == off)
		d9_disable();
	for (uint64_t i = 0; i < CALLS / 16; i++)
		variants[v].fn(i);
	before = cpu_ns();
	for (uint64_t i = 0; i < CALLS; i++)
		variants[v].fn(i);
	before = cpu_ns() - before;
	if (variants[v].fn == off)
		d9_enable();
	return (double)before / CALLS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median over the rounds of the difference to the bare callback of the same round. */
static double cost(size_t v)
{
	double differences[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++)
		differences[i] = results[v][i] - results[0][i];
	qsort(differences, ROUNDS, sizeof(differences[0]), compare);
	return differences[ROUNDS / 2];
}

static int start(void)
{
	const struct timespec settle = { 0, 400000000 };
	struct d9_options *options;
	int err;

	if (d9_options_new(&options))
		return 1;
	d9_options_set_writer(options, D9_WRITER_NULL);
	err = d9_recorder_start(options, NULL);
	d9_options_free(options);
	if (err || d9_loop_register(D9_LIBRARY_OWN, &loop, "bench", &loop))
		return 1;
	callsite = d9_callsite((const void *)(uintptr_t)callback, (const void *)(uintptr_t)start, 0);
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	return 0;
}

int main(void)
{
	if (start()) {
		fputs("cannot start recording\n", stderr);
		return 1;
	}
	for (size_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < VARIANTS; i++) {
			size_t v = round % 2 ? VARIANTS - 1 - i : i;

			results[v][round] = measure(v);
		}
	}
	for (size_t v = 1; v < VARIANTS; v++)
		printf("%-24s %6.1f ns  %5.2f x clock_gettime\n", variants[v].name, cost(v),
		       cost(v) / cost(1));
	printf("budget %.0f ns for a poll with a shared stamp: %s\n", BUDGET_NS,
	       cost(2) <= BUDGET_NS ? "kept" : "broken");
	return cost(2) > 1.5 * BUDGET_NS;
}
