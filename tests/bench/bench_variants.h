/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variants of one call, measured in turn, round by round, forwards and backwards; the first of them is what
 * all the others do as well, and taken off.
 */

#ifndef D9_BENCH_VARIANTS_H
#define D9_BENCH_VARIANTS_H

#include <dial9/recorder.h>

#include "bench/bench.h"

#define BENCH_ROUNDS       41
#define BENCH_CALLS        16384
#define BENCH_VARIANTS_MAX 16

struct bench_variant {
	const char *name;
	void (*fn)(uint64_t i);
	bool off; /* with recording switched off */
};

static double bench_results[BENCH_VARIANTS_MAX][BENCH_ROUNDS];

static inline double bench_measure(const struct bench_variant *variant)
{
	double before;

	if (variant->off)
		d9_disable();
	for (uint64_t i = 0; i < BENCH_CALLS / 16; i++)
		variant->fn(i);
	before = bench_cpu_ns();
	for (uint64_t i = 0; i < BENCH_CALLS; i++)
		variant->fn(i);
	before = bench_cpu_ns() - before;
	if (variant->off)
		d9_enable();
	return before / BENCH_CALLS;
}

static inline void bench_measure_all(const struct bench_variant *variants, size_t n)
{
	for (size_t round = 0; round < BENCH_ROUNDS; round++)
		for (size_t i = 0; i < n; i++) {
			size_t v = round % 2 ? n - 1 - i : i;

			bench_results[v][round] = bench_measure(&variants[v]);
		}
}

/* Return by how much variant |v| cost more than the first one, for each round. */
static inline const double *bench_cost(size_t v)
{
	static double costs[BENCH_VARIANTS_MAX][BENCH_ROUNDS];

	for (size_t i = 0; i < BENCH_ROUNDS; i++)
		costs[v][i] = bench_results[v][i] - bench_results[0][i];
	return costs[v];
}

#endif /* D9_BENCH_VARIANTS_H */
