/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback that takes its time in one of six ways, and says itself where it went:
 *
 *	where_time_goes fsync|lock|compute|neighbour|faults FILE CALLS
 *
 * FILE is written by fsync.  `neighbour` computes on one CPU with three others; `compute` does so
 * in a limited cgroup, too, if the caller made one.  Prints, in ns and summed over all calls:
 * elapsed, of that on the CPU, and ready without one, by the kernel's own figures.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define NEIGHBOURS 3
#define MEMORY	   (64 << 20)

struct figures {
	uint64_t elapsed_ns, cpu_ns, ready_ns;
};

static struct event_base *base;
static struct figures sum;
static unsigned calls, most_calls;
static int file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static pid_t neighbours[NEIGHBOURS];

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t run_delay(void)
{
	static const char path[] = "/proc/thread-self/schedstat";
	uint64_t ran, waited = 0;
	FILE *stat = fopen(path, "re");

	if (!stat || fscanf(stat, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		waited = 0;
	if (stat)
		fclose(stat);
	return waited;
}

static struct figures read_figures(void)
{
	/* The CPU clock brings the other figure up to date. */
	uint64_t cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);

	return (struct figures) { now(CLOCK_MONOTONIC), cpu_ns, run_delay() };
}

static void compute(uint64_t ns)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void write_and_sync(void)
{
	static char block[1 << 20];

	memset(block, (int)calls, sizeof(block));
	for (int i = 0; i < 4; i++)
		if (pwrite(file, block, sizeof(block), i * (off_t)sizeof(block)) < 0)
			abort();
	fsync(file);
}

static void *hold(void *arg)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&held);
	usleep(20000);
	pthread_mutex_unlock(&lock);
	return arg;
}

static void wait_for_lock(void)
{
	pthread_t holder;

	if (pthread_create(&holder, NULL, hold, NULL))
		abort();
	pthread_barrier_wait(&held);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_join(holder, NULL);
}

static void touch_memory(void)
{
	char *memory =
		mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	for (size_t i = 0; i < MEMORY; i += 4096)
		memory[i] = 1;
	munmap(memory, MEMORY);
}

static void account(const struct figures *before)
{
	struct figures after = read_figures();

	sum.elapsed_ns += after.elapsed_ns - before->elapsed_ns;
	sum.cpu_ns += after.cpu_ns - before->cpu_ns;
	sum.ready_ns += after.ready_ns - before->ready_ns;
	if (++calls == most_calls)
		event_base_loopbreak(base);
}

static void on_fsync(evutil_socket_t fd, short what, void *arg)
{
	struct figures before = read_figures();

	(void)fd, (void)what, (void)arg;
	write_and_sync();
	account(&before);
}

static void on_lock(evutil_socket_t fd, short what, void *arg)
{
	struct figures before = read_figures();

	(void)fd, (void)what, (void)arg;
	wait_for_lock();
	account(&before);
}

static void on_compute(evutil_socket_t fd, short what, void *arg)
{
	struct figures before = read_figures();

	(void)fd, (void)what, (void)arg;
	compute(30000000);
	account(&before);
}

static void on_faults(evutil_socket_t fd, short what, void *arg)
{
	struct figures before = read_figures();

	(void)fd, (void)what, (void)arg;
	touch_memory();
	account(&before);
}

/* Three processes that compute on the CPU of this one. */
static void invite_neighbours(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		abort();
	for (int i = 0; i < NEIGHBOURS; i++) {
		neighbours[i] = fork();
		if (neighbours[i] == 0) {
			alarm(60);
			for (;;)
				;
		}
	}
}

static event_callback_fn callback_of(const char *way)
{
	if (!strcmp(way, "fsync"))
		return on_fsync;
	if (!strcmp(way, "lock"))
		return on_lock;
	return !strcmp(way, "faults") ? on_faults : on_compute;
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 10000 };
	struct event *timer;

	if (argc != 4)
		return 2;
	most_calls = (unsigned)atoi(argv[3]);
	file = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || pthread_barrier_init(&held, NULL, 2))
		return 2;
	if (!strcmp(argv[1], "neighbour"))
		invite_neighbours();
	base = event_base_new();
	d9_event_base_attach(base);
	timer = event_new(base, -1, EV_PERSIST, callback_of(argv[1]), NULL);
	event_add(timer, &period);
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	for (int i = 0; i < NEIGHBOURS && neighbours[i]; i++) {
		kill(neighbours[i], SIGKILL);
		waitpid(neighbours[i], NULL, 0);
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sum.elapsed_ns, sum.cpu_ns, sum.ready_ns);
	return 0;
}
