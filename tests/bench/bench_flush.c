/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of events after they were recorded: CPU of the thread that packs and writes them, and
 * bytes on disk.  Four threads of this process do what loops do - rounds of some callbacks, each with
 * its wake, of 200 tasks at 20 places, times and order left to chance and to the machine.
 *
 *	bench_flush                      zstd and none take turns
 *	bench_flush --make DIR EVENTS    only record some EVENTS to DIR, for `dial9 report`
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#include "bench/bench.h"

#define WORKERS	    4
#define CALLSITES   20
#define TASKS	    200
#define READY_MAX   8
#define ROUNDS	    7
#define EVENTS	    1500000
#define DEADLINE_MS 120000
#define BEHIND_MAX  300000 /* events */

struct worker {
	struct d9_loop *loop;
	uint64_t events, seed;
};

static const struct d9_callsite *callsites[CALLSITES];
static _Atomic(uint64_t) total; /* recorded */

static uint64_t draw(struct worker *worker, uint64_t below)
{
	worker->seed = worker->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (worker->seed >> 33) % below;
}

static void spend(uint64_t ns)
{
	uint64_t end = d9_loop_now() + ns;

	while (d9_loop_now() < end)
		;
}

static uint64_t key_of(const struct worker *worker, uint64_t task)
{
	return (uint64_t)(uintptr_t)worker + task;
}

static void call(struct worker *worker, uint64_t task, uint32_t depth)
{
	struct d9_poll poll = { .loop = worker->loop,
				.task = { .key = key_of(worker, task), .identity = 1,
					  .callsite = callsites[task % CALLSITES],
					  .fd = (int)task, .kind = D9_TASK_IO },
				.depth = depth, .flags = D9_POLL_BATCHED };

	d9_poll_begin(&poll);
	spend(draw(worker, 8) ? draw(worker, 400) : draw(worker, 8000));
	d9_poll_end(&poll);
}

/* Wait while the flush thread is far behind: nothing may be lost, however busy the machine is. */
static void keep_pace(uint64_t more)
{
	static const struct timespec moment = { 0, 2000000 };
	uint64_t recorded = atomic_fetch_add(&total, more) + more;
	struct d9_counters counters;

	for (;;) {
		d9_recorder_counters(d9_recorder_running(), &counters, sizeof(counters));
		if (recorded < counters.events_written + BEHIND_MAX)
			return;
		nanosleep(&moment, NULL);
	}
}

/* Rounds of one to eight callbacks until |worker->events| are recorded. */
static void *work(void *arg)
{
	struct worker *worker = arg;
	struct d9_loop_run run;

	d9_loop_enter(worker->loop, &run);
	for (uint64_t done = 0, told = 0; done < worker->events;) {
		uint32_t n = 1 + (uint32_t)draw(worker, READY_MAX);
		uint64_t ready[READY_MAX];

		d9_loop_park(worker->loop, -1);
		spend(draw(worker, 2000));
		/* As adapters do: what the backend reports is announced before anything runs. */
		for (uint32_t i = 0; i < n; i++) {
			ready[i] = draw(worker, TASKS);
			d9_wake(worker->loop, key_of(worker, ready[i]), D9_WAKE_FD, NULL);
		}
		d9_loop_unpark(worker->loop);
		for (uint32_t i = 0; i < n; i++)
			call(worker, ready[i], n - i);
		done += 2 + 2 * n; /* wakes stand in PollStartEvent */
		if (done - told < 4096)
			continue;
		keep_pace(done - told);
		told = done;
	}
	d9_loop_leave(&run);
	return NULL;
}

/* CPU time of the thread dial9-flush, in ns; 0 if it is not there. */
static double flush_cpu_ns(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300], name[32];
	double ns = 0;

	while (dir && (entry = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) && !strcmp(name, "dial9-flush\n")) {
			/* The kernel's clock of a thread: see clock_getcpuclockid(3). */
			clockid_t clock = (clockid_t)(~(unsigned)atoi(entry->d_name) << 3 | 6);

			ns = bench_clock(clock);
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return ns;
}

struct outcome {
	double ns, bytes; /* per event */
	uint64_t events, lost;
};

static struct d9_recorder *start(const char *dir, enum d9_compress compress)
{
	struct d9_recorder *recorder = NULL;
	struct d9_options *options;

	if (d9_options_new(&options))
		return NULL;
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir);
	d9_options_set_compress(options, compress);
	d9_options_set_max_total_bytes(options, UINT64_C(4) << 30);
	d9_options_set_ring_mb(options, 128);
	if (d9_recorder_start(options, &recorder))
		recorder = NULL;
	d9_options_free(options);
	return recorder;
}

static bool record(const char *dir, enum d9_compress compress, uint64_t events, struct outcome *out)
{
	const struct timespec settle = { 0, 400000000 };
	struct worker workers[WORKERS] = { 0 };
	struct d9_recorder *recorder = start(dir, compress);
	struct d9_counters counters;
	pthread_t threads[WORKERS];
	double before;

	if (!recorder)
		return false;
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	atomic_store(&total, 0);
	before = flush_cpu_ns();
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].events = events / WORKERS;
		workers[i].seed = i + 1;
		if (d9_loop_register(D9_LIBRARY_OWN, &workers[i], "bench", &workers[i].loop) ||
		    pthread_create(&threads[i], NULL, work, &workers[i]))
			return false;
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		d9_loop_unregister(workers[i].loop);
	}
	d9_recorder_rotate(recorder, DEADLINE_MS);
	out->ns = flush_cpu_ns() - before;
	d9_recorder_counters(recorder, &counters, sizeof(counters));
	out->events = counters.events_written;
	out->ns /= (double)counters.events_written;
	out->bytes = (double)counters.bytes_written / (double)counters.events_written;
	out->lost = counters.lost[D9_LOSS_OVERRUN] + counters.lost[D9_LOSS_NO_CHUNK];
	return !d9_recorder_stop(recorder, DEADLINE_MS);
}

static int compare(void)
{
	double packed[ROUNDS], again[ROUNDS], plain[ROUNDS], bytes[ROUNDS];
	char dir[] = "/tmp/bench_flush.XXXXXX", command[64];
	struct outcome first, none, second;

	if (!mkdtemp(dir))
		return 2;
	snprintf(command, sizeof(command), "rm -rf '%s'/*", dir);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (!record(dir, D9_COMPRESS_ZSTD, EVENTS, &first) ||
		    !record(dir, D9_COMPRESS_NONE, EVENTS, &none) ||
		    !record(dir, D9_COMPRESS_ZSTD, EVENTS, &second) || system(command))
			return 2;
		if (first.lost || none.lost || second.lost)
			puts("events were lost: what is left is dearer");
		packed[i] = first.ns;
		again[i] = second.ns;
		plain[i] = none.ns;
		bytes[i] = first.bytes;
	}
	rmdir(dir);
	bench_same("the flush thread", packed, again, ROUNDS);
	bench_value("flush thread, zstd", "ns/event", packed, ROUNDS, 25);
	bench_value("flush thread, uncompressed", "ns/event", plain, ROUNDS, 12);
	bench_value("on disk, all fields, zstd", "bytes/event", bytes, ROUNDS, 3.1);
	return 0;
}

int main(int argc, char **argv)
{
	struct outcome made;

	for (unsigned i = 0; i < CALLSITES; i++)
		callsites[i] = d9_callsite((const void *)((uintptr_t)call + 16 * i),
					   (const void *)((uintptr_t)work + 16 * i), 0);
	if (argc == 1)
		return compare();
	if (argc != 4 || strcmp(argv[1], "--make") != 0) {
		fputs("usage: bench_flush [--make DIR EVENTS]\n", stderr);
		return 2;
	}
	if (!record(argv[2], D9_COMPRESS_ZSTD, strtoull(argv[3], NULL, 10), &made))
		return 2;
	printf("%" PRIu64 " events, %" PRIu64 " lost\n", made.events, made.lost);
	return 0;
}
