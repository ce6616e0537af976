/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/holders.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/time.h"
#include "block/stack.h"
#include "loop/cpu_time.h"
#include "record/sandbox.h"

#define WAITED	32 /* locks that are waited for at once; holders of further ones are not known */
#define PROBES	4
#define HELD_NS (100 * D9__US_NS) /* a thread that held it for less is not to be blamed */

/* Files about threads are read once in this time at most, and where their figures are of use. */
#define READ_EVERY_NS D9__MS_NS

#define NOT_KNOWN UINT64_MAX

/* Of a thread, so far. */
struct used {
	uint64_t cpu_ns;   /* on the CPU */
	uint64_t ready_ns; /* ready without one */
};

/* The low bits count who waits; above them is the address.  0: free. */
#define WAITERS	 16
#define A_WAITER UINT64_C(1)

struct d9__waited {
	_Atomic(uint64_t) word;
	_Atomic(uint64_t) since_ns, newest_ns; /* when the first and the latest wait began */
	/* When the first began, of |owner|: struct used. */
	_Atomic(uint64_t) owner_cpu_ns, owner_ready_ns;
	_Atomic(uint32_t) owner; /* had the lock then; 0: not known */

	/* Of the thread that has the lock: */
	struct d9__lock_holder longest;
	uint64_t got_ns; /* when a thread got the lock, or unlocked it, latest */
	struct used got; /* by |getter| then */
	uint32_t getter; /* 0: it was unlocked since */
};

static struct d9__waited waited[WAITED];
_Atomic(uint32_t) d9__lock_waits;

static uint64_t word_of(const void *lock)
{
	uint64_t address = (uintptr_t)lock;

	return address >> (64 - WAITERS) ? 0 : address << WAITERS;
}

static struct d9__waited *place_of(const void *lock, unsigned i)
{
	uint64_t hash = (uintptr_t)lock * UINT64_C(0x9e3779b97f4a7c15);

	return &waited[((hash >> 32) + i) % WAITED];
}

static bool is_at(uint64_t word, uint64_t lock)
{
	return word >> WAITERS == lock >> WAITERS;
}

/* ---- figures of threads ---- */

static uint32_t own_tid(void)
{
	const struct d9__slot *slot = d9__self.slot;

	if (d9__slot_is_real(slot))
		return d9__slot_tid(slot);
	return d9__sandbox_is_shut() ? 0 : (uint32_t)syscall(SYS_gettid);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	if (d9__sandbox_is_shut() || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used))
		return NOT_KNOWN;
	return d9__timespec_ns(&used);
}

static _Atomic(uint64_t) read_ns; /* when a file was read */

static bool may_read(uint64_t now_ns)
{
	uint64_t before_ns = atomic_load_explicit(&read_ns, memory_order_relaxed);

	return now_ns - before_ns >= READ_EVERY_NS &&
	       atomic_compare_exchange_strong_explicit(&read_ns, &before_ns, now_ns,
						       memory_order_relaxed, memory_order_relaxed);
}

/* For how long thread |tid| was ready without a CPU. */
static uint64_t ready_ns_of(uint32_t tid)
{
	uint64_t ready_ns;

	if (!tid || d9__sandbox_is_shut() || !d9__cpu_time_ready(tid, &ready_ns))
		return NOT_KNOWN;
	return ready_ns;
}

/* ---- waits ---- */

/* 0 is what a thread that is gone has used, too: then nothing is told of it. */
static void note_owner(struct d9__waited *place, uint32_t owner, uint64_t now_ns)
{
	uint64_t cpu_ns = owner && !d9__sandbox_is_shut() ? d9__thread_used_ns(owner) : 0;

	atomic_store_explicit(&place->owner_cpu_ns, cpu_ns, memory_order_relaxed);
	atomic_store_explicit(&place->owner_ready_ns,
			      cpu_ns && may_read(now_ns) ? ready_ns_of(owner) : NOT_KNOWN,
			      memory_order_relaxed);
	atomic_store_explicit(&place->owner, cpu_ns ? owner : 0, memory_order_relaxed);
}

/* One more waits at |place|.  False: it is another lock's. */
static bool join(struct d9__waited *place, uint64_t lock, uint64_t now_ns, uint32_t owner)
{
	uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed);

	while (word == 0 || is_at(word, lock)) {
		if (!atomic_compare_exchange_weak_explicit(
			    &place->word, &word, (word ? word : lock) + A_WAITER,
			    memory_order_acq_rel, memory_order_relaxed))
			continue;
		if (word == 0) {
			atomic_store_explicit(&place->since_ns, now_ns, memory_order_relaxed);
			note_owner(place, owner, now_ns);
		}
		atomic_store_explicit(&place->newest_ns, now_ns, memory_order_relaxed);
		return true;
	}
	return false;
}

static struct d9__waited *begin_wait(const void *lock, uint64_t now_ns, uint32_t owner)
{
	uint64_t word = word_of(lock);

	for (unsigned i = 0; word && i < PROBES; i++) {
		struct d9__waited *place = place_of(lock, i);

		if (!join(place, word, now_ns, owner))
			continue;
		atomic_fetch_add_explicit(&d9__lock_waits, 1, memory_order_relaxed);
		return place;
	}
	return NULL;
}

static void end_wait(struct d9__waited *place)
{
	uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed), left;

	do
		left = (word - A_WAITER) % (UINT64_C(1) << WAITERS) ? word - A_WAITER : 0;
	while (!atomic_compare_exchange_weak_explicit(&place->word, &word, left,
						      memory_order_acq_rel, memory_order_relaxed));
	atomic_fetch_sub_explicit(&d9__lock_waits, 1, memory_order_relaxed);
}

void d9__lock_wait_begin(struct d9__lock_wait *wait, const void *lock, uint64_t begin_ns,
			 uint32_t owner)
{
	int saved = errno;

	wait->begin_ns = begin_ns;
	wait->place = begin_wait(lock, begin_ns, owner);
	errno = saved;
}

/*
 * Whether the wait of |ns| that is over has a culprit, and which.  Who reads a lock for readers and
 * writers is not known: there a writer is blamed that had it for most of the time.
 */
static bool take_holder(const struct d9__lock_wait *wait, uint64_t ns, struct d9__lock_holder *out)
{
	const struct d9__waited *place = wait->place;

	if (!place || place->longest.at_ns <= wait->begin_ns || !place->longest.held_ns)
		return false;
	*out = place->longest;
	return !wait->has_readers || 2 * out->held_ns >= ns;
}

__attribute__((noinline)) void d9__lock_wait_end(const struct d9__lock_wait *wait,
						 struct d9__blocked_call call, int result)
{
	struct d9__lock_holder holder;

	call.ns = d9__block_long_ns(wait->begin_ns);
	/* This thread may read it, because it has got the lock. */
	if (call.ns && (!result || result == EOWNERDEAD) && take_holder(wait, call.ns, &holder))
		call.holder = &holder;
	if (wait->place)
		end_wait(wait->place);
	if (call.ns)
		d9__block_tell(&call);
}

/* ---- holders ---- */

static struct d9__waited *find(const void *lock)
{
	uint64_t word = word_of(lock);

	for (unsigned i = 0; word && i < PROBES; i++) {
		struct d9__waited *place = place_of(lock, i);

		if (is_at(atomic_load_explicit(&place->word, memory_order_acquire), word))
			return place;
	}
	return NULL;
}

static void note_name(struct d9__lock_holder *holder)
{
	memset(holder->name, 0, sizeof(holder->name));
	if (!d9__sandbox_is_shut())
		syscall(SYS_prctl, PR_GET_NAME, holder->name, 0L, 0L, 0L);
}

static void note_holder(struct d9__lock_holder *holder, const void *real, const void *caller)
{
	const struct d9__thread *thread = d9__thread_peek();
	struct d9__block_stack stack;

	holder->tid = own_tid();
	holder->task = thread ? d9__thread_task(thread) : 0;
	note_name(holder);
	d9__block_stack_take(&stack, real, caller);
	holder->n = stack.n < D9__BLOCKING_FRAMES_MAX ? stack.n : D9__BLOCKING_FRAMES_MAX;
	memcpy(holder->pcs, stack.pcs, holder->n * sizeof(holder->pcs[0]));
	d9__block_stack_release(&stack);
}

static uint64_t grown_ns(uint64_t before_ns, uint64_t now_ns)
{
	return before_ns == NOT_KNOWN || now_ns == NOT_KNOWN || now_ns < before_ns
		       ? NOT_KNOWN
		       : now_ns - before_ns;
}

/* By this thread since it got the lock, or since the wait for it began, |held_ns| ago. */
static struct used used_since(const struct d9__waited *place, bool since_wait, uint64_t held_ns)
{
	struct used used = { NOT_KNOWN, NOT_KNOWN }, before = place->got;
	uint32_t had = place->getter;
	uint64_t asleep_ns;

	if (since_wait) {
		had = atomic_load_explicit(&place->owner, memory_order_relaxed);
		before.cpu_ns = atomic_load_explicit(&place->owner_cpu_ns, memory_order_relaxed);
		before.ready_ns =
			atomic_load_explicit(&place->owner_ready_ns, memory_order_relaxed);
	}
	if (!had || had != own_tid())
		return used;
	used.cpu_ns = grown_ns(before.cpu_ns, own_cpu_ns());
	if (before.ready_ns != NOT_KNOWN)
		used.ready_ns = grown_ns(before.ready_ns, ready_ns_of(had));
	/* A thread that waited for its turn already has that time told at its end. */
	asleep_ns = used.cpu_ns < held_ns ? held_ns - used.cpu_ns : 0;
	if (used.ready_ns != NOT_KNOWN && used.ready_ns > asleep_ns)
		used.ready_ns = asleep_ns;
	return used;
}

__attribute__((noinline)) void d9__lock_gets(const void *lock)
{
	int saved = errno;
	struct d9__waited *place = find(lock);

	if (place) {
		uint64_t now_ns = d9__clock_mono_ns();

		place->getter = own_tid();
		place->got.cpu_ns = own_cpu_ns();
		place->got.ready_ns = may_read(now_ns) ? ready_ns_of(place->getter) : NOT_KNOWN;
		place->got_ns = now_ns;
	}
	errno = saved;
}

__attribute__((noinline)) void d9__lock_leaves(const void *lock, const void *real,
					       const void *caller)
{
	int saved = errno;
	struct d9__waited *place = find(lock);
	uint64_t now_ns, from_ns;
	struct used used;
	bool since_wait;

	if (!place)
		return;
	now_ns = d9__clock_mono_ns();
	from_ns = atomic_load_explicit(&place->since_ns, memory_order_relaxed);
	/* Figures of earlier waits, perhaps for another lock, are not of the newest one. */
	if (place->longest.at_ns <= atomic_load_explicit(&place->newest_ns, memory_order_relaxed))
		place->longest.held_ns = 0;
	since_wait = place->got_ns <= from_ns;
	if (!since_wait)
		from_ns = place->got_ns;
	if (now_ns > from_ns && now_ns - from_ns >= HELD_NS &&
	    now_ns - from_ns > place->longest.held_ns) {
		used = used_since(place, since_wait, now_ns - from_ns);
		place->longest.at_ns = now_ns;
		place->longest.held_ns = now_ns - from_ns;
		place->longest.cpu_ns = used.cpu_ns;
		place->longest.ready_ns = used.ready_ns;
		note_holder(&place->longest, real, caller);
	}
	place->got_ns = now_ns;
	place->getter = 0;
	errno = saved;
}

void d9__locks_fork_child(void)
{
	for (unsigned i = 0; i < WAITED; i++)
		atomic_store_explicit(&waited[i].word, 0, memory_order_relaxed);
	atomic_store_explicit(&d9__lock_waits, 0, memory_order_relaxed);
}
