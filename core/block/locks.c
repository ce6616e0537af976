/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/locks.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/time.h"
#include "block/call.h"
#include "block/holders.h"

/* A thread that has got |lock| alone is its holder from now on. */
static inline void note_got(const void *lock, int result)
{
	if (d9__lock_is_asked() && (!result || result == EOWNERDEAD))
		d9__lock_gets(lock);
}

static inline uint32_t owner_of(const pthread_mutex_t *mutex)
{
	return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

/* 0: readers have it. */
static inline uint32_t writer_of(const pthread_rwlock_t *lock)
{
	return (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}

/*
 * A call that waits for a lock.  |try| gets it if it is free, and says EBUSY if it is not, or taken
 * by this thread, as the call itself knows; a call that is not |valid| is left to say so.
 */
#define LOCKING(function, try, valid, owner, readers, got, params, ...)                            \
	static int(*real_##function) params;                                                       \
                                                                                                   \
	static int hook_##function params                                                          \
	{                                                                                          \
		uint64_t begin_ns = 0;                                                             \
		int result = EBUSY;                                                                \
                                                                                                   \
		if (__builtin_expect(d9__block_is_inside(), 0) && (valid)) {                       \
			result = try(lock);                                                        \
			if (result == EBUSY)                                                       \
				begin_ns = d9__block_begin();                                      \
		}                                                                                  \
		if (__builtin_expect(begin_ns != 0, 0))                                            \
			result = D9__LOCK_WAIT(lock, owner(lock), readers, #function,              \
					       D9__BLOCK_REAL(real_##function), begin_ns,          \
					       D9__BLOCK_REAL(real_##function)(__VA_ARGS__));      \
		else if (__builtin_expect(result == EBUSY, 1))                                     \
			result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                     \
		got(lock, result);                                                                 \
		return result;                                                                     \
	}

static inline bool is_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* The C library looks at the time first, too, where the lock is for readers and writers. */
static inline bool is_time(const struct timespec *until)
{
	return !until || (until->tv_nsec >= 0 && until->tv_nsec < (long)D9__SECOND_NS);
}

/* ---- mutexes ---- */

#define MUTEXES(X)                                                                                 \
	X(pthread_mutex_lock, pthread_mutex_trylock, true, owner_of, false, note_got,              \
	  (pthread_mutex_t * lock), lock)                                                          \
	X(pthread_mutex_timedlock, pthread_mutex_trylock, true, owner_of, false, note_got,         \
	  (pthread_mutex_t * lock, const struct timespec *until), lock, until)                     \
	X(pthread_mutex_clocklock, pthread_mutex_trylock, is_clock(clock), owner_of, false,        \
	  note_got, (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until), lock, \
	  clock, until)

MUTEXES(LOCKING)

static int (*real_pthread_mutex_unlock)(pthread_mutex_t *mutex);

static int hook_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (d9__lock_is_asked())
		d9__lock_leaves(mutex, (void *)D9__BLOCK_REAL(real_pthread_mutex_unlock),
				__builtin_return_address(0));
	return D9__BLOCK_REAL(real_pthread_mutex_unlock)(mutex);
}

/* ---- conditions, which unlock a mutex and lock it again ---- */

#define CONDITION(function, params, ...)                                                           \
	static int(*real_##function) params;                                                       \
                                                                                                   \
	static int hook_##function params                                                          \
	{                                                                                          \
		uint64_t begin_ns = d9__block_begin();                                             \
		int result;                                                                        \
                                                                                                   \
		if (d9__lock_is_asked())                                                           \
			d9__lock_leaves(mutex, (void *)D9__BLOCK_REAL(real_##function),            \
					__builtin_return_address(0));                              \
		result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                             \
		if (d9__lock_is_asked())                                                           \
			d9__lock_gets(mutex);                                                      \
		if (__builtin_expect(begin_ns != 0, 0))                                            \
			D9__BLOCK_END(begin_ns, #function, D9__BLOCK_REAL(real_##function), -1);   \
		return result;                                                                     \
	}

#define CONDITIONS(X)                                                                              \
	X(pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t * mutex), cond, mutex)        \
	X(pthread_cond_timedwait,                                                                  \
	  (pthread_cond_t * cond, pthread_mutex_t * mutex, const struct timespec *until), cond,    \
	  mutex, until)                                                                            \
	X(pthread_cond_clockwait,                                                                  \
	  (pthread_cond_t * cond, pthread_mutex_t * mutex, clockid_t clock,                        \
	   const struct timespec *until),                                                          \
	  cond, mutex, clock, until)

CONDITIONS(CONDITION)

/* ---- locks for readers and writers ---- */

static inline void note_read(const void *lock, int result)
{
	(void)lock, (void)result;
}

#define RWLOCKS(X)                                                                                 \
	X(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, true, writer_of, true, note_read,       \
	  (pthread_rwlock_t * lock), lock)                                                         \
	X(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, true, writer_of, true, note_got,        \
	  (pthread_rwlock_t * lock), lock)                                                         \
	X(pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock, is_time(until), writer_of, true,   \
	  note_read, (pthread_rwlock_t * lock, const struct timespec *until), lock, until)         \
	X(pthread_rwlock_timedwrlock, pthread_rwlock_trywrlock, is_time(until), writer_of, true,   \
	  note_got, (pthread_rwlock_t * lock, const struct timespec *until), lock, until)          \
	X(pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock, is_clock(clock) && is_time(until), \
	  writer_of, true, note_read,                                                              \
	  (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), lock, clock,   \
	  until)                                                                                   \
	X(pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock, is_clock(clock) && is_time(until), \
	  writer_of, true, note_got,                                                               \
	  (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), lock, clock,   \
	  until)

RWLOCKS(LOCKING)

static int (*real_pthread_rwlock_unlock)(pthread_rwlock_t *lock);

/* While there is a writer, no reader has the lock that could unlock it. */
static int hook_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	if (d9__lock_is_asked() && writer_of(lock))
		d9__lock_leaves(lock, (void *)D9__BLOCK_REAL(real_pthread_rwlock_unlock),
				__builtin_return_address(0));
	return D9__BLOCK_REAL(real_pthread_rwlock_unlock)(lock);
}

#define HOOK(function, ...)                                                                        \
	D9__GOT_HOOK(function, hook_##function, &real_##function,                                  \
		     D9__GOT_IN_OTHERS | D9__GOT_SCOPE),

const struct d9__got_hook d9__lock_hooks[] = { MUTEXES(HOOK) HOOK(pthread_mutex_unlock) CONDITIONS(
	HOOK) RWLOCKS(HOOK) HOOK(pthread_rwlock_unlock) };
