/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks, medians, and figures for figures.py, for all benchmarks.  A figure is a ratio to a peer
 * of the same round, so that a slow or busy machine slows down both; it comes with its quartiles.
 */

#ifndef D9_BENCH_H
#define D9_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_ROUNDS_MAX 512
#define BENCH_MORE_NS	 25.0 /* what the recording of one callback and its wake may add */

static inline double bench_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* ns of this thread's CPU: what others do on the machine hardly shows in it. */
static inline double bench_cpu_ns(void)
{
	return bench_clock(CLOCK_THREAD_CPUTIME_ID);
}

static inline int bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value below which |part| of |values| lie.  They are not moved. */
static inline double bench_quantile(const double *values, unsigned n, double part)
{
	double sorted[BENCH_ROUNDS_MAX];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), bench_by_value);
	return sorted[(unsigned)((double)(n - 1) * part + 0.5)];
}

static inline double bench_median(const double *values, unsigned n)
{
	return bench_quantile(values, n, 0.5);
}

/*
 * One line for figures.py: |what| in |unit|, against |peer| in the same rounds.  The budget is for the
 * ratio: at most |budget|, or at least -|budget| if that is negative; 0: none.
 */
static inline void bench_ratio(const char *what, const char *unit, const double *values,
			       const char *peer, const double *peers, unsigned n, double budget)
{
	double ratios[BENCH_ROUNDS_MAX];

	for (unsigned i = 0; i < n; i++)
		ratios[i] = values[i] / peers[i];
	printf("FIGURE\t%s\t%.6g\t%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\n", what,
	       bench_median(values, n), unit, peer, bench_median(peers, n),
	       bench_median(ratios, n), bench_quantile(ratios, n, 0.25),
	       bench_quantile(ratios, n, 0.75), budget);
}

/* Print a figure without a peer: the budget is for the value itself. */
static inline void bench_value(const char *what, const char *unit, const double *values, unsigned n,
			       double budget)
{
	printf("FIGURE\t%s\t%.6g\t%s\t\t0\t%.6g\t%.6g\t%.6g\t%.6g\n", what, bench_median(values, n),
	       unit, bench_median(values, n), bench_quantile(values, n, 0.25),
	       bench_quantile(values, n, 0.75), budget);
}

/*
 * The same thing measured twice: how far the machine lets any ratio be trusted.  Figures behind it,
 * up to the next such line, are inconclusive if the two differ by more than 5 %.
 */
static inline void bench_same(const char *what, const double *a, const double *b, unsigned n)
{
	double ratios[BENCH_ROUNDS_MAX];

	for (unsigned i = 0; i < n; i++)
		ratios[i] = a[i] / b[i];
	printf("SAME\t%s\t%.6g\n", what, bench_median(ratios, n));
}

#endif /* D9_BENCH_H */
