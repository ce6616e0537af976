/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a span costs: entering and leaving one, making one for a block, and asking for one that the
 * filter leaves out; against one clock_gettime(CLOCK_MONOTONIC) and one relaxed load of the same run.
 */
#include "config.h"

#include <dial9/span.h>

#include "bench/bench.h"
#include "bench/bench_recorder.h"

#define ROUNDS 41
#define CALLS  16384
#define BUDGET_NS 60.0

static const struct d9_field fields[] = {
	{ "path", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "bytes", D9_FIELD_VARINT, "bytes", NULL },
};
static struct d9_span_site plain = D9_SPAN_SITE(D9_SPAN_INFO, "bench", "plain");
static struct d9_span_site detailed = D9_SPAN_SITE_WITH(D9_SPAN_INFO, "bench", "detailed", fields);
static struct d9_span_site unwanted = D9_SPAN_SITE(D9_SPAN_TRACE, "bench", "unwanted");
static struct d9_span span, with_fields;
static struct d9_name index_page;
static uint32_t word;
static volatile uint64_t sink;

static inline void work(uint64_t i)
{
	sink = i;
}

static void bare(uint64_t i)
{
	work(i);
}

static void clock_read(uint64_t i)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	work(i);
}

static void one_load(uint64_t i)
{
	if (__atomic_load_n(&word, __ATOMIC_RELAXED))
		work(i + 1);
	work(i);
}

static void enter_exit(uint64_t i)
{
	d9_span_enter(&span);
	work(i);
	d9_span_exit(&span);
}

static void enter_exit_fields(uint64_t i)
{
	d9_span_enter(&with_fields);
	work(i);
	d9_span_exit(&with_fields);
}

static void block(uint64_t i)
{
	D9_SPAN_SCOPE(&plain);
	work(i);
}

static void block_fields(uint64_t i)
{
	D9_SPAN_SCOPE_WITH(&detailed, index_page, i);
	work(i);
}

static void block_unwanted(uint64_t i)
{
	D9_SPAN_SCOPE(&unwanted);
	work(i);
}

static void block_off(uint64_t i)
{
	D9_SPAN_SCOPE(&plain);
	work(i);
}

enum { BARE, CLOCK, LOAD, ENTER, FIELDS, BLOCK, BLOCK_FIELDS, UNWANTED, OFF, AGAIN, VARIANTS };

static const struct {
	const char *name;
	void (*fn)(uint64_t i);
	int peer;
} variants[VARIANTS] = {
	[BARE] = { "nothing", bare, 0 },
	[CLOCK] = { "clock_gettime", clock_read, 0 },
	[LOAD] = { "a relaxed load", one_load, 0 },
	[ENTER] = { "span: enter and exit", enter_exit, CLOCK },
	[FIELDS] = { "span: enter and exit, two fields", enter_exit_fields, CLOCK },
	[BLOCK] = { "span: a block (create, enter, exit, close)", block, CLOCK },
	[BLOCK_FIELDS] = { "span: a block with two fields", block_fields, CLOCK },
	[UNWANTED] = { "span: a block that the filter leaves out", block_unwanted, CLOCK },
	[OFF] = { "span: a block, recording off", block_off, CLOCK },
	[AGAIN] = { "span: enter and exit again", enter_exit, CLOCK },
};

static double results[VARIANTS][ROUNDS];

static double measure(size_t v)
{
	double before;

	if (v == OFF)
		d9_disable();
	for (uint64_t i = 0; i < CALLS / 16; i++)
		variants[v].fn(i);
	before = bench_cpu_ns();
	for (uint64_t i = 0; i < CALLS; i++)
		variants[v].fn(i);
	before = bench_cpu_ns() - before;
	if (v == OFF)
		d9_enable();
	return before / CALLS;
}

/* Differences to nothing in the same round. */
static const double *cost(size_t v)
{
	static double costs[VARIANTS][ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++)
		costs[v][i] = results[v][i] - results[BARE][i];
	return costs[v];
}

static int start(void)
{
	int err = bench_start_recorder();

	index_page = d9_name_intern("/index");
	if (!err)
		err = d9_span_create(&span, &plain, D9_SPAN_ROOT, NULL, 0);
	if (!err)
		err = D9_SPAN_CREATE(&with_fields, &detailed, D9_SPAN_ROOT, "/index", 4096);
	return err || !d9_span_id(&span) || !d9_span_id(&with_fields);
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
	bench_same("a span", cost(ENTER), cost(AGAIN), ROUNDS);
	for (size_t v = ENTER; v < AGAIN; v++)
		bench_ratio(variants[v].name, "ns", cost(v), variants[variants[v].peer].name,
			    cost((size_t)variants[v].peer), ROUNDS, 0);
	bench_value("a span: enter and exit", "ns", cost(ENTER), ROUNDS, BUDGET_NS);
	bench_value("a relaxed load", "ns", cost(LOAD), ROUNDS, 0);
	return 0;
}
