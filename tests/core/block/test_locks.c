/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of locks, of a futex's wait and of initialisations: they answer as the plain calls
 * do, and tell the holder of a lock.
 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "wrapped.h"

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
	loop_ns += MS; /* since the latest wait */
	wait_for_shared(write_shared, "pthread_rwlock_rdlock", announced_rdlock);
	CU_ASSERT_EQUAL(call_at(0)->holder_tid, holder_tid);
	CU_ASSERT_STRING_EQUAL(call_at(0)->holder_name, "writer");
	CU_ASSERT_EQUAL(call_at(0)->held_ns, 30 * MS);
	CU_ASSERT(call_at(0)->held_cpu_ns != UINT64_MAX);
	/* Where the kernel tells: and it is no more than was left. */
	CU_ASSERT_EQUAL(call_at(0)->held_ready_ns != UINT64_MAX,
			!access("/proc/self/schedstat", R_OK));
	if (call_at(0)->held_ready_ns != UINT64_MAX)
		CU_ASSERT(call_at(0)->held_ready_ns + call_at(0)->held_cpu_ns <= 30 * MS);
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

	return wrapped_main("locks", tests);
}
