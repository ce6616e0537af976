/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Soak: a process that records for long, and must not grow, forget or leak.
 *
 *	soak [SECONDS [EVENTS_PER_SECOND]]
 *
 * Four threads record polls and events of their own in bursts, a millisecond apart; a fifth kind
 * lives for a hundred events only.  Meanwhile the segment is rotated, the last seconds are dumped,
 * recording is switched off and on, and old segments are evicted.  Every segment is read back when
 * it is sealed, and every dump, so that all counts can be held against each other at the end:
 *
 *	recorded  = read back, or read back and lost where something was lost
 *	counters  = read back
 *	memory, descriptors and disk of the last half are not above those of the first
 *
 * Exit 1 with a line for each that does not hold.
 */
#include "config.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dial9/event.h>
#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#include "soak/census.h"
#include "soak/usage.h"

#define WORKERS	      4
#define VISITOR	      WORKERS /* source of the threads that do not last */
#define VISITOR_STEPS 100
#define BUDGET_BYTES  (UINT64_C(32) << 20)
#define DEADLINE_MS   60000
#define DUMP_MS	      3000
#define MIB	      1048576.0

/*
 * This process reads its segments back, which takes some MiB for a moment that a look at the memory may meet or not; eight
 * bytes an event that leaked would be more.  Sanitizers keep what was freed for a while.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLACK_BYTES (UINT64_C(512) << 20)
#else
#define SLACK_BYTES (UINT64_C(12) << 20)
#endif

static const struct d9_field step_fields[] = {
	{ "source", D9_FIELD_VARINT, NULL, NULL },
	{ "number", D9_FIELD_VARINT, NULL, NULL },
};

static struct d9_event_type step_type = D9_EVENT_TYPE("SoakStep", step_fields);

struct worker {
	pthread_t thread;
	struct d9_loop *loop;
	uint64_t source, steps, polls, silent;
};

static struct worker workers[WORKERS];
static uint64_t visitor_steps;
static unsigned long per_ms; /* events of one worker */
static atomic_bool ending;
static struct census census;
static uint64_t sealed_events, incomplete;
static uint64_t dumps, dumped_events, bad_dumps;

/* Recording is switched while no worker is inside a burst: then each knows what was recorded. */
static pthread_rwlock_t switching = PTHREAD_RWLOCK_INITIALIZER;
static bool on = true; /* guarded by switching */

static struct d9_recorder *recorder;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- what is recorded ---- */

static void callback(void)
{
}

static void poll_once(struct worker *worker, uint64_t key)
{
	struct d9_poll poll = { .loop = worker->loop,
				.task = { .key = key, .identity = 1, .fd = -1,
					  .kind = D9_TASK_ACTIVE },
				.depth = 1 };

	poll.task.callsite = d9_callsite((const void *)(uintptr_t)callback, NULL, 0);
	d9_poll_begin(&poll);
	d9_poll_end(&poll);
}

/* Two events for each poll and one for each step; and, switched off, none. */
static void burst(struct worker *worker)
{
	for (unsigned long i = 0; i < per_ms; i += 3) {
		poll_once(worker, 1 + worker->source * 100 + i % 50);
		D9_EMIT(&step_type, worker->source, worker->steps);
		if (on) {
			worker->polls++;
			worker->steps++;
		} else {
			worker->silent++;
		}
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct d9_loop_run run;
	struct timespec next;

	d9_loop_enter(worker->loop, &run);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!atomic_load(&ending)) {
		d9_loop_park(worker->loop, 1000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		d9_loop_unpark(worker->loop);
		pthread_rwlock_rdlock(&switching);
		burst(worker);
		pthread_rwlock_unlock(&switching);
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
	}
	d9_loop_leave(&run);
	return NULL;
}

static void *visit(void *arg)
{
	(void)arg;
	pthread_rwlock_rdlock(&switching);
	for (int i = 0; i < VISITOR_STEPS; i++) {
		D9_EMIT(&step_type, VISITOR, visitor_steps);
		visitor_steps += on;
	}
	pthread_rwlock_unlock(&switching);
	return NULL;
}

/* ---- what comes back ---- */

static void take_segment(void *arg, const struct d9_sealed_segment *segment)
{
	(void)arg;
	/* One that tells of tasks in a dump is read, and removed, by who dumps. */
	if (strstr(d9_sealed_segment_path(segment), "/dump/"))
		return;
	sealed_events += d9_sealed_segment_events(segment);
	incomplete += !d9_sealed_segment_complete(segment);
	census_add(&census, d9_sealed_segment_path(segment));
}

/* ---- the course of it ---- */

static int start(const char *dir)
{
	struct d9_options *options;
	int err;

	if (d9_options_new(&options))
		return 1;
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir);
	d9_options_set_max_total_bytes(options, BUDGET_BYTES);
	d9_options_set_rotation_ms(options, 7000);
	d9_options_set_segment_sealed(options, take_segment, NULL);
	err = d9_recorder_start(options, &recorder);
	d9_options_free(options);
	return err;
}

static int start_workers(void)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		struct worker *worker = &workers[i];

		worker->source = i;
		if (d9_loop_register(D9_LIBRARY_OWN, worker, "soak", &worker->loop) ||
		    pthread_create(&worker->thread, NULL, work, worker))
			return 1;
	}
	return 0;
}

static void switch_recording(bool wanted)
{
	pthread_rwlock_wrlock(&switching);
	on = wanted;
	if (wanted)
		d9_enable();
	else
		d9_disable();
	pthread_rwlock_unlock(&switching);
}

/* Dump the last seconds beside |dir|, read them and throw them away. */
static void dump(const char *dir)
{
	struct d9_dump_receipt receipt;
	struct census found = { 0 };
	const struct dirent *entry;
	char to[4200];
	DIR *folder;

	snprintf(to, sizeof(to), "%s/dump", dir);
	bad_dumps += d9_dump(recorder, DUMP_MS, to, DEADLINE_MS, &receipt, sizeof(receipt)) != 0 ||
		     !receipt.segments;
	census_add(&found, receipt.path);
	folder = opendir(receipt.path);
	while (folder && (entry = readdir(folder)))
		unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(receipt.path);
	rmdir(to);
	bad_dumps += found.damaged || found.disorder || found.segments != receipt.segments;
	dumps++;
	dumped_events += found.steps;
}

/* One second of it. */
static void one_second(unsigned long second, const char *dir)
{
	const struct timespec short_time = { 0, 200000000 }, rest = { 0, 800000000 };
	pthread_t visitor;

	if (second % 5 == 3)
		switch_recording(false);
	nanosleep(&short_time, NULL);
	if (second % 5 == 3)
		switch_recording(true);
	if (!pthread_create(&visitor, NULL, visit, NULL))
		pthread_join(visitor, NULL);
	if (second % 10 == 6)
		d9_recorder_rotate(recorder, DEADLINE_MS);
	if (second % 10 == 9)
		dump(dir);
	nanosleep(&rest, NULL);
}

static void run(unsigned long seconds, const char *dir, struct usage *usage)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + seconds * UINT64_C(1000000000);

	for (unsigned long second = 0; now_ns(CLOCK_MONOTONIC) < end; second++) {
		one_second(second, dir);
		usage_sample(usage, dir);
	}
	atomic_store(&ending, true);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
}

/* ---- judgement ---- */

static int failures;

__attribute__((format(printf, 2, 3))) static void expect(bool holds, const char *format, ...)
{
	va_list args;

	if (holds)
		return;
	failures++;
	fputs("BROKEN: ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static uint64_t total_lost(const struct d9_counters *counters)
{
	uint64_t lost = 0;

	for (int i = 0; i < D9_LOSS_COUNT; i++)
		lost += counters->lost[i];
	return lost;
}

static void judge_counts(const struct d9_counters *counters)
{
	uint64_t steps = visitor_steps, polls = 0, silent = 0, lost = total_lost(counters);

	for (unsigned i = 0; i < WORKERS; i++) {
		steps += workers[i].steps;
		polls += workers[i].polls;
		silent += workers[i].silent;
	}
	printf("recorded: %" PRIu64 " steps, %" PRIu64 " polls (%" PRIu64 " while switched off)\n",
	       steps, polls, silent);
	printf("read back: %" PRIu64 " events in %" PRIu64 " segments; %" PRIu64 " steps, %" PRIu64
	       " polls\n", census.events, census.segments, census.steps, census.starts);
	printf("counters: %" PRIu64 " events written, %" PRIu64 " lost, %" PRIu64
	       " segments sealed, %" PRIu64 " evicted, %" PRIu64 " write errors\n",
	       counters->events_written, lost, counters->segments_sealed,
	       counters->segments_evicted, counters->write_errors);

	printf("%" PRIu64 " dumps with %" PRIu64 " steps\n", dumps, dumped_events);
	expect(!bad_dumps && (!dumps || dumped_events), "dumps fail, or cannot be read");
	expect(!census.damaged, "%" PRIu64 " damaged segments, %s", census.damaged, census.message);
	expect(!census.disorder, "%" PRIu64 " steps twice or out of order", census.disorder);
	expect(!counters->write_errors, "writing failed");
	expect(census.segments == counters->segments_sealed, "not every sealed segment was seen");
	expect(sealed_events == counters->events_written,
	       "segments say that they hold %" PRIu64 " events", sealed_events);
	expect(census.noted_losses == lost, "the trace tells of %" PRIu64 " lost events",
	       census.noted_losses);
	expect((lost == 0) == (incomplete == 0), "%" PRIu64 " segments say that they are incomplete",
	       incomplete);
	expect(census.steps <= steps && census.steps + lost >= steps, "steps do not add up");
	if (lost)
		return;
	/* Where something was lost, missing ends and starts of polls were put in. */
	expect(census.starts == polls && census.ends == polls, "polls do not add up");
	expect(census.events - census.lead - census.notes == counters->events_written,
	       "more or less was read back than was written");
}

static void judge_usage(const struct usage *usage)
{
	uint64_t resident = series_most(&usage->resident, 0.1, 0.5);
	uint64_t resident_end = series_most(&usage->resident, 0.5, 1);
	uint64_t descriptors = series_most(&usage->descriptors, 0.1, 0.5);
	uint64_t descriptors_end = series_most(&usage->descriptors, 0.5, 1);
	uint64_t disk = series_most(&usage->disk, 0, 1);

	printf("resident memory of its own at most %.1f MiB in the first half, %.1f in the second\n",
	       (double)resident / MIB, (double)resident_end / MIB);
	printf("descriptors at most %" PRIu64 ", then %" PRIu64 "; disk at most %.1f MiB of %.0f\n",
	       descriptors, descriptors_end, (double)disk / MIB, (double)BUDGET_BYTES / MIB);
	expect(resident_end <= resident + resident / 10 + SLACK_BYTES, "memory grows");
	/* Dumps have some open for a moment, which the samples of one half may all miss. */
	expect(descriptors_end <= descriptors + 4, "descriptors leak");
	expect(disk <= BUDGET_BYTES + (1 << 20), "more disk than the budget");
}

int main(int argc, char **argv)
{
	unsigned long seconds = argc > 1 ? strtoul(argv[1], NULL, 10) : 3600;
	unsigned long rate = argc > 2 ? strtoul(argv[2], NULL, 10) : 200000;
	const char *tmp = getenv("TMPDIR");
	struct d9_counters counters;
	struct usage usage = { 0 };
	char dir[4096], command[4200];
	uint64_t begin = now_ns(CLOCK_MONOTONIC);

	snprintf(dir, sizeof(dir), "%s/soak.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	per_ms = rate / 1000 / WORKERS;
	if (!seconds || per_ms < 3 || !mkdtemp(dir)) {
		fputs("usage: soak [SECONDS [EVENTS_PER_SECOND, from 12000]]\n", stderr);
		return 2;
	}
	if (start(dir) || start_workers()) {
		fputs("cannot start\n", stderr);
		return 1;
	}
	run(seconds, dir, &usage);
	expect(!d9_recorder_stop(recorder, DEADLINE_MS), "the recorder does not stop");
	d9_recorder_counters(recorder, &counters, sizeof(counters));
	printf("%.0f s, %.0f events/s, %.2f s of CPU, reading back included\n",
	       (double)(now_ns(CLOCK_MONOTONIC) - begin) / 1e9,
	       (double)counters.events_written * 1e9 / (double)(now_ns(CLOCK_MONOTONIC) - begin),
	       (double)now_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	judge_counts(&counters);
	judge_usage(&usage);
	usage_release(&usage);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) || failures;
}
