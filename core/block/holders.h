/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders: who has the locks that callbacks wait for.
 *
 * A callback that finds a lock taken notes it in a small table.  While something is in the table, a
 * thread that unlocks a lock in it says so there, and one that gets such a lock: what it had of the
 * wait is the time between.  The one that held it longest is the wait's culprit.  All but the
 * table's words is written and read by the thread that has the lock.
 *
 * A thread that is put aside while it has the lock is no culprit of the wait: for how long it was
 * ready without a CPU the kernel tells in a file, which is read where a wait begins, once in a
 * millisecond at most, and where the lock is let go after 0.1 ms or more.
 *
 * Outside of that an unlock costs one load and a branch.  A lock that other processes share may be
 * held by them: then its holder is not known; nor are readers, of whom a lock may have many at
 * once.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "block/call.h"
#include "drain/blocking_event.h"

struct d9__lock_holder {
	uint64_t at_ns;	  /* when it unlocked; 0: no thread did */
	uint64_t held_ns; /* of the wait */
	uint64_t cpu_ns;  /* of that, on the CPU; UINT64_MAX: not known */
	uint64_t ready_ns; /* and ready without one; UINT64_MAX: not known */
	uint64_t task;	  /* whose callback it was; 0: none */
	uint32_t tid, n;
	char name[16]; /* the thread's; "": not known */
	uint64_t pcs[D9__BLOCKING_FRAMES_MAX];
};

/* How many callbacks wait now, for locks in the table. */
extern _Atomic(uint32_t) d9__lock_waits;

struct d9__waited;

/* A wait of a callback for a lock.  |place|: its place in the table; NULL: there is none. */
struct d9__lock_wait {
	struct d9__waited *place;
	uint64_t begin_ns;
	bool has_readers; /* set by the caller: the lock may have many holders, of whom writers are
			     known */
};

/* The wait for |lock| begins at |begin_ns|, while thread |owner| has it; 0: that is not known. */
void d9__lock_wait_begin(struct d9__lock_wait *wait, const void *lock, uint64_t begin_ns,
			 uint32_t owner);

/* It is over: with |result| this thread has the lock, or has not.  Tell it as |call| if it was
 * long. */
void d9__lock_wait_end(const struct d9__lock_wait *wait, struct d9__blocked_call call, int result);

/* This thread has got |lock|, alone, or is about to unlock it, by |real|, for |caller|; and a
 * callback may wait for it. */
void d9__lock_gets(const void *lock);
void d9__lock_leaves(const void *lock, const void *real, const void *caller);

/* Whether that is to be asked: some callback waits for some lock. */
static inline bool d9__lock_is_asked(void)
{
	return __builtin_expect(atomic_load_explicit(&d9__lock_waits, memory_order_relaxed) != 0,
				0) &&
	       !d9__slot_is_barred(d9__self.slot);
}

/* Wait in |call_|, an expression, for |lock_|, which |owner_| has; told as |label_| by |real_|. The
 * call's result. */
#define D9__LOCK_WAIT(lock_, owner_, readers_, label_, real_, begin_ns_, call_)                    \
	({                                                                                         \
		struct d9__lock_wait wait_ = { .has_readers = (readers_) };                        \
		int result_;                                                                       \
                                                                                                   \
		d9__lock_wait_begin(&wait_, (lock_), (begin_ns_), (owner_));                       \
		result_ = (call_);                                                                 \
		d9__lock_wait_end(                                                                 \
			&wait_,                                                                    \
			(struct d9__blocked_call) { .function = (label_),                          \
						    .real = (const void *)(real_),                 \
						    .caller = __builtin_return_address(0),         \
						    .fd = -1,                                      \
						    .begin_ns = (begin_ns_) },                     \
			result_);                                                                  \
		result_;                                                                           \
	})

/* In a forked child, whose only thread waits for nothing. */
void d9__locks_fork_child(void);
