/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a program without any loop, sampled by each of the ways there are. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dial9/options.h>

#include "base/sanitized.h"
#include "core/record/scratch.h"
#include "sample/sampler.h"

#define THREADS 3
#define ROUNDS	8

static _Atomic(bool) enough;

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void compute(double seconds)
{
	double end = used() + seconds;
	volatile double sink = 0;

	while (used() < end)
		for (int i = 0; i < 5000; i++)
			sink = sink * 1.0000001 + i;
}

static void *compute_for_long(void *unused)
{
	pthread_setname_np(pthread_self(), "long");
	while (!atomic_load(&enough))
		compute(0.01);
	return unused;
}

static void *compute_for_short(void *unused)
{
	pthread_setname_np(pthread_self(), "short");
	compute(0.01);
	return unused;
}

/* Some threads that go on, and others that come and go beside them. */
static void run_threads(void)
{
	pthread_t threads[THREADS], other;

	atomic_store(&enough, false);
	for (int i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, compute_for_long, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, compute_for_short, NULL), 0);
		pthread_join(other, NULL);
		compute(0.02);
	}
	atomic_store(&enough, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

struct found {
	uint32_t on, off, long_ones, ours, without_worker, with_cpu;
	char cpu[256], off_cpu[256]; /* source.cpu, source.offcpu */
};

static void take_metadata(struct found *found, const struct d9_event *event)
{
	const struct d9_value *entries = d9_event_field(event, "entries");

	for (size_t i = 0; entries && i < entries->u.string_map.n; i++) {
		const struct d9_text *pair = &entries->u.string_map.pairs[2 * i];

		if (pair->len == 10 && !memcmp(pair->data, "source.cpu", 10))
			snprintf(found->cpu, sizeof(found->cpu), "%.*s", (int)pair[1].len, pair[1].data);
		if (pair->len == 13 && !memcmp(pair->data, "source.offcpu", 13))
			snprintf(found->off_cpu, sizeof(found->off_cpu), "%.*s", (int)pair[1].len, pair[1].data);
	}
}

static void take(void *arg, const struct d9_event *event)
{
	struct found *found = arg;
	const struct d9_value *name = d9_event_field(event, "thread_name"), *cpu = d9_event_field(event, "cpu");

	if (event->kind == D9_EVENT_SEGMENT_METADATA)
		take_metadata(found, event);
	if (event->kind != D9_EVENT_CPU_SAMPLE)
		return;
	found->on += d9_event_u64(event, "source", 9) == 0;
	found->off += d9_event_u64(event, "source", 9) == 1;
	found->without_worker += d9_event_u64(event, "worker_id", 0) == 255;
	found->with_cpu += cpu && cpu->present;
	if (name && name->present) {
		found->long_ones += name->u.text.len == 4 && !memcmp(name->u.text.data, "long", 4);
		found->ours += name->u.text.len > 6 && !memcmp(name->u.text.data, "dial9-", 6);
	}
}

static struct found record(enum d9_cpu_threads threads, enum d9_cpu_backend backend, bool off_cpu)
{
	struct d9_options *options = scratch_options();
	struct found found = { 0 };
	struct d9_recorder *recorder;

	CU_ASSERT_EQUAL(d9_options_set_cpu_threads(options, threads), 0);
	CU_ASSERT_EQUAL(d9_options_set_cpu_backend(options, backend), 0);
	CU_ASSERT_EQUAL(d9_options_set_off_cpu(options, off_cpu), 0);
	CU_ASSERT_EQUAL(d9_options_set_loop_instrumentation(options, false), 0);
	d9__sampler_start();
	recorder = scratch_start(options);
	run_threads();
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 20000), 0);
	scratch_read(scratch_dir, true, take, &found);
	scratch_remove();
	return found;
}

static void test_timers_find_threads_without_loops_under_their_names(void)
{
	struct found found = record(D9_CPU_THREADS_ALL, D9_CPU_BACKEND_TIMER, false);

	/* ThreadSanitizer's runtime has a thread that blocks all signals: it is told of where this takes half a second. */
	CU_ASSERT(!strcmp(found.cpu, "on") || (D9__SANITIZED == 2 && strstr(found.cpu, "blocks the signal")));
	CU_ASSERT(found.long_ones > 0);
	CU_ASSERT_EQUAL(found.ours, 0);
	CU_ASSERT_EQUAL(found.without_worker, found.on);
	CU_ASSERT_EQUAL(found.with_cpu, 0);
}

/* It may run a loop later; what it does until then is its start. */
static void test_where_loops_are_sampled_the_first_thread_is_before_it_has_one(void)
{
	struct found found = record(D9_CPU_THREADS_LOOP, D9_CPU_BACKEND_TIMER, false);

	CU_ASSERT(found.on > 0);
	CU_ASSERT_EQUAL(found.without_worker, found.on);
	CU_ASSERT_EQUAL(found.long_ones, 0);
}

/* Where perf events are not permitted, nothing takes their place, and why is told. */
static void test_perf_events_find_them_or_it_is_told_why_not(void)
{
	static const enum d9_cpu_backend backends[] = { D9_CPU_BACKEND_PERF, D9_CPU_BACKEND_PERF_THREAD };

	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		struct found found = record(D9_CPU_THREADS_ALL, backends[i], true);

		printf("backend %d: %s; off the CPU: %s\n", (int)backends[i], found.cpu, found.off_cpu);
		if (strncmp(found.cpu, "on", 2) != 0) {
			CU_ASSERT_EQUAL(strncmp(found.cpu, "off: ", 5), 0);
			CU_ASSERT_EQUAL(found.on, 0);
		} else {
			CU_ASSERT(found.long_ones > 0);
			CU_ASSERT_EQUAL(found.with_cpu, found.on + found.off);
			CU_ASSERT_EQUAL(found.ours, 0);
		}
		CU_ASSERT(found.off == 0 || !strncmp(found.off_cpu, "on", 2));
		CU_ASSERT(!strncmp(found.off_cpu, "on", 2) || !strncmp(found.off_cpu, "off: ", 5));
	}
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "timers find threads without loops under their names",
		  test_timers_find_threads_without_loops_under_their_names },
		{ "where loops are sampled the first thread is, before it has one",
		  test_where_loops_are_sampled_the_first_thread_is_before_it_has_one },
		{ "perf events find them, or it is told why not", test_perf_events_find_them_or_it_is_told_why_not },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("sampler", tests);
}
