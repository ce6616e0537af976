/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of calls that block: what they record, and that their callers cannot tell them from
 * the plain calls. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "base/sanitized.h"
#include "block/call.h"
#include "block/calls.h"
#include "block/locks.h"
#include "block/waits.h"
#include "core/loop/loop_events.h"
#include "drain/blocking_event.h"
#include "drain/side_event.h"
#include "record/sampling.h"
#include "support/d9_test.h"

#define MS	 UINT64_C(1000000)
#define CALLBACK 7
#define FD	 42

static struct d9_loop *loop;
static struct d9_poll poll_;
static struct d9_loop_run run;

/* ---- callbacks ---- */

static void begin_callback(void)
{
	poll_ = (struct d9_poll) { .loop = loop, .task = { .key = CALLBACK, .fd = -1 } };
	d9_loop_enter(loop, &run);
	d9_poll_begin(&poll_);
}

static void end_callback(void)
{
	d9_poll_end(&poll_);
	d9_loop_leave(&run);
}

/* ---- wrappers ---- */

/* As the engine does: not a cast, which compilers warn of. */
typedef void *any_function __attribute__((may_alias));

static const struct d9__got_hook *find_hook(const char *name)
{
	for (size_t i = 0; i < D9__CALL_HOOKS; i++)
		if (!strcmp(d9__call_hooks[i].name, name))
			return &d9__call_hooks[i];
	for (size_t i = 0; i < D9__LOCK_HOOKS; i++)
		if (!strcmp(d9__lock_hooks[i].name, name))
			return &d9__lock_hooks[i];
	for (size_t i = 0; i < D9__WAIT_HOOKS; i++)
		if (d9__wait_hooks[i].name && !strcmp(d9__wait_hooks[i].name, name))
			return &d9__wait_hooks[i];
	return NULL;
}

/* The wrapper of |name| in front of |real|. */
static void *wrap(const char *name, void *real)
{
	const struct d9__got_hook *hook = find_hook(name);

	if (!hook)
		return NULL;
	*(any_function *)hook->real = real;
	return hook->replacement;
}

static void *wrapped(const char *name)
{
	return wrap(name, dlsym(RTLD_DEFAULT, name));
}

/* ---- what they left ---- */

static struct d9__side_record samples[8], calls[8];
static size_t n_samples, n_calls;

static void take_records(void)
{
	struct d9__side_record record;

	n_samples = n_calls = 0;
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		while (d9__side_take(i, &record)) {
			if (record.type_id == D9__EVENT_CPU_SAMPLE && n_samples < 8)
				samples[n_samples++] = record;
			if (record.type_id == D9__EVENT_BLOCKING_CALL && n_calls < 8)
				calls[n_calls++] = record;
		}
}

static const struct d9__sample_raw *sample_at(size_t i)
{
	return (const struct d9__sample_raw *)(const void *)samples[i].payload;
}

static const struct d9__blocking_raw *call_at(size_t i)
{
	return (const struct d9__blocking_raw *)(const void *)calls[i].payload;
}

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

static void test_short_calls_and_those_outside_of_callbacks_are_not_recorded(void)
{
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 0);
	begin_callback();
	CU_ASSERT_EQUAL(record_fsync(MS - 1), 0);
	CU_ASSERT_EQUAL(record_fsync(MS), 1);
	end_callback();
	CU_ASSERT_EQUAL(record_fsync(25 * MS), 0);
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

/* ---- locks ---- */

static int (*lock)(pthread_mutex_t *);
static int (*unlock)(pthread_mutex_t *);

static void make_mutex(pthread_mutex_t *mutex, int type, bool robust)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type);
	if (robust)
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

static void *die_with_mutex(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

static void test_mutexes_of_every_kind_answer_as_without_us(void)
{
	pthread_mutex_t mutex;
	pthread_t thread;

	lock = wrapped("pthread_mutex_lock");
	unlock = wrapped("pthread_mutex_unlock");
	begin_callback();
	make_mutex(&mutex, PTHREAD_MUTEX_ERRORCHECK, false);
	CU_ASSERT_EQUAL(lock(&mutex), 0);
	CU_ASSERT_EQUAL(lock(&mutex), EDEADLK);
	CU_ASSERT_EQUAL(unlock(&mutex), 0);
	/* Which a checker of threads reports, as it should. */
	if (D9__SANITIZED != 2)
		CU_ASSERT_EQUAL(unlock(&mutex), EPERM);
	pthread_mutex_destroy(&mutex);

	make_mutex(&mutex, PTHREAD_MUTEX_RECURSIVE, false);
	CU_ASSERT_EQUAL(lock(&mutex), 0);
	CU_ASSERT_EQUAL(lock(&mutex), 0);
	CU_ASSERT_EQUAL(unlock(&mutex), 0);
	CU_ASSERT_EQUAL(unlock(&mutex), 0);
	CU_ASSERT_EQUAL(pthread_mutex_destroy(&mutex), 0);

	make_mutex(&mutex, PTHREAD_MUTEX_NORMAL, true);
	pthread_create(&thread, NULL, die_with_mutex, &mutex);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(lock(&mutex), EOWNERDEAD);
	CU_ASSERT_EQUAL(unlock(&mutex), 0);
	CU_ASSERT_EQUAL(lock(&mutex), ENOTRECOVERABLE);
	pthread_mutex_destroy(&mutex);
	end_callback();
	take_records();
}

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static sem_t locked, wanted;
static uint32_t holder_tid;

__attribute__((noinline)) static void hold(uint64_t ns)
{
	sem_post(&locked);
	sem_wait(&wanted);
	loop_ns += ns;
	unlock(&contended);
	__asm__ volatile(""); /* not its last call: it would have no frame then */
}

static void *hold_mutex(void *ns)
{
	holder_tid = (uint32_t)syscall(SYS_gettid);
	pthread_mutex_lock(&contended);
	hold(*(uint64_t *)ns);
	return NULL;
}

/* The plain call, when the wait is in the table. */
static int announced_lock(pthread_mutex_t *mutex)
{
	sem_post(&wanted);
	return pthread_mutex_lock(mutex);
}

static void wait_for_holder(uint64_t ns)
{
	pthread_t thread;

	unlock = wrapped("pthread_mutex_unlock");
	lock = wrap("pthread_mutex_lock", (void *)announced_lock);
	sem_init(&locked, 0, 0);
	sem_init(&wanted, 0, 0);
	pthread_create(&thread, NULL, hold_mutex, &ns);
	sem_wait(&locked);
	begin_callback();
	CU_ASSERT_EQUAL(lock(&contended), 0);
	unlock(&contended);
	end_callback();
	pthread_join(thread, NULL);
	take_records();
}

static void test_who_held_a_lock_is_told_with_the_place_where_it_let_go(void)
{
	wait_for_holder(30 * MS);
	CU_ASSERT_EQUAL_FATAL(n_calls, 1);
	CU_ASSERT_STRING_EQUAL(call_at(0)->function, "pthread_mutex_lock");
	CU_ASSERT_EQUAL(call_at(0)->duration_ns, 30 * MS);
	CU_ASSERT_EQUAL(call_at(0)->holder_tid, holder_tid);
	CU_ASSERT_EQUAL(call_at(0)->holder_task, 0);
	CU_ASSERT_FATAL(call_at(0)->n >= 2);
	CU_ASSERT(call_at(0)->pcs[1] > (uintptr_t)hold &&
		  call_at(0)->pcs[1] < (uintptr_t)hold + 4096);
}

static void test_who_held_a_lock_for_a_moment_is_not_blamed(void)
{
	wait_for_holder(30 * MS);
	wait_for_holder(MS / 20);
	CU_ASSERT_EQUAL(n_calls, 0);
}

static void test_a_lock_that_is_free_is_not_recorded_and_locked(void)
{
	lock = wrapped("pthread_mutex_lock");
	begin_callback();
	CU_ASSERT_EQUAL(lock(&contended), 0);
	CU_ASSERT_EQUAL(pthread_mutex_trylock(&contended), EBUSY);
	CU_ASSERT_EQUAL(unlock(&contended), 0);
	end_callback();
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
}

#define WAITERS 4
#define ROUNDS	200

static pthread_mutex_t few[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static uint64_t counts[2];

static void *wait_often(void *arg)
{
	struct d9_poll poll = { .loop = loop,
				.task = { .key = 100 + (uint64_t)(uintptr_t)arg, .fd = -1 } };
	struct d9_loop_run own;

	d9_loop_enter(loop, &own);
	d9_poll_begin(&poll);
	for (size_t i = 0; i < ROUNDS; i++) {
		lock(&few[i % 2]);
		counts[i % 2]++;
		__atomic_add_fetch(&loop_ns, MS, __ATOMIC_RELAXED);
		sched_yield();
		unlock(&few[i % 2]);
	}
	d9_poll_end(&poll);
	d9_loop_leave(&own);
	return NULL;
}

static void test_many_threads_wait_for_few_locks(void)
{
	pthread_t threads[WAITERS];

	lock = wrapped("pthread_mutex_lock");
	unlock = wrapped("pthread_mutex_unlock");
	for (size_t i = 0; i < WAITERS; i++)
		pthread_create(&threads[i], NULL, wait_often, (void *)i);
	for (size_t i = 0; i < WAITERS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(counts[0] + counts[1], WAITERS * ROUNDS);
	take_records();
	for (size_t i = 0; i < n_calls; i++) {
		CU_ASSERT(d9__blocking_is_sound(&calls[i]));
		CU_ASSERT(call_at(i)->holder_tid == 0 || call_at(i)->n >= 2);
	}
	/* Nobody waits any more: the next one finds the table as it was. */
	wait_for_holder(30 * MS);
	CU_ASSERT_EQUAL_FATAL(n_calls, 1);
	CU_ASSERT_EQUAL(call_at(0)->holder_tid, holder_tid);
}

/* ---- readers and writers ---- */

static void test_locks_of_readers_and_writers_answer_as_without_us(void)
{
	int (*read_lock)(pthread_rwlock_t *) = wrapped("pthread_rwlock_rdlock");
	int (*write_lock)(pthread_rwlock_t *) = wrapped("pthread_rwlock_wrlock");
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	begin_callback();
	CU_ASSERT_EQUAL(read_lock(&rwlock), 0);
	CU_ASSERT_EQUAL(read_lock(&rwlock), 0);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	CU_ASSERT_EQUAL(write_lock(&rwlock), 0);
	CU_ASSERT_EQUAL(write_lock(&rwlock), EDEADLK);
	CU_ASSERT_EQUAL(read_lock(&rwlock), EDEADLK);
	pthread_rwlock_unlock(&rwlock);
	end_callback();
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
}

static const struct timespec past = { 1, 0 }, wrong = { 1, 1000000000 };

static void test_locks_with_a_time_answer_as_without_us(void)
{
	int (*timed)(pthread_mutex_t *, const struct timespec *) =
		wrapped("pthread_mutex_timedlock");
	int (*by_clock)(pthread_mutex_t *, clockid_t, const struct timespec *) =
		wrapped("pthread_mutex_clocklock");
	int (*timed_write)(pthread_rwlock_t *, const struct timespec *) =
		wrapped("pthread_rwlock_timedwrlock");
	int (*timed_read)(pthread_rwlock_t *, const struct timespec *) =
		wrapped("pthread_rwlock_timedrdlock");
	int (*write_by)(pthread_rwlock_t *, clockid_t, const struct timespec *) =
		wrapped("pthread_rwlock_clockwrlock");
	int (*read_by)(pthread_rwlock_t *, clockid_t, const struct timespec *) =
		wrapped("pthread_rwlock_clockrdlock");
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	begin_callback();
	CU_ASSERT_EQUAL(by_clock(&mutex, CLOCK_THREAD_CPUTIME_ID, &past), EINVAL);
	CU_ASSERT_EQUAL(timed(&mutex, &past), 0);
	CU_ASSERT_EQUAL(timed(&mutex, &past), ETIMEDOUT);
	CU_ASSERT_EQUAL(timed(&mutex, &wrong), EINVAL);
	CU_ASSERT_EQUAL(by_clock(&mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	/* Which the C library asks of a lock that is free, too. */
	CU_ASSERT_EQUAL(timed_write(&rwlock, &wrong), EINVAL);
	CU_ASSERT_EQUAL(read_by(&rwlock, CLOCK_THREAD_CPUTIME_ID, &past), EINVAL);
	CU_ASSERT_EQUAL(timed_read(&rwlock, &past), 0);
	CU_ASSERT_EQUAL(timed_write(&rwlock, &past), ETIMEDOUT);
	CU_ASSERT_EQUAL(write_by(&rwlock, CLOCK_REALTIME, &past), ETIMEDOUT);
	pthread_rwlock_unlock(&rwlock);
	CU_ASSERT_EQUAL(write_by(&rwlock, CLOCK_MONOTONIC, &past), 0);
	CU_ASSERT_EQUAL(timed_read(&rwlock, &past), EDEADLK);
	pthread_rwlock_unlock(&rwlock);
	end_callback();
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
}

static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static int (*rw_unlock)(pthread_rwlock_t *);

__attribute__((noinline)) static void hold_shared(uint64_t ns)
{
	sem_post(&locked);
	sem_wait(&wanted);
	loop_ns += ns;
	rw_unlock(&shared);
	__asm__ volatile(""); /* not its last call: it would have no frame then */
}

static void *write_shared(void *ns)
{
	holder_tid = (uint32_t)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), "writer");
	pthread_rwlock_wrlock(&shared);
	hold_shared(*(uint64_t *)ns);
	return NULL;
}

static void *read_shared(void *ns)
{
	pthread_rwlock_rdlock(&shared);
	hold_shared(*(uint64_t *)ns);
	return NULL;
}

/* The plain calls, when the wait is in the table. */
static int announced_rdlock(pthread_rwlock_t *rwlock)
{
	sem_post(&wanted);
	return pthread_rwlock_rdlock(rwlock);
}

static int announced_wrlock(pthread_rwlock_t *rwlock)
{
	sem_post(&wanted);
	return pthread_rwlock_wrlock(rwlock);
}

static void wait_for_shared(void *(*holder)(void *), const char *name,
			    int (*real)(pthread_rwlock_t *))
{
	int (*ours)(pthread_rwlock_t *) = wrap(name, (void *)real);
	uint64_t ns = 30 * MS;
	pthread_t thread;

	rw_unlock = wrapped("pthread_rwlock_unlock");
	pthread_create(&thread, NULL, holder, &ns);
	sem_wait(&locked);
	begin_callback();
	CU_ASSERT_EQUAL(ours(&shared), 0);
	rw_unlock(&shared);
	end_callback();
	pthread_join(thread, NULL);
	take_records();
	CU_ASSERT_EQUAL_FATAL(n_calls, 1);
	CU_ASSERT_STRING_EQUAL(call_at(0)->function, name);
	CU_ASSERT_EQUAL(call_at(0)->duration_ns, 30 * MS);
}

static void test_a_writer_is_told_with_its_name_and_how_long_it_had_the_lock(void)
{
	wait_for_shared(write_shared, "pthread_rwlock_rdlock", announced_rdlock);
	CU_ASSERT_EQUAL(call_at(0)->holder_tid, holder_tid);
	CU_ASSERT_STRING_EQUAL(call_at(0)->holder_name, "writer");
	CU_ASSERT_EQUAL(call_at(0)->held_ns, 30 * MS);
	CU_ASSERT(call_at(0)->held_cpu_ns != UINT64_MAX);
	CU_ASSERT_FATAL(call_at(0)->n >= 2);
	CU_ASSERT(call_at(0)->pcs[1] > (uintptr_t)hold_shared &&
		  call_at(0)->pcs[1] < (uintptr_t)hold_shared + 4096);
}

static void test_a_reader_is_no_holder(void)
{
	wait_for_shared(read_shared, "pthread_rwlock_wrlock", announced_wrlock);
	CU_ASSERT_EQUAL(call_at(0)->holder_tid, 0);
}

/* ---- futexes ---- */

static long arguments[7];

static long slow_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	const long given[7] = { number, a, b, c, d, e, f };

	memcpy(arguments, given, sizeof(arguments));
	loop_ns += 5 * MS;
	errno = EAGAIN;
	return -1;
}

/* Whether a call of syscall() in a callback is told; its arguments come as they were given. */
static size_t told_syscall(long number, long operation)
{
	const long given[7] = { number, 2, operation, 4, 5, 6, 7 };
	long (*call)(long number, ...) = wrap("syscall", (void *)slow_syscall);

	errno = 0;
	CU_ASSERT_EQUAL(call(number, 2L, operation, 4L, 5L, 6L, 7L), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	CU_ASSERT_EQUAL(memcmp(arguments, given, sizeof(given)), 0);
	take_records();
	return n_calls;
}

static void test_of_bare_system_calls_the_wait_of_a_futex_is_told_alone(void)
{
	if (!find_hook("syscall"))
		return;
	begin_callback();
	CU_ASSERT_EQUAL_FATAL(told_syscall(SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG), 1);
	CU_ASSERT_STRING_EQUAL(call_at(0)->function, "futex");
	CU_ASSERT_EQUAL(call_at(0)->duration_ns, 5 * MS);
	CU_ASSERT_EQUAL(told_syscall(SYS_futex,
				     FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME),
			1);
	CU_ASSERT_EQUAL(told_syscall(SYS_futex, FUTEX_WAKE | FUTEX_PRIVATE_FLAG), 0);
	CU_ASSERT_EQUAL(told_syscall(SYS_futex, FUTEX_WAKE_BITSET), 0);
	CU_ASSERT_EQUAL(told_syscall(SYS_getpid, FUTEX_WAIT), 0);
	end_callback();
	CU_ASSERT_EQUAL(told_syscall(SYS_futex, FUTEX_WAIT), 0);
}

/* ---- initialisations ---- */

static int slow_once(pthread_once_t *once, void (*function)(void))
{
	(void)once, (void)function;
	loop_ns += 5 * MS;
	return 0;
}

static void test_only_the_wait_for_an_initialisation_is_told(void)
{
	int (*call)(pthread_once_t *, void (*)(void)) = wrap("pthread_once", (void *)slow_once);
	pthread_once_t runs = 1, never = PTHREAD_ONCE_INIT;

	begin_callback();
	CU_ASSERT_EQUAL(call(&never, test_a_reader_is_no_holder), 0);
	take_records();
	CU_ASSERT_EQUAL(n_calls, 0);
	CU_ASSERT_EQUAL(call(&runs, test_a_reader_is_no_holder), 0);
	take_records();
	CU_ASSERT_EQUAL_FATAL(n_calls, 1);
	CU_ASSERT_STRING_EQUAL(call_at(0)->function, "pthread_once");
	end_callback();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a long call in a callback is recorded, with descriptor and stack",
		  test_a_long_call_in_a_callback_is_recorded_with_descriptor_and_stack },
		{ "short calls, and those outside of callbacks, are not recorded",
		  test_short_calls_and_those_outside_of_callbacks_are_not_recorded },
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
		{ "mutexes of every kind answer as without us",
		  test_mutexes_of_every_kind_answer_as_without_us },
		{ "who held a lock is told, with the place where it let go",
		  test_who_held_a_lock_is_told_with_the_place_where_it_let_go },
		{ "who held a lock for a moment is not blamed",
		  test_who_held_a_lock_for_a_moment_is_not_blamed },
		{ "a lock that is free is not recorded, and locked",
		  test_a_lock_that_is_free_is_not_recorded_and_locked },
		{ "many threads wait for few locks", test_many_threads_wait_for_few_locks },
		{ "locks of readers and writers answer as without us",
		  test_locks_of_readers_and_writers_answer_as_without_us },
		{ "locks with a time answer as without us",
		  test_locks_with_a_time_answer_as_without_us },
		{ "a writer is told, with its name and how long it had the lock",
		  test_a_writer_is_told_with_its_name_and_how_long_it_had_the_lock },
		{ "a reader is no holder", test_a_reader_is_no_holder },
		{ "of bare system calls the wait of a futex is told alone",
		  test_of_bare_system_calls_the_wait_of_a_futex_is_told_alone },
		{ "only the wait for an initialisation is told",
		  test_only_the_wait_for_an_initialisation_is_told },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	atomic_store(&d9__sampling.blocking, true);
	loop = loop_events_add(D9_LIBRARY_LIBEVENT, &loop);
	return d9_test_main("blocking", tests);
}
