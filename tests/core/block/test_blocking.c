/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of calls that block: what they record, and that their callers cannot tell them from
 * the plain calls. */
#include "config.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "wrapped.h"

#define FD 42

/* ---- a call that takes as long as the test says ---- */

static uint64_t took_ns;

static int slow_fsync(int fd)
{
	loop_ns += took_ns;
	errno = ENOSPC;
	return fd == FD ? -1 : 0;
}

static uint64_t record_fsync(uint64_t ns)
{
	int (*call)(int) = wrap("fsync", (void *)slow_fsync);

	took_ns = ns;
	errno = 0;
	CU_ASSERT_EQUAL(call(FD), -1);
	CU_ASSERT_EQUAL(errno, ENOSPC);
	take_records();
	return n_calls;
}

static void test_a_long_call_in_a_callback_is_recorded_with_descriptor_and_stack(void)
{
	uint64_t begin_ns;

	begin_callback();
	begin_ns = loop_ns;
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 1);
	CU_ASSERT_EQUAL(n_samples, 1);
	CU_ASSERT_STRING_EQUAL(call_at(0)->function, "fsync");
	CU_ASSERT_EQUAL(call_at(0)->fd, FD);
	CU_ASSERT_EQUAL(call_at(0)->duration_ns, 25 * MS);
	CU_ASSERT_EQUAL(call_at(0)->task, poll_.task_id);
	CU_ASSERT_EQUAL(call_at(0)->holder_tid, 0);
	CU_ASSERT_EQUAL(calls[0].ns, begin_ns);
	CU_ASSERT_EQUAL(samples[0].ns, begin_ns);
	CU_ASSERT_EQUAL(sample_at(0)->source, D9__SAMPLE_OFF_CPU);
	CU_ASSERT(sample_at(0)->n >= 2);
	CU_ASSERT_EQUAL(sample_at(0)->pcs[0], (uintptr_t)slow_fsync);
	CU_ASSERT(sample_at(0)->pcs[1] > (uintptr_t)record_fsync &&
		  sample_at(0)->pcs[1] < (uintptr_t)record_fsync + 4096);
	end_callback();
}

/* ---- stdio ---- */

static char *slow_fgets(char *line, int size, FILE *stream)
{
	(void)size, (void)stream;
	loop_ns += 25 * MS;
	return line;
}

static int slow_fflush(FILE *stream)
{
	loop_ns += 25 * MS;
	return stream ? 3 : 4;
}

static void test_stdio_that_waits_is_told_and_a_child_s_stream_by_the_child(void)
{
	FILE *(*open_child)(const char *, const char *) = wrapped("popen");
	int (*close_child)(FILE *) = wrapped("pclose");
	char *(*get)(char *, int, FILE *) = wrap("fgets", (void *)slow_fgets);
	int (*flush)(FILE *) = wrap("fflush", (void *)slow_fflush);
	FILE *child = open_child("exit 3", "r");
	char line[8];

	CU_ASSERT_PTR_NOT_NULL_FATAL(child);
	begin_callback();
	CU_ASSERT_PTR_EQUAL(get(line, 8, stdin), line);
	CU_ASSERT_PTR_EQUAL(get(line, 8, child), line);
	CU_ASSERT_EQUAL(flush(NULL), 4);
	CU_ASSERT_EQUAL(WEXITSTATUS(close_child(child)), 3);
	CU_ASSERT_PTR_EQUAL(get(line, 8, child), line); /* the address may be another one's */
	take_records();
	end_callback();
	CU_ASSERT_EQUAL_FATAL(n_calls, 4);
	CU_ASSERT_STRING_EQUAL(call_at(0)->function, "fgets");
	CU_ASSERT_STRING_EQUAL(call_at(1)->function, "popen stream");
	CU_ASSERT_STRING_EQUAL(call_at(2)->function, "fflush");
	CU_ASSERT_STRING_EQUAL(call_at(3)->function, "fgets");
	CU_ASSERT_EQUAL(call_at(0)->fd, -1);
}

static void test_short_calls_and_those_of_the_loop_itself_are_not_recorded(void)
{
	struct d9_loop_run outer;

	begin_callback();
	CU_ASSERT_EQUAL(record_fsync(MS - 1), 0);
	CU_ASSERT_EQUAL(record_fsync(MS), 1);
	end_callback();
	d9_loop_enter(loop, &outer);
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 0);
	d9_loop_park(loop, true);
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 0);
	d9_loop_unpark(loop);
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 0);
	d9_loop_leave(&outer);
}

static void *call_on_a_thread(void *arg)
{
	int (*call)(int) = wrap("fsync", (void *)slow_fsync);

	(void)arg;
	call(FD);
	return NULL;
}

static void test_a_call_between_rounds_is_recorded_with_no_task(void)
{
	uint64_t begin_ns;
	pthread_t thread;

	begin_callback();
	end_callback();
	begin_ns = loop_ns;
	CU_ASSERT_EQUAL_FATAL(record_fsync(2 * MS), 1);
	CU_ASSERT_EQUAL(call_at(0)->task, 0);
	CU_ASSERT_EQUAL(call_at(0)->duration_ns, 2 * MS);
	CU_ASSERT_EQUAL(calls[0].ns, begin_ns);
	CU_ASSERT_EQUAL(n_samples, 1);
	/* A thread that has run no loop keeps none waiting. */
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, call_on_a_thread, NULL), 0);
	pthread_join(thread, NULL);
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
}

static void test_the_wait_of_a_loop_inside_a_callback_is_no_call_that_blocks(void)
{
	struct d9_loop_run inner;

	begin_callback();
	d9_loop_enter(loop, &inner);
	d9_loop_park(loop, true);
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 0);
	d9_loop_unpark(loop);
	d9_loop_leave(&inner);
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 1);
	end_callback();
}

static void test_nothing_is_recorded_that_was_not_asked_for(void)
{
	begin_callback();
	atomic_store(&d9__sampling.blocking, false);
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 0);
	atomic_store(&d9__sampling.blocking, true);
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 1);
	end_callback();
}

/* ---- results ---- */

#define BAD (-5)

/* Make a call that fails by the library's function and by ours, and compare result and errno. */
#define SAME(name, type, ...)                                                                      \
	do {                                                                                       \
		__typeof__(&(name)) plain, ours;                                                   \
		type result;                                                                       \
		int err;                                                                           \
                                                                                                   \
		*(any_function *)&plain = dlsym(RTLD_DEFAULT, #name);                              \
		*(any_function *)&ours = wrapped(#name);                                           \
		errno = 0;                                                                         \
		result = plain(__VA_ARGS__);                                                       \
		err = errno;                                                                       \
		errno = 0;                                                                         \
		CU_ASSERT_EQUAL(ours(__VA_ARGS__), result);                                        \
		CU_ASSERT_EQUAL(errno, err);                                                       \
	} while (0)

static void compare_all(void)
{
	char byte = 0;
	struct pollfd no_fd = { .fd = BAD };
	struct timespec wrong = { 0, -1 };
	struct addrinfo *addresses = NULL;
	struct iovec part = { &byte, 1 };
	struct epoll_event event;
	static const char missing[] = "/nonexistent/of/dial9";

	SAME(open, int, missing, O_RDWR | O_CREAT, 0600);
	SAME(openat, int, BAD, "x", O_RDONLY);
	SAME(creat, int, missing, 0600);
	SAME(read, ssize_t, BAD, &byte, (size_t)1);
	SAME(pread, ssize_t, BAD, &byte, (size_t)1, (off_t)0);
	SAME(readv, ssize_t, BAD, &part, 1);
	SAME(write, ssize_t, BAD, &byte, (size_t)1);
	SAME(pwrite, ssize_t, BAD, &byte, (size_t)1, (off_t)0);
	SAME(writev, ssize_t, BAD, &part, 1);
	SAME(fsync, int, BAD);
	SAME(fdatasync, int, BAD);
	SAME(ftruncate, int, BAD, (off_t)0);
	SAME(posix_fallocate, int, BAD, (off_t)0, (off_t)1);
	SAME(rename, int, missing, missing);
	SAME(unlink, int, missing);
	SAME(connect, int, BAD, NULL, (socklen_t)0);
	SAME(accept4, int, BAD, NULL, NULL, 0);
	SAME(recvfrom, ssize_t, BAD, &byte, (size_t)1, 0, NULL, NULL);
	SAME(sendto, ssize_t, BAD, &byte, (size_t)1, 0, NULL, (socklen_t)0);
	SAME(poll, int, &no_fd, (nfds_t)1, 0);
	SAME(select, int, -1, NULL, NULL, NULL, NULL);
	SAME(epoll_wait, int, BAD, &event, 1, 0);
	SAME(nanosleep, int, &wrong, NULL);
	SAME(clock_nanosleep, int, CLOCK_MONOTONIC, 0, &wrong, NULL);
	SAME(waitpid, pid_t, -1, NULL, 0);
	SAME(flock, int, BAD, 2);
	SAME(lockf, int, BAD, F_LOCK, (off_t)0);
	SAME(fcntl, int, BAD, F_SETLKW, NULL);
	SAME(fcntl, int, 0, F_GETFD);
	SAME(getaddrinfo, int, "256.0.0.1", "no-service", NULL, &addresses);
	SAME(sem_timedwait, int, &(sem_t) { { 0 } }, &wrong);
	SAME(system, int, NULL);
}

static void test_results_and_errors_are_those_of_the_plain_calls(void)
{
	compare_all();
	begin_callback();
	compare_all();
	end_callback();
	take_records();
}

static void test_a_file_is_created_with_the_mode_that_was_asked_for(void)
{
	int (*ours)(const char *, int, ...) = (int (*)(const char *, int, ...))wrapped("open");
	char path[] = "/tmp/dial9-test-XXXXXX";
	struct stat stat;
	int fd = mkstemp(path);

	close(fd);
	unlink(path);
	begin_callback();
	fd = ours(path, O_RDWR | O_CREAT | O_EXCL, 0640);
	end_callback();
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(fstat(fd, &stat), 0);
	CU_ASSERT_EQUAL(stat.st_mode & 0770, 0640);
	close(fd);
	unlink(path);
}

/* ---- interrupted, cancelled, left ---- */

static pthread_t looping;
static sem_t in_call;
static _Atomic(bool) over;

static void do_nothing(int signal)
{
	(void)signal;
}

/* The plain call, which tells that it is about to begin. */
static int announced_nanosleep(const struct timespec *length, struct timespec *left)
{
	sem_post(&in_call);
	return nanosleep(length, left);
}

static void *sleep_in_callback(void *arg)
{
	int (*ours)(const struct timespec *, struct timespec *) =
		wrap("nanosleep", (void *)announced_nanosleep);
	struct timespec length = { 600, 0 }, left = { 0, 0 };
	int *err = arg;

	begin_callback();
	if (ours(&length, &left) == -1 && left.tv_sec > 0)
		*err = errno;
	end_callback();
	atomic_store(&over, true);
	return NULL;
}

static void test_a_signal_interrupts_a_call_as_without_us(void)
{
	struct sigaction action = { .sa_handler = do_nothing };
	const struct timespec pause = { 0, 1000000 };
	int err = 0;

	sigaction(SIGUSR1, &action, NULL);
	sem_init(&in_call, 0, 0);
	pthread_create(&looping, NULL, sleep_in_callback, &err);
	sem_wait(&in_call);
	while (!atomic_load(&over)) {
		pthread_kill(looping, SIGUSR1);
		nanosleep(&pause, NULL);
	}
	pthread_join(looping, NULL);
	CU_ASSERT_EQUAL(err, EINTR);
	take_records();
}

static bool cleaned_up;

static void clean_up(void *arg)
{
	(void)arg;
	cleaned_up = true;
}

static ssize_t announced_read(int fd, void *buf, size_t n)
{
	sem_post(&in_call);
	return read(fd, buf, n);
}

static void *read_in_callback(void *fd)
{
	ssize_t (*ours)(int, void *, size_t) = wrap("read", (void *)announced_read);
	char byte;

	begin_callback();
	pthread_cleanup_push(clean_up, NULL);
	ours(*(int *)fd, &byte, 1);
	pthread_cleanup_pop(0);
	end_callback();
	return NULL;
}

static void test_a_thread_is_cancelled_in_a_call_as_without_us(void)
{
	void *result = NULL;
	int fds[2];

	/* Forced unwinding leaves frames poisoned. */
	if (D9__SANITIZED == 1)
		return;
	CU_ASSERT_FATAL(pipe(fds) == 0);
	pthread_create(&looping, NULL, read_in_callback, &fds[0]);
	sem_wait(&in_call);
	pthread_cancel(looping);
	pthread_join(looping, &result);
	CU_ASSERT_PTR_EQUAL(result, PTHREAD_CANCELED);
	CU_ASSERT(cleaned_up);
	close(fds[0]);
	close(fds[1]);
	take_records();
}

/* The plain call, which tells that it is about to begin. */
static int announced_pause(void)
{
	sem_post(&in_call);
	return pause();
}

static void *pause_in_callback(void *unused)
{
	int (*ours)(void) = wrap("pause", (void *)announced_pause);

	begin_callback();
	pthread_cleanup_push(clean_up, NULL);
	ours();
	pthread_cleanup_pop(0);
	end_callback();
	return unused;
}

static void test_a_thread_is_cancelled_in_pause_as_without_us(void)
{
	void *result = NULL;

	if (D9__SANITIZED == 1)
		return;
	cleaned_up = false;
	pthread_create(&looping, NULL, pause_in_callback, NULL);
	sem_wait(&in_call);
	pthread_cancel(looping);
	pthread_join(looping, &result);
	CU_ASSERT_PTR_EQUAL(result, PTHREAD_CANCELED);
	CU_ASSERT(cleaned_up);
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
}

static jmp_buf escape;

static int jumping_fsync(int fd)
{
	(void)fd;
	longjmp(escape, 1);
}

static void test_a_call_that_is_left_by_a_jump_leaves_nothing_behind(void)
{
	begin_callback();
	if (!setjmp(escape)) {
		int (*call)(int) = wrap("fsync", (void *)jumping_fsync);

		call(FD);
	}
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
	CU_ASSERT_EQUAL(record_fsync(3 * MS), 1);
	CU_ASSERT_EQUAL(call_at(0)->duration_ns, 3 * MS);
	end_callback();
}

static void test_a_forked_child_records_nothing_in_the_name_of_its_parent(void)
{
	int status = 0;
	pid_t pid;

	begin_callback();
	pid = fork();
	if (!pid) {
		int (*call)(int) = wrap("fsync", (void *)slow_fsync);

		took_ns = 25 * MS;
		_exit(call(FD) == -1 && errno == ENOSPC ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
	end_callback();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a long call in a callback is recorded, with descriptor and stack",
		  test_a_long_call_in_a_callback_is_recorded_with_descriptor_and_stack },
		{ "stdio that waits is told, and a child's stream by the child",
	  test_stdio_that_waits_is_told_and_a_child_s_stream_by_the_child },
	{ "a call between rounds is recorded with no task",
	  test_a_call_between_rounds_is_recorded_with_no_task },
	{ "short calls, and those of the loop itself, are not recorded",
		  test_short_calls_and_those_of_the_loop_itself_are_not_recorded },
		{ "the wait of a loop inside a callback is no call that blocks",
		  test_the_wait_of_a_loop_inside_a_callback_is_no_call_that_blocks },
		{ "nothing is recorded that was not asked for",
		  test_nothing_is_recorded_that_was_not_asked_for },
		{ "results and errors are those of the plain calls",
		  test_results_and_errors_are_those_of_the_plain_calls },
		{ "a file is created with the mode that was asked for",
		  test_a_file_is_created_with_the_mode_that_was_asked_for },
		{ "a signal interrupts a call as without us",
		  test_a_signal_interrupts_a_call_as_without_us },
		{ "a thread is cancelled in a call as without us",
		  test_a_thread_is_cancelled_in_a_call_as_without_us },
		{ "a thread is cancelled in pause() as without us",
		  test_a_thread_is_cancelled_in_pause_as_without_us },
		{ "a call that is left by a jump leaves nothing behind",
		  test_a_call_that_is_left_by_a_jump_leaves_nothing_behind },
		{ "a forked child records nothing in the name of its parent",
		  test_a_forked_child_records_nothing_in_the_name_of_its_parent },
		CU_TEST_INFO_NULL,
	};

	return wrapped_main("blocking", tests);
}
