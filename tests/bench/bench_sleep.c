/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a sleep for a thread that is sampled: two threads on one processor wake each other and block in read(2), with
 * nothing attached, a timer of their CPU time, a perf event, or samples of their switches.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/bench.h"
#include "sample/cpu_timer.h"
#include "sample/perf_event.h"

#define ROUNDS 31
#define WAKES  250 /* of each thread, before samples are taken out of the rings */
#define TIMES  40
#define HZ     99

enum way { NOTHING, NOTHING_AGAIN, TIMER, PERF, SWITCHES, WAYS };

static int there, back;
static _Atomic(uint32_t) other_tid;

static void on_sample(int signal_number)
{
	(void)signal_number;
}

static void stay_here(void)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : (size_t)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void wake(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		exit(2);
}

static void block(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		exit(2);
}

static void *answer(void *unused)
{
	atomic_store(&other_tid, (uint32_t)syscall(SYS_gettid));
	for (;;) {
		block(there);
		wake(back);
	}
	return unused;
}

static void drop(void *unused, struct d9__perf_record *record)
{
	(void)unused, (void)record;
}

/* ns of CPU of both threads, for one sleep and wake-up of one of them. */
static double measure(struct d9__perf_event events[2])
{
	double ns = 0;

	for (int i = 0; i < TIMES; i++) {
		double start = bench_clock(CLOCK_PROCESS_CPUTIME_ID);

		for (int j = 0; j < WAKES; j++) {
			wake(there);
			block(back);
		}
		ns += bench_clock(CLOCK_PROCESS_CPUTIME_ID) - start;
		d9__perf_drain(&events[0], drop, NULL);
		d9__perf_drain(&events[1], drop, NULL);
	}
	return ns / (2.0 * TIMES * WAKES);
}

/* False: not permitted here. */
static bool try_way(enum way way, double *out)
{
	const uint32_t tids[2] = { (uint32_t)syscall(SYS_gettid), atomic_load(&other_tid) };
	struct d9__perf_event events[2] = { { .map = NULL }, { .map = NULL } };
	const uint64_t period_ns = 1000000000u / HZ;
	int timers[2] = { -1, -1 }, err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		const struct d9__perf_want want = { .tid = (int)tids[i],
						    .cpu = -1,
						    .hz = way == PERF ? HZ : 0,
						    .stack = way == PERF ? 16384 : 8192,
						    .ring = (size_t)4 << 20 };

		if (way == TIMER)
			err = (timers[i] = d9__cpu_timer_start(tids[i], SIGRTMAX, 0, period_ns, period_ns)) < 0;
		else if (way == PERF || way == SWITCHES)
			err = d9__perf_open(&events[i], &want);
	}
	if (!err)
		*out = measure(events);
	for (int i = 0; i < 2; i++) {
		if (timers[i] >= 0)
			d9__cpu_timer_stop(timers[i]);
		d9__perf_close(&events[i]);
	}
	return !err;
}

int main(void)
{
	static const char *const names[WAYS] = { "", "", "sleep and wake-up of a thread with a CPU timer, 99 Hz",
						 "sleep and wake-up of a thread with a perf event, 99 Hz",
						 "sleep and wake-up in a slice of --off-cpu" };
	static const double budgets[WAYS] = { 0, 0, 1.01, 0, 0 };
	static double ns[WAYS][ROUNDS];
	struct sigaction action = { .sa_handler = on_sample, .sa_flags = SA_RESTART };
	bool works[WAYS];
	pthread_t thread;

	sigaction(SIGRTMAX, &action, NULL);
	stay_here();
	there = eventfd(0, 0);
	back = eventfd(0, 0);
	if (there < 0 || back < 0 || pthread_create(&thread, NULL, answer, NULL))
		return 2;
	while (!atomic_load(&other_tid))
		sched_yield();
	for (unsigned i = 0; i < ROUNDS; i++)
		for (int way = 0; way < WAYS; way++)
			works[way] = try_way((enum way)way, &ns[way][i]);
	bench_same("sleep and wake-up of a thread", ns[NOTHING], ns[NOTHING_AGAIN], ROUNDS);
	for (int way = TIMER; way < WAYS; way++) {
		if (works[way])
			bench_ratio(names[way], "ns", ns[way], "not sampled", ns[NOTHING], ROUNDS, budgets[way]);
		else
			fprintf(stderr, "not permitted here: %s\n", names[way]);
	}
	return 0;
}
