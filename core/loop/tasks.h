/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: (library, key) -> task.
 *
 * 64 shards of chained hash tables.  Look-ups take no lock: entries and old bucket arrays are
 * never given back, chains change under the shard's spin lock, and a look-up that found nothing
 * while a chain changed is made again, in the end with the lock.  The number of entries is bounded.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/loop.h>

#define D9__TASKS_LIMIT (UINT32_C(1) << 20)

/* The wake for a task's next poll. */
enum d9__wake_state {
	D9__WAKE_NONE,
	D9__WAKE_FILLING, /* by one thread */
	D9__WAKE_HELD,    /* it is to be written with the poll */
	D9__WAKE_WRITTEN,
};

struct d9__task {
	/* One line: all that the usual poll and the usual wake touch. */
	_Alignas(64) _Atomic(struct d9__task *) next; /* in its bucket */
	_Atomic(uint64_t) key;
	_Atomic(uint64_t) id; /* as in the trace; 0: not in use */
	_Atomic(uint64_t) identity;
	/* Latest begin, or the wake of |woken|; who goes first when the table is full. */
	_Atomic(uint64_t) polled_ns;
	_Atomic(uint32_t) library;
	/*
	 * Epoch in which its spawn was written: a fork begins a new one.  0: not written.
	 * D9__TASK_STALE: ends at the next wake or poll.
	 */
	_Atomic(uint32_t) spawned;
	union {
		struct {
			/*
			 * Not 0: the loop's own thread has the wake for the next poll, see
			 * D9__WOKEN().  Stored by that thread only, so that it needs no locked
			 * instruction; another that wakes at the same moment may add a wake of its
			 * own.
			 */
			_Atomic(uint32_t) woken;
			/* enum d9__wake_state, reason in bits 8.., handed in bit 16 */
			_Atomic(uint32_t) wake;
		};
		_Atomic(uint64_t) wakes; /* both: 0 if there is none */
	};
	/* Written under the shard's lock; read by the loop's thread. */
	_Atomic(const struct d9_callsite *) callsite;

	/* These belong to the thread that moved |wake| from NONE to FILLING, until it moves on. */
	_Atomic(uint64_t) waker_task, waker_ns;
	_Atomic(uint32_t) waker_worker;

	/* As |callsite|. */
	_Atomic(uint32_t) name; /* handle */
	_Atomic(int32_t) fd;
	_Atomic(uint16_t) kind;
	_Atomic(uint16_t) flags;
	_Atomic(struct d9_loop *) loop;

	/* Protected by the shard's lock. */
	struct d9__task *loop_next, *loop_before;

	_Atomic(uint64_t) wait; /* since when it waits, and armed where; 0: not known.  See waits.c */
};

_Static_assert(sizeof(struct d9__task) == 128, "two lines for each");

/*
 * Of |woken|, for PollStart: the low half of the stamp of the chunk that was open, which worker did
 * it, and why.  Of that chunk is the beginning of the poll whose task is |waker_task|, if one woke.
 */
#define D9__WOKEN(stamp, worker, reason)                                                           \
	((uint32_t)(stamp) << 16 | ((worker) < 255 ? (worker) : 255) << 8 | (uint32_t)(reason))
#define D9__WOKEN_CHUNK(w)  ((w) >> 16)
#define D9__WOKEN_WORKER(w) ((w) >> 8 & 0xff)
#define D9__WOKEN_REASON(w) ((w)&0xf)
#define D9__WOKEN_BY_NONE   UINT32_C(0x40) /* no poll woke it */
#define D9__WOKEN_TOLD	    UINT32_C(0x80) /* by a WakeEvent */
#define D9__WOKEN_WHY(w)    ((w)&0xff)	   /* all but where */

#define D9__TASK_STALE    UINT32_C(0xffffffff)
#define D9__WAKE_HANDED   (UINT32_C(1) << 16)
#define D9__WAKE_STATE(w) ((w) & 0xff)
#define D9__WAKE_REASON(w) (((w) >> 8) & 0xff)

struct d9__thread;

/* Tasks that a call took out of the table and whose spawn was written: their end is to be written. */
struct d9__tasks_ended {
	uint64_t ids[3];
	unsigned n;
	/* Set by the caller: the |wake| of a new entry is to be FILLING, and for the caller to fill. */
	bool fills; /* false afterwards if there is no new entry */
};

/* Never blocks.  NULL if there is none. */
struct d9__task *d9__tasks_find(uint32_t library, uint64_t key);

/* True if it is still the one with |id|. */
static inline bool d9__task_is(const struct d9__task *task, uint64_t id)
{
	return atomic_load_explicit(&task->id, memory_order_acquire) == id;
}

/*
 * The entry for |key|, which takes over what |task| tells, its name excepted; a new number if there
 * was none, the old one is stale, or both have an identity and they differ.  |ended| is added to.
 * NULL for |task|: nothing but the key is known, and a lock of the loop library may be held, so the
 * shard's is not waited for.  0, -ENOMEM, or then -EAGAIN.
 */
int d9__tasks_obtain(struct d9_loop *loop, uint64_t key, const struct d9_task *task, uint32_t epoch,
		     struct d9__task **out, struct d9__tasks_ended *ended);

/* Take a wake out of the backlog of |loop|, because no poll will take it any more. */
void d9__task_unhand(struct d9__task *task, struct d9_loop *loop);

/* Take (library, key) out.  With |id| not 0 only if it is still that task.  May wait. */
void d9__tasks_remove(uint32_t library, uint64_t key, uint64_t id, uint32_t epoch,
		      struct d9__tasks_ended *ended);

/* Take out one task of |loop|.  False: it has none. */
bool d9__tasks_remove_one_of(struct d9_loop *loop, uint32_t epoch, struct d9__tasks_ended *ended);

/* An id for a task that the table does not get.  |thread| is the caller's, or NULL. */
uint64_t d9__tasks_new_id(struct d9__thread *thread, uint32_t library);

/* Call |fn| for every entry, in use or not; threads go on meanwhile, and may begin and end tasks.  May wait. */
void d9__tasks_each(void (*fn)(void *arg, const struct d9__task *task), void *arg);

/* How many |loop| has; exact only while no thread begins or ends one. */
uint32_t d9__tasks_of(const struct d9_loop *loop);

/*
 * Whether |loop| has so many tasks, some 200 of them, that it matters which they are.  A guess by one
 * shard: |task|'s, which is in use.
 */
bool d9__tasks_is_crowd(const struct d9_loop *loop, const struct d9__task *task);

/* How many gave way because the table was full, since the process began. */
uint64_t d9__tasks_evicted(void);

/* Tests only: bound the table; the count. */
void d9__tasks_set_limit(uint32_t limit);
uint32_t d9__tasks_count(void);

void d9__tasks_fork_prepare(void);
void d9__tasks_fork_parent(void);
void d9__tasks_fork_child(void);
