/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/stuck.h"
#include "support/d9_test.h"

/* What is said of a thread in system call |number|; |rest| is what the kernel writes behind the number. */
static const char *parsed(const char *rest, long number)
{
	static struct d9__stuck stuck;
	char line[128];

	snprintf(line, sizeof(line), "%ld%s", number, rest);
	CU_ASSERT_TRUE(d9__stuck_parse(line, &stuck));
	CU_ASSERT_FALSE(stuck.running);
	return stuck.syscall;
}

static void test_system_calls_are_told_by_name_with_their_descriptor(void)
{
	CU_ASSERT_STRING_EQUAL(parsed(" 0x7 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f00", SYS_fdatasync), "fdatasync(7)");
	CU_ASSERT_STRING_EQUAL(parsed(" 0x5 0x7fff 0x400 0x0 0x0 0x0 0x7ffe 0x7f00", SYS_read), "read(5)");
	CU_ASSERT_STRING_EQUAL(parsed(" 0x7fff 0x1 0x0 0x0 0x0 0x0 0x7ffe 0x7f00", SYS_ppoll), "poll()");
	CU_ASSERT_STRING_EQUAL(parsed(" 0x0 0x0 0x7fff 0x0 0x0 0x0 0x7ffe 0x7f00", SYS_clock_nanosleep),
			       "nanosleep()");
}

static void test_a_wait_for_a_lock_is_told_from_other_waits_in_futex(void)
{
	CU_ASSERT_STRING_EQUAL(parsed(" 0x7fff 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f00", SYS_futex), "futex: a lock");
	CU_ASSERT_STRING_EQUAL(parsed(" 0x7fff 0x86 0x0 0x0 0x0 0x0 0x7ffe 0x7f00", SYS_futex), "futex: a lock");
	CU_ASSERT_STRING_EQUAL(parsed(" 0x7fff 0x189 0x0 0x0 0x0 0x0 0x7ffe 0x7f00", SYS_futex),
			       "futex: a condition, a semaphore or a thread");
}

static void test_unknown_calls_are_told_by_number_and_no_call_by_nothing(void)
{
	CU_ASSERT_STRING_EQUAL(parsed(" 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f00", 99999), "syscall 99999");
	CU_ASSERT_STRING_EQUAL(parsed(" 0x7ffe 0x7f00", -1), "");
}

static void test_a_thread_on_the_cpu_is_running(void)
{
	struct d9__stuck stuck;

	CU_ASSERT_TRUE(d9__stuck_parse("running\n", &stuck));
	CU_ASSERT_TRUE(stuck.running);
	CU_ASSERT_STRING_EQUAL(stuck.syscall, "");
	CU_ASSERT_FALSE(d9__stuck_parse("", &stuck));
	CU_ASSERT_FALSE(d9__stuck_parse("what", &stuck));
	CU_ASSERT_FALSE(d9__stuck_parse("1", &stuck));
	CU_ASSERT_FALSE(d9__stuck_parse("1 zz", &stuck));
}

struct sleeper {
	pthread_mutex_t lock;
	int pipe[2];
	bool reads;
	_Atomic(uint32_t) tid;
};

static void *fall_asleep(void *arg)
{
	struct sleeper *sleeper = arg;
	char byte;

	atomic_store(&sleeper->tid, (uint32_t)syscall(SYS_gettid));
	if (sleeper->reads)
		return read(sleeper->pipe[0], &byte, 1) == 1 ? NULL : arg;
	pthread_mutex_lock(&sleeper->lock);
	pthread_mutex_unlock(&sleeper->lock);
	return NULL;
}

/* Until the thread is in |wanted|: it gets there sooner or later. */
static int find_in(uint32_t tid, const char *wanted, struct d9__stuck *stuck)
{
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	do {
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		err = d9__stuck_look(fd, tid, stuck);
	} while (!err && strcmp(stuck->syscall, wanted));
	close(fd);
	return err;
}

static void test_a_thread_is_found_where_it_sleeps(void)
{
	struct sleeper sleeper = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct d9__stuck stuck;
	pthread_t thread;
	char wanted[32];

	CU_ASSERT_EQUAL_FATAL(pipe(sleeper.pipe), 0);
	for (int i = 0; i < 2; i++) {
		sleeper.reads = i;
		atomic_store(&sleeper.tid, 0);
		pthread_mutex_lock(&sleeper.lock);
		pthread_create(&thread, NULL, fall_asleep, &sleeper);
		while (!atomic_load(&sleeper.tid))
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		snprintf(wanted, sizeof(wanted), "read(%d)", sleeper.pipe[0]);
		CU_ASSERT_EQUAL(find_in(sleeper.tid, i ? wanted : "futex: a lock", &stuck), 0);
		CU_ASSERT_FALSE(stuck.running);
		if (i)
			CU_ASSERT_EQUAL(write(sleeper.pipe[1], "x", 1), 1);
		pthread_mutex_unlock(&sleeper.lock);
		pthread_join(thread, NULL);
	}
	close(sleeper.pipe[0]);
	close(sleeper.pipe[1]);
}

static void test_a_thread_that_is_gone_is_an_error(void)
{
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct d9__stuck stuck;

	CU_ASSERT_EQUAL(d9__stuck_look(fd, 0x7fffffff, &stuck), -ENOENT);
	close(fd);
}

static const CU_TestInfo tests[] = {
	{ "system calls are told by name, with their descriptor",
	  test_system_calls_are_told_by_name_with_their_descriptor },
	{ "a wait for a lock is told from other waits in futex",
	  test_a_wait_for_a_lock_is_told_from_other_waits_in_futex },
	{ "unknown calls are told by number, and no call by nothing",
	  test_unknown_calls_are_told_by_number_and_no_call_by_nothing },
	{ "a thread on the CPU is running", test_a_thread_on_the_cpu_is_running },
	{ "a thread is found where it sleeps", test_a_thread_is_found_where_it_sleeps },
	{ "a thread that is gone is an error", test_a_thread_that_is_gone_is_an_error },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("stuck", tests);
}
