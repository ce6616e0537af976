/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/record/scratch.h"
#include "record/process_state.h"
#include "support/d9_test.h"

#define SECOND UINT64_C(1000000000)

static struct d9__process_state state;

static struct d9__process_figures look(uint64_t second)
{
	struct d9__process_figures figures;

	d9__process_state_look(&state, second * SECOND, &figures);
	return figures;
}

static void test_descriptors_of_the_program_are_counted(void)
{
	struct d9__process_figures before, after;
	int fds[50];

	d9__process_state_begin(&state);
	before = look(1);
	for (unsigned i = 0; i < 50; i++)
		fds[i] = dup(STDIN_FILENO);
	after = look(100);
	CU_ASSERT_EQUAL(after.descriptors, before.descriptors + 50);
	for (unsigned i = 0; i < 50; i++)
		close(fds[i]);
	CU_ASSERT_EQUAL(look(200).descriptors, before.descriptors);
	d9__process_state_end(&state);
}

static void test_where_descriptors_have_to_be_counted_the_count_is_the_same(void)
{
	uint64_t told;

	d9__process_state_begin(&state);
	told = look(1).descriptors;
	state.has_fd_count = false;
	/* And the one by which they are counted. */
	CU_ASSERT(look(2).descriptors >= told && look(2).descriptors <= told + 1);
	d9__process_state_end(&state);
}

static void test_memory_is_what_is_resident(void)
{
	struct d9__process_figures before, after;
	size_t size = 32u << 20;
	volatile char *memory;

	d9__process_state_begin(&state);
	before = look(1);
	memory = malloc(size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
	for (size_t i = 0; i < size; i += 4096)
		memory[i] = 1;
	after = look(2);
	CU_ASSERT(after.resident_bytes >= before.resident_bytes + size / 2);
	free((void *)memory);
	d9__process_state_end(&state);
}

static void *wait_for_end(void *arg)
{
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

static void test_threads_are_counted_and_what_they_waited_never_shrinks(void)
{
	struct d9__process_figures before, during, after;
	pthread_barrier_t barrier;
	pthread_t thread;

	d9__process_state_begin(&state);
	before = look(1);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, wait_for_end, &barrier);
	pthread_barrier_wait(&barrier);
	during = look(2);
	CU_ASSERT(during.threads > before.threads); /* a sanitizer may begin one, too */
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	after = look(3);
	CU_ASSERT_TRUE(after.has_runqueue);
	CU_ASSERT(after.runqueue_ns >= during.runqueue_ns);
	pthread_barrier_destroy(&barrier);
	d9__process_state_end(&state);
}

static void *tell_cpus(void *arg)
{
	char (*cpus)[D9__BOUND_CPUS_MAX] = arg;
	cpu_set_t all, one;
	unsigned online = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	unsigned first = 0;
	char expected[16];

	CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(first, &all))
		first++;
	/* On as many as it may use it is bound if these are not all. */
	CU_ASSERT_EQUAL(d9__bound_thread_cpus(tid, (unsigned)CPU_COUNT(&all), *cpus, sizeof(*cpus)),
			0);
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(one), &one), 0);
	CU_ASSERT_EQUAL(d9__bound_thread_cpus(tid, online + 1, *cpus, sizeof(*cpus)), 1);
	snprintf(expected, sizeof(expected), "%u", first);
	CU_ASSERT_STRING_EQUAL(*cpus, expected);
	/* One that is gone may run nowhere. */
	CU_ASSERT_EQUAL(d9__bound_thread_cpus(0x7fffffff, online + 1, *cpus, sizeof(*cpus)), 0);
	return NULL;
}

static void test_thread_that_may_not_run_everywhere_is_bound(void)
{
	char cpus[D9__BOUND_CPUS_MAX];
	pthread_t thread;

	pthread_create(&thread, NULL, tell_cpus, &cpus);
	pthread_join(thread, NULL);
}

static void test_throttling_is_read_from_both_versions_of_cgroups(void)
{
	struct d9__process_figures figures = { 0 };

	CU_ASSERT_TRUE(d9__process_state_parse_cgroup("usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 80000\n",
						      &figures));
	CU_ASSERT_EQUAL(figures.throttled, 3);
	CU_ASSERT_EQUAL(figures.throttled_ns, 80000000);
	/* That of the group around it. */
	CU_ASSERT_TRUE(d9__process_state_parse_cgroup("nr_periods 9\nnr_throttled 2\nthrottled_time 7000\n", &figures));
	CU_ASSERT_EQUAL(figures.throttled, 5);
	CU_ASSERT_EQUAL(figures.throttled_ns, 80007000);
	CU_ASSERT_FALSE(d9__process_state_parse_cgroup("usage_usec 5\nuser_usec 4\n", &figures));
}

/* ---- cgroups that the test makes ---- */

static bool faked;

/* Of a machine that has them elsewhere: |path| itself, or where the test keeps it. */
static const char *place_of(const char *path, char *buf, size_t size)
{
	static const char root[] = "/sys/fs/cgroup";

	if (faked && !strcmp(path, "/proc/self/cgroup"))
		snprintf(buf, size, "%.2000s/membership", scratch_dir);
	else if (faked && !strncmp(path, root, strlen(root)))
		snprintf(buf, size, "%.2000s%.2000s", scratch_dir, path + strlen(root));
	else
		return path;
	return buf;
}

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	char buf[PATH_MAX];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return __real_open(place_of(path, buf, sizeof(buf)), flags, mode);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	char buf[PATH_MAX];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return __real_openat(dir, place_of(path, buf, sizeof(buf)), flags, mode);
}

static void put_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *out;

	snprintf(path, sizeof(path), "%.2000s/%s", scratch_dir, name);
	out = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	fputs(text, out);
	fclose(out);
}

/* The cgroup |name| has throttled |times| times, for |usec| in all. */
static void put_group(const char *name, unsigned times, unsigned usec)
{
	char path[PATH_MAX], text[128];

	snprintf(path, sizeof(path), "%.2000s/%s", scratch_dir, name);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/cpu.stat", name);
	snprintf(text, sizeof(text), "nr_periods 1\nnr_throttled %u\nthrottled_usec %u\n", times,
		 usec);
	put_file(path, text);
}

static void begin_faked(const char *membership)
{
	memset(&state, 0, sizeof(state));
	put_file("membership", membership);
	faked = true;
	d9__process_state_begin(&state);
}

static void end_faked(void)
{
	d9__process_state_end(&state);
	faked = false;
	scratch_remove();
}

static void check_throttled(uint64_t second, uint64_t times, uint64_t usec)
{
	struct d9__process_figures figures = look(second);

	CU_ASSERT_TRUE(figures.has_throttled);
	CU_ASSERT_EQUAL(figures.throttled, times);
	CU_ASSERT_EQUAL(figures.throttled_ns, usec * 1000);
}

static void test_throttling_counts_from_the_start(void)
{
	scratch_new();
	put_group("a", 7, 7000);
	begin_faked("0::/a\n");
	check_throttled(1, 0, 0);
	put_group("a", 9, 9500);
	CU_ASSERT_EQUAL(d9__process_state_throttled(&state), 2500 * 1000);
	check_throttled(2, 2, 2500);
	CU_ASSERT_EQUAL(d9__process_state_throttled(&state), 0);
	end_faked();
}

static void test_the_count_goes_on_in_another_cgroup(void)
{
	scratch_new();
	put_group("a", 7, 7000);
	put_group("b", 1000, 1000000);
	begin_faked("0::/a\n");
	put_group("a", 8, 8000);
	put_file("membership", "0::/b\n");
	check_throttled(1, 1, 1000);
	put_group("a", 100, 100000);
	put_group("b", 1003, 1000500);
	check_throttled(2, 4, 1500);
	/* One that is gone keeps what it was. */
	put_file("membership", "0::/c\n");
	CU_ASSERT_FALSE(look(3).has_throttled);
	put_group("c", 5, 5000);
	put_file("membership", "0::/c\n0::/\n");
	check_throttled(4, 4, 1500);
	put_group("c", 6, 5100);
	check_throttled(5, 5, 1600);
	end_faked();
}

static void test_a_limit_that_comes_later_is_seen_half_a_minute_later(void)
{
	scratch_new();
	put_group("a", 0, 0);
	put_file("a/cpu.stat", "usage_usec 5\n");
	begin_faked("0::/a\n");
	CU_ASSERT_FALSE(look(31).has_throttled);
	put_group("a", 3, 3000);
	CU_ASSERT_FALSE(look(60).has_throttled);
	check_throttled(61, 0, 0);
	put_group("a", 5, 5000);
	check_throttled(62, 2, 2000);
	end_faked();
}

static const CU_TestInfo tests[] = {
	{ "descriptors of the program are counted", test_descriptors_of_the_program_are_counted },
	{ "where descriptors have to be counted the count is the same",
	  test_where_descriptors_have_to_be_counted_the_count_is_the_same },
	{ "memory is what is resident", test_memory_is_what_is_resident },
	{ "threads are counted, and what they waited never shrinks",
	  test_threads_are_counted_and_what_they_waited_never_shrinks },
	{ "thread that may not run everywhere is bound",
	  test_thread_that_may_not_run_everywhere_is_bound },
	{ "throttling is read from both versions of cgroups",
	  test_throttling_is_read_from_both_versions_of_cgroups },
	{ "throttling counts from the start", test_throttling_counts_from_the_start },
	{ "the count goes on in another cgroup", test_the_count_goes_on_in_another_cgroup },
	{ "a limit that comes later is seen half a minute later",
	  test_a_limit_that_comes_later_is_seen_half_a_minute_later },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("process state", tests);
}
