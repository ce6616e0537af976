/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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

static const CU_TestInfo tests[] = {
	{ "descriptors of the program are counted", test_descriptors_of_the_program_are_counted },
	{ "where descriptors have to be counted the count is the same",
	  test_where_descriptors_have_to_be_counted_the_count_is_the_same },
	{ "memory is what is resident", test_memory_is_what_is_resident },
	{ "threads are counted, and what they waited never shrinks",
	  test_threads_are_counted_and_what_they_waited_never_shrinks },
	{ "throttling is read from both versions of cgroups",
	  test_throttling_is_read_from_both_versions_of_cgroups },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("process state", tests);
}
