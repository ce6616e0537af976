/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that set themselves small limits, or run into them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "odd.h"

static void limit(int resource, rlim_t to)
{
	struct rlimit set = { to, to };

	if (setrlimit(resource, &set))
		abort();
}

/* ---- descriptors ---- */

static int open_all(void)
{
	int n = 0;

	while (open("/dev/null", O_RDONLY) >= 0)
		n++;
	return n;
}

static void few_descriptors(void)
{
	limit(RLIMIT_NOFILE, 24);
	run_loop(10, NULL);
	printf("free descriptors: %d\n", open_all());
	for (int fd = 3; fd < 24; fd++)
		close(fd);
	run_loop(20, NULL);
}

static void few_descriptors_late(void)
{
	run_loop(10, NULL);
	limit(RLIMIT_NOFILE, 24);
	printf("free descriptors: %d\n", open_all());
}

static void next_descriptor(void)
{
	run_loop(10, NULL);
	printf("next descriptor: %d\n", open("/dev/null", O_RDONLY));
}

/* ---- memory ---- */

static void little_address_space(void)
{
	limit(RLIMIT_AS, 300 << 20);
	run_loop(10, NULL);
	tell("100 MiB", malloc(100 << 20));
	tell("400 MiB", malloc(400 << 20));
	run_loop(20, NULL);
}

static void locks_all(rlim_t bytes)
{
	limit(RLIMIT_MEMLOCK, bytes);
	/* Root may lock more. */
	if (!geteuid() && (setgid(1002) || setuid(1002)))
		abort();
	run_loop(5, NULL);
	tell_result("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
	tell("1 MiB", mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0) != MAP_FAILED);
	run_loop(20, NULL);
}

static void locks_all_within_8m(void)
{
	locks_all(8 << 20);
}

static void locks_all_within_nothing(void)
{
	locks_all(0);
}

static void small_stack(void)
{
	limit(RLIMIT_STACK, 256 << 10);
	run_loop(20, NULL);
	printf("system: %d\n", system("exit 0"));
}

/* ---- files, processes, time ---- */

static void write_too_much(void)
{
	char name[] = "/tmp/odd-XXXXXX", page[4096] = { 0 };
	int fd = mkstemp(name), n = 0;

	unlink(name);
	while (write(fd, page, sizeof(page)) == sizeof(page))
		n++;
	printf("%d pages, then %s\n", n, strerror(errno));
	close(fd);
}

static void small_files(void)
{
	signal(SIGXFSZ, SIG_IGN);
	limit(RLIMIT_FSIZE, 64 << 10);
	run_loop(20, NULL);
	write_too_much();
	run_loop(20, NULL);
}

static void small_files_that_kill(void)
{
	run_loop(20, NULL);
	limit(RLIMIT_FSIZE, 64 << 10);
	fflush(stdout);
	run_loop(20, NULL);
	write_too_much();
}

static void *nothing(void *unused)
{
	return unused;
}

/* Root has no limit of processes. */
static void few_processes(void)
{
	pthread_t thread;
	int err;

	limit(RLIMIT_NPROC, 1);
	if (!geteuid() && (setgid(1002) || setuid(1002)))
		abort();
	run_loop(20, NULL);
	err = pthread_create(&thread, NULL, nothing, NULL);
	printf("a thread: %s\n", err ? strerror(err) : "0");
	tell_result("a fork", fork());
	run_loop(20, NULL);
}

static void no_realtime(void)
{
	limit(RLIMIT_RTPRIO, 0);
	limit(RLIMIT_SIGPENDING, 0);
	run_loop(20, NULL);
}

static void short_of_time(void)
{
	limit(RLIMIT_CPU, 1);
	burn(10000);
}

const struct shape limit_shapes[] = {
	{ "few_descriptors", few_descriptors },
	{ "few_descriptors_late", few_descriptors_late },
	{ "next_descriptor", next_descriptor },
	{ "little_address_space", little_address_space },
	{ "locks_all_within_8m", locks_all_within_8m },
	{ "locks_all_within_nothing", locks_all_within_nothing },
	{ "small_stack", small_stack },
	{ "small_files", small_files },
	{ "small_files_that_kill", small_files_that_kill },
	{ "few_processes", few_processes },
	{ "no_realtime", no_realtime },
	{ "short_of_time", short_of_time },
	{ NULL, NULL },
};
