/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process pays for being recorded at all: to start under `dial9 record` or with the preload
 * library, to attach its first loop, to rest, and in memory.  Each figure is from processes of its
 * own, which take turns with ones that are not recorded.
 *
 *	bench_process DIAL9 PRELOAD_LIBRARY
 */
#include "config.h"

#include <spawn.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#include "bench/bench.h"

#define ROUNDS	   41
#define REST_ROUNDS 5
#define REST_MS	   3000

static char dir[] = "/tmp/bench_process.XXXXXX";

/* ---- starting ---- */

static double ms_of(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

/*
 * ms of CPU from the start of a program to its end, its children's included.  One thing happens after
 * the other, so that on a machine with nothing else to do this is what a person waits.
 */
static double run(char *const *argv, char *const *envp)
{
	struct rusage usage;
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, envp))
		exit(2);
	wait4(pid, NULL, 0, &usage);
	return ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
}

static void starting(char *dial9, const char *preload)
{
	static char true_path[] = "/bin/true", record[] = "record", quiet[] = "-q", out[] = "-o",
		    dashes[] = "--";
	char *const plain[] = { true_path, NULL };
	char *const recorded[] = { dial9, record, quiet, out, dir, dashes, true_path, NULL };
	double alone[ROUNDS], again[ROUNDS], loaded[ROUNDS], under[ROUNDS];
	char variable[4200];
	char *const with_preload[] = { variable, NULL }, *const without[] = { NULL };

	snprintf(variable, sizeof(variable), "LD_PRELOAD=%s", preload);
	for (unsigned i = 0; i < ROUNDS; i++) {
		alone[i] = run(plain, without);
		loaded[i] = run(plain, with_preload) - alone[i];
		under[i] = run(recorded, without) - alone[i];
		again[i] = run(plain, without);
	}
	bench_same("a program that ends at once", alone, again, ROUNDS);
	bench_value("starting under dial9 record", "ms of CPU", under, ROUNDS, 5);
	bench_value("loading the preload library", "ms of CPU", loaded, ROUNDS, 0);
}

/* ---- attaching and resting ---- */

struct rest {
	double attach_ms, attach_cpu_ms, another_ms, cpu_part, resident_mib;
};

static struct event_base *new_base(void)
{
	struct event_base *base = event_base_new();

	if (!base)
		_exit(2);
	return base;
}

static void nothing(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static double resident_mib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size, resident = 0;

	if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2)
		_exit(2);
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void start_recorder(void)
{
	struct d9_options *options;

	if (d9_options_new(&options))
		_exit(2);
	d9_options_set_trace_dir(options, dir);
	if (d9_recorder_start(options, NULL))
		_exit(2);
	d9_options_free(options);
}

/* A loop that a timer wakes once in ten seconds, so practically never. */
static void rest(struct rest *out, bool recorded, unsigned ms)
{
	const struct timeval wake = { 10, 0 }, end = { ms / 1000, (long)(ms % 1000) * 1000 };
	struct event_base *base = new_base(), *other = new_base();
	struct event *timer = event_new(base, -1, EV_PERSIST, nothing, NULL);
	double begin, begin_cpu;

	event_add(timer, &wake);
	begin_cpu = bench_cpu_ns();
	begin = bench_clock(CLOCK_MONOTONIC);
	if (recorded) {
		start_recorder();
		if (d9_event_base_attach(base))
			_exit(2);
	}
	out->attach_ms = (bench_clock(CLOCK_MONOTONIC) - begin) / 1e6;
	out->attach_cpu_ms = (bench_cpu_ns() - begin_cpu) / 1e6;
	begin = bench_clock(CLOCK_MONOTONIC);
	if (recorded && d9_event_base_attach(other))
		_exit(2);
	out->another_ms = (bench_clock(CLOCK_MONOTONIC) - begin) / 1e6;
	if (ms) {
		/* Until its first events are written it is not at rest. */
		event_base_loopexit(base, &(const struct timeval){ 2, 500000 });
		event_base_dispatch(base);
		begin = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
		event_base_loopexit(base, &end);
		event_base_dispatch(base);
		out->cpu_part = (bench_clock(CLOCK_PROCESS_CPUTIME_ID) - begin) / (ms * 1e6);
	}
	out->resident_mib = resident_mib();
}

static struct rest in_child(bool recorded, unsigned ms)
{
	struct rest *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rest result;
	int status;
	pid_t pid;

	if (shared == MAP_FAILED)
		exit(2);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		rest(shared, recorded, ms);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		exit(2);
	result = *shared;
	munmap(shared, sizeof(*shared));
	return result;
}

static void attaching(void)
{
	double first[ROUNDS], cpu[ROUNDS], another[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct rest result = in_child(true, 0);

		first[i] = result.attach_ms;
		cpu[i] = result.attach_cpu_ms;
		another[i] = result.another_ms;
	}
	bench_value("attaching the first loop, which starts the recorder", "ms", first, ROUNDS, 1);
	bench_value("the same, CPU of the thread", "ms", cpu, ROUNDS, 1);
	bench_value("attaching another loop", "ms", another, ROUNDS, 1);
}

static void resting(void)
{
	double percent[REST_ROUNDS], mib[REST_ROUNDS];

	for (unsigned i = 0; i < REST_ROUNDS; i++) {
		struct rest plain = in_child(false, REST_MS), recorded = in_child(true, REST_MS);

		percent[i] = 100 * (recorded.cpu_part - plain.cpu_part);
		mib[i] = recorded.resident_mib - plain.resident_mib;
	}
	bench_value("process at rest", "% of a core", percent, REST_ROUNDS, 0.05);
	/* The ring's first MiB, 1.3 MiB of zstd, and 2 MiB besides. */
	bench_value("resident memory of all", "MiB", mib, REST_ROUNDS, 4.3);
}

int main(int argc, char **argv)
{
	char command[64];

	if (argc != 3 || !mkdtemp(dir)) {
		fputs("usage: bench_process DIAL9 PRELOAD_LIBRARY\n", stderr);
		return 2;
	}
	starting(argv[1], argv[2]);
	puts("SAME\tnothing to compare with\t1");
	attaching();
	resting();
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) ? 2 : 0;
}
