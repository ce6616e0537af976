/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a stack in a handler: by our tables, against libunwind's unw_backtrace(), whose cache of return
 * addresses makes it the fastest of the others.  Both see the same context, in turns, at a depth of about 17:
 * this program, a recursion, qsort() of libc and its callback.
 *
 *	hot        the same stack again and again
 *	polluted   after half a megabyte of other memory was touched
 *
 * unw_backtrace() starts from where it is called, so its stacks have two frames more.
 */
#include "config.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/sample/own_stack.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"

#define ROUNDS        21
#define PER_ROUND     400
#define DEPTH         9
#define OTHER_BYTES   (512 * 1024)
#define BUDGET_HOT    500.0 /* ns */
#define BUDGET_P99    10000.0
#define BUDGET_RATIO  (1 / 3.0)

static struct d9__unwind_thread thread;
static uint8_t other[OTHER_BYTES];
static double ours[PER_ROUND], theirs[PER_ROUND];
static unsigned n_taken, n_frames, n_frames_theirs;
static bool polluted;
static volatile unsigned sink;

static void pollute(void)
{
	unsigned sum = 0;

	for (size_t i = 0; polluted && i < sizeof(other); i += 64)
		sum += other[i]++;
	sink = sum;
}

static double by_tables(const struct d9__registers *registers)
{
	uint64_t pcs[D9__UNWIND_MAX];
	double start;

	pollute();
	start = bench_clock(CLOCK_MONOTONIC);
	n_frames = d9__unwind(&thread, registers, pcs, D9__UNWIND_MAX).n;
	return bench_clock(CLOCK_MONOTONIC) - start;
}

static double by_libunwind(void)
{
	void *pcs[D9__UNWIND_MAX];
	double start;

	pollute();
	start = bench_clock(CLOCK_MONOTONIC);
	n_frames_theirs = (unsigned)unw_backtrace(pcs, D9__UNWIND_MAX);
	return bench_clock(CLOCK_MONOTONIC) - start;
}

static void on_sample(int signal_number, siginfo_t *info, void *ucontext)
{
	struct d9__registers registers;

	(void)signal_number;
	(void)info;
	d9__registers_of(&registers, ucontext);
	for (n_taken = 0; n_taken < PER_ROUND; n_taken++) {
		ours[n_taken] = by_tables(&registers);
		theirs[n_taken] = by_libunwind();
	}
}

static int compare(const void *a, const void *b)
{
	if (!n_taken)
		raise(SIGPROF);
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int deep(int depth)
{
	int values[4] = { 3, 1, 2, depth };

	if (depth > 0)
		return deep(depth - 1) + values[depth % 4];
	qsort(values, 4, sizeof(values[0]), compare);
	return values[0];
}

/* The value below which |part| of a round lie; bench_quantile() takes fewer values. */
static double quantile(double *values, double part)
{
	qsort(values, PER_ROUND, sizeof(values[0]), bench_by_value);
	return values[(unsigned)((PER_ROUND - 1) * part)];
}

static void measure(const char *what, double budget, double budget_p99)
{
	double median[ROUNDS], p99[ROUNDS], peer[ROUNDS], peer_p99[ROUNDS];
	char text[96];

	for (int i = 0; i < ROUNDS; i++) {
		n_taken = 0;
		sink += (unsigned)deep(DEPTH);
		median[i] = quantile(ours, 0.5);
		p99[i] = quantile(ours, 0.99);
		peer[i] = quantile(theirs, 0.5);
		peer_p99[i] = quantile(theirs, 0.99);
	}
	snprintf(text, sizeof(text), "stack of %u frames by tables, %s", n_frames, what);
	bench_ratio(text, "ns", median, "unw_backtrace()", peer, ROUNDS, polluted ? 0 : BUDGET_RATIO);
	bench_value(text, "ns", median, ROUNDS, budget);
	snprintf(text, sizeof(text), "the same, 99th percentile, %s", what);
	bench_ratio(text, "ns", p99, "unw_backtrace()", peer_p99, ROUNDS, 0);
	bench_value(text, "ns", p99, ROUNDS, budget_p99);
}

/* Of all modules of this process, as at a start. */
static void measure_tables(void)
{
	struct d9__unwind_figures figures;
	double ms[ROUNDS];
	char text[96];

	for (int i = 0; i < ROUNDS; i++) {
		double start = bench_cpu_ns();

		d9__unwind_tables_release();
		d9__unwind_tables_want_rows();
		d9__unwind_tables_refresh(1);
		ms[i] = (bench_cpu_ns() - start) / 1e6;
	}
	d9__unwind_tables_figures(&figures);
	snprintf(text, sizeof(text), "tables of %zu modules, %zu rows", figures.n_modules,
		 figures.n_rows);
	bench_value(text, "ms", ms, ROUNDS, 0.05 * (double)figures.n_rows / 1000);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_sample, .sa_flags = SA_SIGINFO };

	own_stack(&thread);
	measure_tables();
	sigaction(SIGPROF, &action, NULL);
	measure("hot", BUDGET_HOT, BUDGET_P99);
	polluted = true;
	measure("caches polluted", 5000, 15000);
	fprintf(stderr, "unw_backtrace() saw %u frames\n", n_frames_theirs);
	return 0;
}
