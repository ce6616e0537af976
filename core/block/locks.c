/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/locks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "block/call.h"
#include "block/stack.h"
#include "record/sandbox.h"

#define WAITED	32 /* mutexes that are waited for at once; holders of further ones are not known */
#define PROBES	4
#define HELD_NS (100 * D9__US_NS) /* who held it for less is not to be blamed */

/* The low bits count who waits; above them is the address.  0: free. */
#define WAITERS	 16
#define A_WAITER UINT64_C(1)

struct waited {
	_Atomic(uint64_t) word;
	_Atomic(uint64_t) since_ns, newest_ns; /* when the first and the latest of who waits began to */
	struct d9__lock_holder longest; /* who has the mutex */
	uint64_t unlocked_ns;		/* likewise: the latest */
};

static struct waited waited[WAITED];
static _Atomic(uint32_t) n_waiting;

static uint64_t word_of(const pthread_mutex_t *mutex)
{
	uint64_t address = (uintptr_t)mutex;

	return address >> (64 - WAITERS) ? 0 : address << WAITERS;
}

static struct waited *place_of(const pthread_mutex_t *mutex, unsigned i)
{
	uint64_t hash = (uintptr_t)mutex * UINT64_C(0x9e3779b97f4a7c15);

	return &waited[((hash >> 32) + i) % WAITED];
}

static bool is_at(uint64_t word, uint64_t mutex)
{
	return word >> WAITERS == mutex >> WAITERS;
}

/* One more waits at |place|.  False: it is another mutex's. */
static bool join(struct waited *place, uint64_t mutex, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed);

	while (word == 0 || is_at(word, mutex)) {
		if (!atomic_compare_exchange_weak_explicit(&place->word, &word, (word ? word : mutex) + A_WAITER,
							   memory_order_acq_rel, memory_order_relaxed))
			continue;
		if (word == 0)
			atomic_store_explicit(&place->since_ns, now_ns, memory_order_relaxed);
		atomic_store_explicit(&place->newest_ns, now_ns, memory_order_relaxed);
		return true;
	}
	return false;
}

static struct waited *begin_wait(const pthread_mutex_t *mutex, uint64_t now_ns)
{
	uint64_t word = word_of(mutex);

	for (unsigned i = 0; word && i < PROBES; i++) {
		struct waited *place = place_of(mutex, i);

		if (!join(place, word, now_ns))
			continue;
		atomic_fetch_add_explicit(&n_waiting, 1, memory_order_relaxed);
		return place;
	}
	return NULL;
}

static void end_wait(struct waited *place)
{
	uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed), left;

	do
		left = (word - A_WAITER) % (UINT64_C(1) << WAITERS) ? word - A_WAITER : 0;
	while (!atomic_compare_exchange_weak_explicit(&place->word, &word, left, memory_order_acq_rel,
						      memory_order_relaxed));
	atomic_fetch_sub_explicit(&n_waiting, 1, memory_order_relaxed);
}

/* ---- who unlocks ---- */

static struct waited *find(const pthread_mutex_t *mutex)
{
	uint64_t word = word_of(mutex);

	for (unsigned i = 0; word && i < PROBES; i++) {
		struct waited *place = place_of(mutex, i);

		if (is_at(atomic_load_explicit(&place->word, memory_order_acquire), word))
			return place;
	}
	return NULL;
}

static uint32_t own_tid(void)
{
	const struct d9__slot *slot = d9__self.slot;

	if (d9__slot_is_real(slot))
		return d9__slot_tid(slot);
	return d9__sandbox_is_shut() ? 0 : (uint32_t)syscall(SYS_gettid);
}

static void note_holder(struct d9__lock_holder *holder, const void *real, const void *caller)
{
	const struct d9__thread *thread = d9__thread_peek();
	struct d9__block_stack stack;

	holder->tid = own_tid();
	holder->task = thread ? d9__thread_task(thread) : 0;
	d9__block_stack_take(&stack, real, caller);
	holder->n = stack.n < D9__BLOCKING_FRAMES_MAX ? stack.n : D9__BLOCKING_FRAMES_MAX;
	memcpy(holder->pcs, stack.pcs, holder->n * sizeof(holder->pcs[0]));
	d9__block_stack_release(&stack);
}

/* This thread is about to unlock |mutex|, which a callback may wait for. */
__attribute__((noinline)) static void unlocks(const pthread_mutex_t *mutex, const void *real, const void *caller)
{
	int saved = errno;
	struct waited *place = find(mutex);
	uint64_t now_ns, from_ns;

	if (!place)
		return;
	now_ns = d9__clock_mono_ns();
	from_ns = atomic_load_explicit(&place->since_ns, memory_order_relaxed);
	/* Figures of earlier waits, perhaps for another mutex, are not of the newest one. */
	if (place->longest.at_ns < atomic_load_explicit(&place->newest_ns, memory_order_relaxed))
		place->longest.held_ns = 0;
	if (place->unlocked_ns > from_ns)
		from_ns = place->unlocked_ns;
	place->unlocked_ns = now_ns;
	if (now_ns > from_ns && now_ns - from_ns >= HELD_NS && now_ns - from_ns > place->longest.held_ns) {
		place->longest.at_ns = now_ns;
		place->longest.held_ns = now_ns - from_ns;
		note_holder(&place->longest, real, caller);
	}
	errno = saved;
}

static inline void look_at_unlock(const pthread_mutex_t *mutex, const void *real, const void *caller)
{
	if (__builtin_expect(atomic_load_explicit(&n_waiting, memory_order_relaxed) != 0, 0) &&
	    !d9__slot_is_barred(d9__self.slot))
		unlocks(mutex, real, caller);
}

void d9__locks_fork_child(void)
{
	for (unsigned i = 0; i < WAITED; i++)
		atomic_store_explicit(&waited[i].word, 0, memory_order_relaxed);
	atomic_store_explicit(&n_waiting, 0, memory_order_relaxed);
}

/* ---- wrappers of mutexes ---- */

static int (*real_mutex_lock)(pthread_mutex_t *mutex);
static int (*real_mutex_unlock)(pthread_mutex_t *mutex);
static int (*real_cond_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex);
static int (*real_cond_timedwait)(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);
static int (*real_cond_clockwait)(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);

/* Whether the wait that began at |begin_ns| and is over has a culprit, and which. */
static bool take_holder(const struct waited *place, uint64_t begin_ns, struct d9__lock_holder *out)
{
	if (!place || place->longest.at_ns < begin_ns || !place->longest.held_ns)
		return false;
	*out = place->longest;
	return true;
}

__attribute__((noinline)) static int wait_for(pthread_mutex_t *mutex, uint64_t begin_ns, const void *caller)
{
	struct waited *place = begin_wait(mutex, begin_ns);
	struct d9__blocked_call blocked = { .function = "pthread_mutex_lock", .real = (void *)D9__BLOCK_REAL(real_mutex_lock),
				       .caller = caller, .fd = -1, .begin_ns = begin_ns };
	struct d9__lock_holder holder;
	int result = D9__BLOCK_REAL(real_mutex_lock)(mutex);

	blocked.ns = d9__block_long_ns(begin_ns);
	/* This thread may read it, because it has got the mutex. */
	if (blocked.ns && (!result || result == EOWNERDEAD) && take_holder(place, begin_ns, &holder))
		blocked.holder = &holder;
	if (place)
		end_wait(place);
	if (blocked.ns)
		d9__block_tell(&blocked);
	return result;
}

static int hook_mutex_lock(pthread_mutex_t *mutex)
{
	uint64_t begin_ns;
	int result;

	if (__builtin_expect(!d9__block_is_inside(), 1))
		return D9__BLOCK_REAL(real_mutex_lock)(mutex);
	/* Not locked: that is the call's result.  By this thread: the call itself knows it. */
	result = pthread_mutex_trylock(mutex);
	if (result != EBUSY)
		return result;
	begin_ns = d9__block_begin();
	return begin_ns ? wait_for(mutex, begin_ns, __builtin_return_address(0)) : D9__BLOCK_REAL(real_mutex_lock)(mutex);
}

static int hook_mutex_unlock(pthread_mutex_t *mutex)
{
	look_at_unlock(mutex, (void *)D9__BLOCK_REAL(real_mutex_unlock), __builtin_return_address(0));
	return D9__BLOCK_REAL(real_mutex_unlock)(mutex);
}

static int hook_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	uint64_t begin_ns = d9__block_begin();
	int result;

	look_at_unlock(mutex, (void *)D9__BLOCK_REAL(real_cond_wait), __builtin_return_address(0));
	if (__builtin_expect(!begin_ns, 1))
		return D9__BLOCK_REAL(real_cond_wait)(cond, mutex);
	result = D9__BLOCK_REAL(real_cond_wait)(cond, mutex);
	D9__BLOCK_END(begin_ns, "pthread_cond_wait", D9__BLOCK_REAL(real_cond_wait), -1);
	return result;
}

static int hook_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	uint64_t begin_ns = d9__block_begin();
	int result;

	look_at_unlock(mutex, (void *)D9__BLOCK_REAL(real_cond_timedwait), __builtin_return_address(0));
	if (__builtin_expect(!begin_ns, 1))
		return D9__BLOCK_REAL(real_cond_timedwait)(cond, mutex, until);
	result = D9__BLOCK_REAL(real_cond_timedwait)(cond, mutex, until);
	D9__BLOCK_END(begin_ns, "pthread_cond_timedwait", D9__BLOCK_REAL(real_cond_timedwait), -1);
	return result;
}

static int hook_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			       const struct timespec *until)
{
	uint64_t begin_ns = d9__block_begin();
	int result;

	look_at_unlock(mutex, (void *)D9__BLOCK_REAL(real_cond_clockwait), __builtin_return_address(0));
	if (__builtin_expect(!begin_ns, 1))
		return D9__BLOCK_REAL(real_cond_clockwait)(cond, mutex, clock, until);
	result = D9__BLOCK_REAL(real_cond_clockwait)(cond, mutex, clock, until);
	D9__BLOCK_END(begin_ns, "pthread_cond_clockwait", D9__BLOCK_REAL(real_cond_clockwait), -1);
	return result;
}

/* ---- locks for readers and writers, whose holders may be many ---- */

static int (*real_rdlock)(pthread_rwlock_t *lock);
static int (*real_wrlock)(pthread_rwlock_t *lock);

static int hook_rdlock(pthread_rwlock_t *lock)
{
	uint64_t begin_ns;
	int result;

	if (__builtin_expect(!d9__block_is_inside(), 1))
		return D9__BLOCK_REAL(real_rdlock)(lock);
	result = pthread_rwlock_tryrdlock(lock);
	if (result != EBUSY)
		return result;
	begin_ns = d9__block_begin();
	result = D9__BLOCK_REAL(real_rdlock)(lock);
	if (begin_ns)
		D9__BLOCK_END(begin_ns, "pthread_rwlock_rdlock", D9__BLOCK_REAL(real_rdlock), -1);
	return result;
}

static int hook_wrlock(pthread_rwlock_t *lock)
{
	uint64_t begin_ns;
	int result;

	if (__builtin_expect(!d9__block_is_inside(), 1))
		return D9__BLOCK_REAL(real_wrlock)(lock);
	result = pthread_rwlock_trywrlock(lock);
	if (result != EBUSY)
		return result;
	begin_ns = d9__block_begin();
	result = D9__BLOCK_REAL(real_wrlock)(lock);
	if (begin_ns)
		D9__BLOCK_END(begin_ns, "pthread_rwlock_wrlock", D9__BLOCK_REAL(real_wrlock), -1);
	return result;
}

const struct d9__got_hook d9__lock_hooks[] = {
#define HOOK(name, part) D9__GOT_HOOK(name, hook_##part, &real_##part, D9__GOT_IN_OTHERS | D9__GOT_SCOPE)
	HOOK(pthread_mutex_lock, mutex_lock),
	HOOK(pthread_mutex_unlock, mutex_unlock),
	HOOK(pthread_cond_wait, cond_wait),
	HOOK(pthread_cond_timedwait, cond_timedwait),
	HOOK(pthread_cond_clockwait, cond_clockwait),
	HOOK(pthread_rwlock_rdlock, rdlock),
	HOOK(pthread_rwlock_wrlock, wrlock),
};
