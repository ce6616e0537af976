/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of beginning each segment with the tasks and spans that are open: CPU time of the
 * process per rotation, nearly all of it the flush thread's, and bytes in the segment, against a
 * loop with one task.
 */
#include "config.h"

#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>
#include <dial9/span.h>

#include "bench/bench.h"

#define ROUNDS 21
#define TASKS  10000
#define SPANS  256 /* as many as one thread's are told */

static struct d9_loop *loop;
static struct d9_recorder *recorder;

static void poll_task(uint64_t key)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = (int)key, .kind = D9_TASK_IO } };

	poll.task.callsite = d9_callsite((const void *)(0x1000 + key % 20 * 64), (const void *)0x2000, 0);
	d9_poll_begin(&poll);
	d9_poll_end(&poll);
}

struct cost {
	double ms[ROUNDS], kib[ROUNDS];
};

/* Each segment holds one callback and what leads it in. */
static void rotate(struct cost *cost)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct d9_counters before = { 0 }, after = { 0 };
		double from = bench_clock(CLOCK_PROCESS_CPUTIME_ID);

		poll_task(1);
		d9_recorder_counters(recorder, &before, sizeof(before));
		if (d9_recorder_rotate(recorder, 10000))
			exit(2);
		d9_recorder_counters(recorder, &after, sizeof(after));
		cost->ms[i] = (bench_clock(CLOCK_PROCESS_CPUTIME_ID) - from) / 1e6;
		cost->kib[i] = (double)(after.bytes_written - before.bytes_written) / 1024;
	}
}

int main(void)
{
	static struct d9_span_site site = D9_SPAN_SITE(D9_SPAN_INFO, "bench", "request");
	static struct d9_span spans[SPANS];
	static struct cost one, many, inside;
	struct d9_options *options;

	if (d9_options_new(&options))
		return 2;
	d9_options_set_environment(options, false);
	d9_options_set_writer(options, D9_WRITER_MEMORY);
	if (d9_recorder_start(options, &recorder) || d9_loop_register(D9_LIBRARY_OWN, &loop, "bench", &loop))
		return 2;
	d9_options_free(options);
	rotate(&one);
	for (unsigned i = 0; i < SPANS; i++)
		d9_span_create(&spans[i], &site, D9_SPAN_ROOT, NULL, 0);
	rotate(&inside);
	for (unsigned i = 0; i < SPANS; i++)
		d9_span_close(&spans[i]);
	for (uint64_t key = 1; key <= TASKS; key++)
		poll_task(key);
	if (d9_recorder_rotate(recorder, 10000))
		return 2;
	rotate(&many);
	d9_loop_unregister(loop);
	d9_recorder_stop(recorder, 10000);
	for (unsigned i = 0; i < ROUNDS; i++) {
		many.ms[i] -= one.ms[i];
		many.kib[i] -= one.kib[i];
		inside.ms[i] -= one.ms[i];
		inside.kib[i] -= one.kib[i];
	}
	bench_value("a rotation, for 10 000 living tasks", "ms of CPU", many.ms, ROUNDS, 0);
	bench_value("a segment, for 10 000 living tasks", "KiB", many.kib, ROUNDS, 0);
	bench_value("a rotation, for 256 open spans", "ms of CPU", inside.ms, ROUNDS, 0);
	bench_value("a segment, for 256 open spans", "KiB", inside.kib, ROUNDS, 0);
	return 0;
}
