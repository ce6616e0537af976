/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of sampling allocations: a malloc() and its free() through libdial9-memory, against the same pair of libc's,
 * in turns; and what one sample costs, of a stack of some 17 frames.
 *
 *	bench_memory [pairs | samples]
 *
 * The recorder's rate is one of a process, so it runs itself once for each.
 */
#include "config.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/dial9.h>

#include "bench/bench.h"
#include "bench/bench_recorder.h"

#define ROUNDS	  41
#define PAIRS	  200000
#define SAMPLES	  300 /* of a round: what the ring holds */
#define KEPT	  2000 /* sampled blocks that stay, so that the live set is no empty one */
#define DEPTH	  9
#define BUDGET	  1.2
#define BUDGET_NS 3000.0

struct allocator {
	void *(*malloc)(size_t size);
	void (*free)(void *block);
};

static struct allocator libc, hooked;

static void find(void)
{
	void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	*(void **)&libc.malloc = dlsym(handle, "malloc");
	*(void **)&libc.free = dlsym(handle, "free");
	*(void **)&hooked.malloc = dlsym(RTLD_DEFAULT, "malloc");
	*(void **)&hooked.free = dlsym(RTLD_DEFAULT, "free");
	if (!handle || hooked.malloc == libc.malloc) {
		fprintf(stderr, "malloc() is libc's own\n");
		exit(1);
	}
}

static void *volatile block;

/* ns of a pair. */
static double pairs(const struct allocator *allocator, unsigned n)
{
	double start = bench_cpu_ns();

	for (unsigned i = 0; i < n; i++) {
		block = allocator->malloc(64);
		allocator->free(block);
	}
	return (bench_cpu_ns() - start) / n;
}

__attribute__((noinline)) static double deep(int depth, const struct allocator *allocator)
{
	volatile int here = depth;

	if (depth > 0)
		return deep(depth - 1, allocator) + 0 * here;
	return pairs(allocator, SAMPLES);
}

static void measure_pairs(void)
{
	double with[ROUNDS], without[ROUNDS], again[ROUNDS];

	for (int i = 0; i < KEPT; i++)
		block = malloc(1 << 20);
	for (int i = 0; i < ROUNDS; i++) {
		without[i] = pairs(&libc, PAIRS);
		with[i] = pairs(&hooked, PAIRS);
		again[i] = pairs(&libc, PAIRS);
	}
	bench_same("malloc() and free() of libc", again, without, ROUNDS);
	bench_ratio("malloc() and free(), allocations sampled, live set on", "ns", with, "of libc alone", without, ROUNDS,
		    BUDGET);
}

static void measure_samples(void)
{
	double with[ROUNDS], added[ROUNDS], without;

	for (int i = 0; i < ROUNDS; i++) {
		without = deep(DEPTH, &libc);
		with[i] = deep(DEPTH, &hooked);
		added[i] = with[i] - without;
		usleep(20000); /* the ring is emptied */
	}
	bench_value("one sample of an allocation", "ns", added, ROUNDS, BUDGET_NS);
}

static int part(const char *name)
{
	struct d9_options *options;
	bool samples = !strcmp(name, "samples");

	find();
	if (d9_options_new(&options) || d9_options_set_memory(options, samples ? 1 : 512 << 10) ||
	    d9_options_set_memory_live_set(options, !samples) || bench_start_recorder_with(options))
		return 1;
	if (samples)
		measure_samples();
	else
		measure_pairs();
	return 0;
}

static int run(const char *self, const char *name)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl(self, self, name, (char *)NULL);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return part(argv[1]);
	return run("/proc/self/exe", "pairs") | run("/proc/self/exe", "samples");
}
