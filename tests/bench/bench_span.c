/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a span: entering and leaving one, making one for a block, and asking for one that the
 * filter leaves out; against one clock_gettime(CLOCK_MONOTONIC) and one relaxed load of the same run.
 */
#include "config.h"

#include <dial9/span.h>

#include "bench/bench_recorder.h"
#include "bench/bench_variants.h"

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

enum { BARE, CLOCK, LOAD, ENTER, FIELDS, BLOCK, BLOCK_FIELDS, UNWANTED, OFF, AGAIN, VARIANTS };

static const struct bench_variant variants[VARIANTS] = {
	[BARE] = { "nothing", bare, false },
	[CLOCK] = { "clock_gettime", clock_read, false },
	[LOAD] = { "a relaxed load", one_load, false },
	[ENTER] = { "span: enter and exit", enter_exit, false },
	[FIELDS] = { "span: enter and exit, two fields", enter_exit_fields, false },
	[BLOCK] = { "span: a block (create, enter, exit, close)", block, false },
	[BLOCK_FIELDS] = { "span: a block with two fields", block_fields, false },
	[UNWANTED] = { "span: a block that the filter leaves out", block_unwanted, false },
	[OFF] = { "span: a block, recording off", block, true },
	[AGAIN] = { "span: enter and exit again", enter_exit, false },
};

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
	bench_measure_all(variants, VARIANTS);
	bench_same("a span", bench_cost(ENTER), bench_cost(AGAIN), BENCH_ROUNDS);
	for (size_t v = ENTER; v < AGAIN; v++)
		bench_ratio(variants[v].name, "ns", bench_cost(v), variants[CLOCK].name,
			    bench_cost(CLOCK), BENCH_ROUNDS, 0);
	bench_value("a span: enter and exit", "ns", bench_cost(ENTER), BENCH_ROUNDS, BUDGET_NS);
	bench_value("a relaxed load", "ns", bench_cost(LOAD), BENCH_ROUNDS, 0);
	return 0;
}
