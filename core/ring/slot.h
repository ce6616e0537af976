/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slot: a writer's place in the ring file.  Which chunk is open, how much of it is published,
 * the clock's conversion, what the worker was last seen doing.  Outlives the thread that uses it.
 */

#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/clock.h"
#include "ring/ring_file.h"

#define D9__WORKER_NONE UINT32_C(0xffff) /* no event with a worker id was written yet */

/* The state of the worker after the last event: the entry state of the next chunk. */
enum d9__worker_state {
	D9__WORKER_UNKNOWN,
	D9__WORKER_RUNNING, /* after Unpark or PollEnd */
	D9__WORKER_POLLING, /* after PollStart */
	D9__WORKER_PARKED,  /* after Park */
};

enum d9__slot_state {
	D9__SLOT_FREE, /* never used */
	D9__SLOT_IDLE, /* its thread ended; may hold an open chunk for the next one */
	D9__SLOT_TAKEN,
	D9__SLOT_LEFT, /* idle; its open chunk ends with the events of a worker, which may be another's soon */
	D9__SLOT_CLAIMED, /* between idle and taken, or back: what a worker left in it is being handed over */
};

struct d9__slot {
	/*
	 * Fields that recording an event reads and writes.  Owner thread only, except |published|
	 * and |busy|.  A slot of zeros is valid: every event finds no room and takes the slow half.
	 */
	uint8_t *batch; /* first byte of the open batch, behind the chunk header */
	/*
	 * Bytes of the batch in the low half, its events in the high half; 0 = no open chunk.
	 * Written by the owner (release), read by flush, status and recovery (acquire).
	 */
	_Atomic(uint64_t) published;
	uint64_t time_base;  /* of the wire: deltas count from here; 0 in a new batch */
	uint64_t last_ns;    /* stamps do not go below */
	/* The conversion, see clock.h; volatile: the time is read before the ticks, see d9__slot_try_now(). */
	volatile uint64_t base_ticks;
	volatile uint64_t base_ns;
	uint32_t stamp;      /* of the open chunk: no other chunk of this process has it */
	uint32_t worker;     /* D9__WORKER_NONE: no event named one */
	uint32_t mult;
	uint8_t worker_state; /* enum d9__worker_state */
	uint8_t unused;
	_Atomic(uint8_t)
		busy;  /* an event is being written; seen by signal handlers of this thread */
	uint8_t clock; /* enum d9__clock_kind */

	/* Cold, |task| excepted.  Owner thread only, unless atomic. */
	_Atomic(uint64_t) owner; /* state in the high half, tid in the low half */
	_Atomic(uint64_t) open; /* serial in the high half, chunk number + 1 in the low; 0 = none */
	uint64_t task;		/* which one, in worker state POLLING */
	uint32_t *names; /* handle -> generation and wire id; types follow, see names.h */
	uint32_t serial;      /* of the newest chunk; counts per slot, from 1 */
	uint32_t clock_seq;   /* of the conversion that was copied */
	uint16_t generation;  /* of the open chunk; never 0 while one is open */
	uint8_t no_ticks;     /* the kernel forbids this thread to read ticks */
	uint8_t around;	     /* 1: its loop runs inside a callback, see open_calls.h */
	_Atomic(uint32_t) side; /* chunk number + 1 of the side ring; 0 = none yet */
	uint32_t side_open;  /* innermost record being made in the side ring; owner and handlers */
	uint32_t name_count; /* wire ids given out in the open chunk */
	/*
	 * How far the trace is with this slot: serial in the high half; bit 0 set if that chunk is in
	 * it to its end.  Written by the flush thread, read by recovery.
	 */
	_Atomic(uint64_t) written;
};

static_assert(offsetof(struct d9__slot, owner) == 64, "one line for all that an event touches");
static_assert(sizeof(struct d9__slot) == 128, "recovery and status know this size");
static_assert(D9__RING_SLOTS_AT + D9__SLOT_COUNT * sizeof(struct d9__slot) == D9__RING_LOSSES_AT,
	      "slots fill their range");

struct d9__thread;

/* The hot path's view of this thread: one look-up for both. */
struct __attribute__((aligned(16))) d9__self {
	/* NULL: none yet.  Below D9__SLOT_SENTINELS: it gets none any more. */
	struct d9__slot *slot;
	/* Kept by loop/.  NULL: nothing yet.  D9__THREAD_GONE: nothing any more. */
	struct d9__thread *thread;
};

extern __thread struct d9__self d9__self D9_TLS;

#define D9__SLOT_BUSY_TAKING ((struct d9__slot *)1) /* inside d9__slot_self_slow() */
#define D9__SLOT_EXITED	     ((struct d9__slot *)2) /* given back */
/* The thread may not read ticks, or make system calls: it records nothing and asks for no time, see record/sandbox.h. */
#define D9__SLOT_BARRED ((struct d9__slot *)3)
#define D9__SLOT_JAILED ((struct d9__slot *)4)
#define D9__SLOT_SENTINELS   ((uintptr_t)8)

struct d9__slot *d9__slot_self_slow(void);

static inline bool d9__slot_is_real(const struct d9__slot *slot)
{
	return __builtin_expect((uintptr_t)slot >= D9__SLOT_SENTINELS, 1);
}

static inline bool d9__slot_is_barred(const struct d9__slot *slot)
{
	return slot == D9__SLOT_BARRED || slot == D9__SLOT_JAILED;
}

/*
 * This thread's slot; takes one at the first call (a few us, once).  NULL: the event is lost and
 * was counted.  Keeps errno.  Ask the gate first.
 */
static inline struct d9__slot *d9__slot_self(void)
{
	struct d9__slot *slot = d9__self.slot;

	return d9__slot_is_real(slot) ? slot : d9__slot_self_slow();
}

/*
 * The stamp, where that takes no call.  False: nothing happened.
 *
 * A signal handler may replace the conversion at any point.  An old time with new ticks makes a stamp that
 * is too old, and the handler's own, in |last_ns|, refuses it; new with old would make one of the future.
 */
static inline __attribute__((always_inline)) bool d9__slot_try_now(struct d9__slot *slot,
								   uint64_t *out)
{
	uint64_t base_ns, dt, ns;

	if (__builtin_expect(slot->clock != D9__CLOCK_TICKS, 0))
		return false;
	base_ns = slot->base_ns;
	dt = d9__clock_ticks() - slot->base_ticks;
	if (__builtin_expect(dt >= atomic_load_explicit(&d9__clock_hot.valid, memory_order_relaxed),
			     0))
		return false;
	ns = base_ns + (dt * slot->mult >> D9__CLOCK_SHIFT);
	if (__builtin_expect(ns < slot->last_ns, 0))
		return false;
	*out = slot->last_ns = ns;
	return true;
}

/* Stamp: ns of CLOCK_MONOTONIC, never below this slot's previous stamp. */
static inline uint64_t d9__slot_now(struct d9__slot *slot)
{
	uint64_t ns;

	if (__builtin_expect(d9__slot_try_now(slot, &ns), 1))
		return ns;
	return d9__clock_slot_now_slow(slot);
}

static inline uint32_t d9__slot_index(const struct d9__slot *slot)
{
	return (uint32_t)(slot - d9__ring.slots);
}

/* Which task the worker was last seen running, or 0. */
static inline uint64_t d9__slot_task(const struct d9__slot *slot)
{
	return slot->worker_state == D9__WORKER_POLLING ? slot->task : 0;
}

/* Kernel id of the thread that took the slot last; 0 = none. */
static inline uint32_t d9__slot_tid(const struct d9__slot *slot)
{
	return (uint32_t)atomic_load_explicit(&slot->owner, memory_order_relaxed);
}

/*
 * Call |fn| on a thread that ends, before its slot is given back, while it can still record:
 * to close the worker.  At most 4 functions, registered before recording starts.  0 or -ENOSPC.
 */
int d9__slot_on_exit(void (*fn)(void));

/* Give this thread's slot back at once, as its end would.  The next event takes one again. */
void d9__slot_give_back(void);

/*
 * Where the latest events of a worker are whose thread ended: perhaps in the open chunk of its slot, which
 * the worker's next thread goes on with.  All zero: in none.
 */
struct d9__left {
	uint32_t slot; /* index + 1 */
	uint32_t tid;  /* of the thread that ended */
};

/* Of this thread, which is about to end. */
struct d9__left d9__slot_leave(void);

/*
 * This thread is to be |worker|, whose latest events are at |left|: the slot they are in becomes this
 * thread's, if |may_move| or if it has none yet; else they are handed over, so that the worker's
 * next ones come behind them.  False: another thread is about to, and until then |worker| may have no thread.
 */
bool d9__slot_follow(const struct d9__left *left, uint32_t worker, bool may_move);

/* Give this thread's slot back for good, as its end would; it is |mark| from now on, D9__SLOT_BARRED or D9__SLOT_JAILED. */
void d9__slot_bar(struct d9__slot *mark);

/* This thread, which is marked, may record again. */
void d9__slot_unbar(void);

/* Slots ever used: those that a reader has to look at are [0, high). */
uint32_t d9__slot_high(void);

/* The stamps of all threads around a silence of the whole process. */
struct d9__signs {
	uint64_t before_ns;
	uint64_t after_ns; /* UINT64_MAX: none */
};

/* Look at |now_ns| for a silence that ended after |since_ns|, or goes on.  Any thread. */
struct d9__signs d9__slot_signs(uint64_t since_ns, uint64_t now_ns);

/*
 * Return slots to the pool whose thread is gone without a destructor (raw exit), and that
 * recorded nothing for 10 s.  Flush thread, now and then: one system call per quiet slot.
 * Returns how many.
 */
unsigned d9__slot_reclaim_dead(uint64_t now_ns);

/*
 * Seal the open chunks of idle slots, so that flush can take and free them, while fewer than
 * |wanted_free| chunks are free.  Flush thread.  Returns how many.
 */
unsigned d9__slot_seal_idle(uint32_t wanted_free);

/* Ring was forgotten in a child: this thread has no slot, no pthread key value, no side ring. */
void d9__slot_forget_in_child(void);
