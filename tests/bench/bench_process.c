/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost for a process of being recorded: to start under `dial9 record` or with the preload
 * library, to attach its first loop, to rest, and in memory.  Each figure is from processes of its
 * own, which take turns with ones that are not recorded.
 *
 *	bench_process DIAL9 PRELOAD_LIBRARY
 */
#include "config.h"

#include <errno.h>
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

#define ROUNDS	    41
#define REST_ROUNDS 5
#define SETTLE_MS   4000 /* until its first events are written it is not at rest */
#define REST_MS	    4000
#define START_MS    300 /* after it all threads have started */
#define LIFE_S	    (2 + (SETTLE_MS + 2 * REST_MS) / 1000)

static char dir[] = "/tmp/bench_process.XXXXXX";

/* ---- starting ---- */

static double ms_of(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

/*
 * ms of CPU from the start of a program to its end, its children's included.  One thing happens
 * after the other, so that on a machine with nothing else to do this is what a person waits.
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
	bench_value("starting under dial9 record", "ms of CPU", under, ROUNDS, 3);
	bench_value("loading the preload library", "ms of CPU", loaded, ROUNDS, 0);
}

/* ---- attaching and resting ---- */

struct rest {
	double attach_ms, attach_cpu_ms, another_ms, resident_mib, all_cpu_ms;
};

static struct event_base *new_base(void)
{
	struct event_base *base = event_base_new();

	if (!base)
		_exit(2);
	return base;
}

static void take_byte(evutil_socket_t fd, short what, void *arg)
{
	char byte;

	(void)what, (void)arg;
	if (read(fd, &byte, 1) < 0)
		_exit(2);
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

/* A loop that waits for bytes on |fd| and ends after |seconds|, so that it is woken for nothing
 * else. */
static void serve(struct rest *out, bool recorded, int fd, unsigned seconds)
{
	struct event_base *base = new_base(), *other = new_base();
	double begin, begin_cpu;

	event_add(event_new(base, fd, EV_READ | EV_PERSIST, take_byte, NULL), NULL);
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
	if (seconds) {
		event_base_loopexit(base, &(const struct timeval) { seconds, 0 });
		event_base_dispatch(base);
	}
	out->resident_mib = resident_mib();
}

struct server {
	pid_t pid;
	int fd; /* a byte that is written to it wakes it */
	struct rest *shared;
};

static struct server start_server(bool recorded, unsigned seconds)
{
	struct server server;
	int ends[2];

	server.shared = mmap(NULL, sizeof(*server.shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (server.shared == MAP_FAILED || pipe(ends))
		exit(2);
	fflush(stdout);
	server.pid = fork();
	if (server.pid == 0) {
		serve(server.shared, recorded, ends[0], seconds);
		_exit(0);
	}
	if (server.pid < 0)
		exit(2);
	close(ends[0]);
	server.fd = ends[1];
	return server;
}

static struct rest end_of(struct server *server)
{
	struct rest result;
	int status;

	if (waitpid(server->pid, &status, 0) != server->pid || status)
		exit(2);
	result = *server->shared;
	munmap(server->shared, sizeof(*server->shared));
	close(server->fd);
	return result;
}

/* CPU of all threads of a process from its loop's start on, without a profile. */
static double started_ms(bool recorded)
{
	struct rest *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double ms;
	pid_t pid;

	fflush(stdout);
	if (shared == MAP_FAILED || (pid = fork()) < 0)
		exit(2);
	if (!pid) {
		struct event_base *base = new_base();
		double begin = bench_clock(CLOCK_PROCESS_CPUTIME_ID);

		setenv("DIAL9_CPU_PROFILE_ENABLED", "false", 1);
		if (recorded) {
			start_recorder();
			if (d9_event_base_attach(base))
				_exit(2);
		}
		event_base_loopexit(base, &(const struct timeval) { 0, 1000 * START_MS });
		event_base_dispatch(base);
		shared->all_cpu_ms = (bench_clock(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e6;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	ms = shared->all_cpu_ms;
	munmap(shared, sizeof(*shared));
	return ms;
}

static void starting_all_threads(void)
{
	double more[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++)
		more[i] = started_ms(true) - started_ms(false);
	bench_value("a loop that starts, without a profile, all threads", "ms of CPU", more, ROUNDS,
		    5);
}

static void attaching(void)
{
	double first[ROUNDS], cpu[ROUNDS], another[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct server server = start_server(true, 0);
		struct rest result = end_of(&server);

		first[i] = result.attach_ms;
		cpu[i] = result.attach_cpu_ms;
		another[i] = result.another_ms;
	}
	bench_value("attaching the first loop, which starts the recorder", "ms", first, ROUNDS, 1);
	bench_value("the same, CPU of the thread", "ms", cpu, ROUNDS, 1);
	bench_value("attaching another loop", "ms", another, ROUNDS, 1);
}

/* ns of CPU that |server| takes in the next |ms|. */
static double cpu_in(const struct server *server, unsigned ms)
{
	struct timespec left = { ms / 1000, (long)(ms % 1000) * 1000000 };
	clockid_t clock;
	double before;

	if (clock_getcpuclockid(server->pid, &clock))
		exit(2);
	before = bench_clock(clock);
	while (nanosleep(&left, &left) && errno == EINTR)
		;
	return bench_clock(clock) - before;
}

static void resting(void)
{
	double percent[REST_ROUNDS], wake_ms[REST_ROUNDS], mib[REST_ROUNDS];

	for (unsigned i = 0; i < REST_ROUNDS; i++) {
		struct server plain = start_server(false, LIFE_S),
			      recorded = start_server(true, LIFE_S);
		double rest, woken;

		cpu_in(&recorded, SETTLE_MS);
		/* One that is not recorded takes none, as long as it is not woken. */
		rest = cpu_in(&recorded, REST_MS);
		if (write(recorded.fd, "", 1) != 1)
			exit(2);
		woken = cpu_in(&recorded, REST_MS);
		percent[i] = 100 * rest / (REST_MS * 1e6);
		wake_ms[i] = (woken - rest) / 1e6;
		mib[i] = end_of(&recorded).resident_mib - end_of(&plain).resident_mib;
	}
	bench_value("process at rest", "% of a core", percent, REST_ROUNDS, 0.05);
	bench_value("one event after rest, and rest again", "ms of CPU", wake_ms, REST_ROUNDS, 0);
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
	starting_all_threads();
	resting();
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) ? 2 : 0;
}
