/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emit: the hot path.  No lock, allocation, system call or errno.  Callers asked the gate and
 * took the stamp; here: guard, room, name, gap, encode, publish.
 *
 * |ns| is a stamp of d9__slot_now(), or an earlier time (a wake at its due moment): a time below
 * the previous event's costs a reset.  |worker| is below 0xffff.  |depth| saturates at 255.
 * A poll or park inside another event of the same thread (a signal handler) is dropped and
 * counted; wakes, terminates and generic events go to the side ring.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/encoder.h"
#include "format/varint.h"
#include "format/wire.h"
#include "ring/chunk.h"
#include "ring/event_types.h"
#include "ring/names.h"
#include "ring/slot.h"

/* Room that enter() guarantees: the longest hot event behind a reset and a first name. */
#define D9__EMIT_ROOM  (128u + D9__POOL_ENTRY_FRAME_LEN + D9__NAME_BYTES)
#define D9__EMIT_LIMIT (D9__BATCH_MAX - D9__EMIT_ROOM)

/* Longest event that d9__emit_begin() takes, fields and names together. */
#define D9__EMIT_MAX 32768u

struct d9__task_spawn {
	uint64_t task;
	uint32_t loc; /* name handles */
	uint32_t kind;
	uint32_t name; /* D9__NAME_EMPTY: absent */
	int32_t fd;    /* below 0: absent */
	bool instrumented;
	uint64_t callback; /* addresses */
	uint64_t spawn_addr;
};

/* ---- cold halves, emit.c ---- */

/* The fields of TaskSpawnEvent at |p|; |loc|, |kind| and |name| are wire ids.  The place behind them. */
uint8_t *d9__task_spawn_put(uint8_t *p, const struct d9__task_spawn *spawn, uint32_t loc, uint32_t kind,
			    uint32_t name);

/* The caller holds the guard, and the open chunk may have no room: as d9__emit_enter(). */
bool d9__emit_enter_slow(struct d9__slot *slot, uint64_t ns);
/* The thread is interrupted in the middle of another event: counts this one as lost.  False. */
bool d9__emit_enter_busy(struct d9__slot *slot, uint64_t ns);

/* An event was lost that leaves the worker in |state|: what follows begins there. */
void d9__emit_missed(struct d9__slot *slot, uint32_t worker, enum d9__worker_state state,
		     uint64_t task);
uint32_t d9__emit_name_slow(struct d9__slot *slot, uint32_t handle);
uint8_t *d9__emit_reset_slow(struct d9__slot *slot, uint8_t *p, uint64_t ns);
void d9__emit_wake_side(struct d9__slot *slot, uint64_t ns, uint64_t waker, uint64_t woken,
			unsigned target_worker, unsigned reason);

/* False: lost and counted. */
bool d9__emit_task_spawn(struct d9__slot *slot, uint64_t ns, const struct d9__task_spawn *spawn);
void d9__emit_task_terminate(struct d9__slot *slot, uint64_t ns, uint64_t task);

/*
 * Any type: d9__emit_begin(), put the fields with the d9__wire_put functions of format/encoder.h,
 * d9__emit_end() with the first byte behind them.  At most |max_bytes| of fields.  NULL: lost
 * and counted; no end then.  Nothing else may be emitted through |slot| in between.
 */
uint8_t *d9__emit_begin(struct d9__slot *slot, uint32_t type_id, uint64_t ns, size_t max_bytes);

/* Begin an event of a type with pooled strings: the caller puts |ids[i]| (u32) for |handles[i]|. */
uint8_t *d9__emit_begin_named(struct d9__slot *slot, uint32_t type_id, uint64_t ns,
			      size_t max_bytes, const uint32_t *handles, uint32_t *ids, unsigned n);
void d9__emit_end(struct d9__slot *slot, uint8_t *end);

/*
 * Define a call stack, |n| addresses, the innermost first, for the event that follows at once and takes at most |more|
 * bytes, names included: |*id| is what to put (u32) for it.  False: lost and counted.  Flush thread, which no handler
 * of signals interrupts.
 */
bool d9__emit_stack(struct d9__slot *slot, uint64_t ns, const uint64_t *addresses, uint32_t n, uint32_t more,
		    uint32_t *id);

/* A call stack of an event, the innermost address first. */
struct d9__emitted_stack {
	const uint64_t *addresses;
	uint32_t n;
	uint32_t stamp, id; /* of the chunk that it was defined in last, and its number there; 0: in none */
};

/*
 * d9__emit_begin() for a type with a call stack, which is defined unless the open chunk has it: |stack->id| is what to
 * put (u32) for it.
 */
uint8_t *d9__emit_begin_stack(struct d9__slot *slot, uint32_t type_id, uint64_t ns, size_t max_bytes,
			      struct d9__emitted_stack *stack);

/* ---- the steps ---- */

static inline uint64_t d9__emit_published(const struct d9__slot *slot)
{
	return atomic_load_explicit(&slot->published, memory_order_relaxed);
}

/* Guard and room.  False: lost and counted. */
static inline bool d9__emit_enter(struct d9__slot *slot, uint64_t ns)
{
	if (__builtin_expect(atomic_load_explicit(&slot->busy, memory_order_relaxed) != 0, 0))
		return d9__emit_enter_busy(slot, ns);
	atomic_store_explicit(&slot->busy, 1, memory_order_relaxed);
	/* A handler that runs from here on sees |busy| before any byte of the event; one before may have used up the room. */
	atomic_signal_fence(memory_order_seq_cst);
	/* No open chunk is 0 bytes: wraps to above the limit. */
	if (__builtin_expect((uint32_t)d9__emit_published(slot) - 1u >= D9__EMIT_LIMIT, 0))
		return d9__emit_enter_slow(slot, ns);
	return true;
}

/* See that the event that is written next will be in the chunk that is open then.  False: it will
 * be lost. */
static inline bool d9__emit_make_room(struct d9__slot *slot, uint64_t ns)
{
	if (!d9__emit_enter(slot, ns))
		return false;
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
	return true;
}

/* The wire id of |handle| in the open chunk. */
static inline uint32_t d9__emit_name(struct d9__slot *slot, uint32_t handle)
{
	uint32_t word = slot->names[handle];

	if (__builtin_expect(word >> 16 != slot->generation, 0))
		return d9__emit_name_slow(slot, handle);
	return word & 0xffff;
}

/* For callers that keep to straight lines. */
#define D9__EMIT_PLAIN static inline __attribute__((always_inline))

D9__EMIT_PLAIN uint8_t *d9__emit_head_at(struct d9__slot *slot, uint8_t *p, uint16_t type_id,
					 uint64_t ns)
{
	uint64_t delta = ns - slot->time_base;

	/* Unsigned: a long gap and a time before the base are one comparison. */
	if (__builtin_expect(delta > D9__WIRE_DELTA_MAX, 0)) {
		p = d9__emit_reset_slow(slot, p, ns);
		delta = 0;
	}
	slot->time_base = ns;
	return d9__wire_put_event_head(p, type_id, (uint32_t)delta);
}

static inline uint8_t *d9__emit_head(struct d9__slot *slot, uint16_t type_id, uint64_t ns)
{
	return d9__emit_head_at(slot, slot->batch + (uint32_t)d9__emit_published(slot), type_id, ns);
}

#define D9__EMIT_PLAIN_HEAD_LEN 8u /* with the worker and a byte */

/* Return the part that heads of events of |worker| have in common. */
static inline uint64_t d9__emit_plain_of(uint32_t worker)
{
	return D9__WIRE_EVENT | (uint64_t)worker << 48;
}

/*
 * Put the head of an event whose first two fields are the worker and |byte|, with both: usually in
 * one store.  |of| is d9__emit_plain_of() the worker.  |sure|: a literal; it is known that one
 * store will do.
 */
D9__EMIT_PLAIN uint8_t *d9__put_head(struct d9__slot *slot, uint8_t *p, uint16_t type_id,
				     uint64_t ns, uint64_t of, uint8_t byte, bool sure)
{
	uint64_t delta = ns - slot->time_base;

	if (!sure && __builtin_expect(delta > D9__WIRE_DELTA_MAX || of >> 55, 0)) {
		p = d9__varint_put(d9__emit_head_at(slot, p, type_id, ns), of >> 48);
		*p++ = byte;
		return p;
	}
	slot->time_base = ns;
	return d9__wire_put_u64(p,
				of | (uint64_t)type_id << 8 | delta << 24 | (uint64_t)byte << 56);
}

static inline uint8_t *d9__emit_head_worker(struct d9__slot *slot, uint16_t type_id, uint64_t ns,
					    uint32_t worker, uint8_t byte)
{
	return d9__put_head(slot, slot->batch + (uint32_t)d9__emit_published(slot), type_id, ns,
			    d9__emit_plain_of(worker), byte, false);
}

/* Publish the event that ends before |end|: from here on it survives the process. */
static inline void d9__emit_leave(struct d9__slot *slot, const uint8_t *end)
{
	uint64_t events = d9__emit_published(slot) >> 32;
	uint64_t bytes = (uint64_t)(end - slot->batch);

	/* release: pairs with the acquire in d9__chunk_pin_open(), `dial9 status` and recovery */
	atomic_store_explicit(&slot->published, (events + 1) << 32 | bytes, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
}

static inline void d9__emit_worker(struct d9__slot *slot, uint32_t worker,
				   enum d9__worker_state state, uint64_t task)
{
	__atomic_store_n(&slot->worker, worker, __ATOMIC_RELAXED); /* the flush thread reads it */
	slot->worker_state = (uint8_t)state;
	if (state == D9__WORKER_POLLING)
		slot->task = task;
}

static inline uint8_t d9__emit_depth(unsigned depth)
{
	return depth > 255 ? 255 : (uint8_t)depth;
}

/* ---- records of polls, several in one go ----
 *
 * d9__emit_open(), then d9__put_wake(), d9__put_poll_start(), d9__put_poll_end(), each returning
 * the place behind it, then d9__emit_commit() or d9__emit_cancel().  Any times; together
 * D9__EMIT_ROOM bytes at most, and no names but those that the open chunk knows.
 */

/* The published word; 0: nothing happened, the usual way is to be taken. */
D9__EMIT_PLAIN uint64_t d9__emit_open_at(struct d9__slot *slot, uint64_t ns)
{
	uint64_t published;

	if (__builtin_expect(atomic_load_explicit(&slot->busy, memory_order_relaxed) != 0, 0))
		return 0;
	atomic_store_explicit(&slot->busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	published = d9__emit_published(slot);
	if (__builtin_expect((uint32_t)published - 1u < D9__EMIT_LIMIT &&
				     ns - slot->time_base <= D9__WIRE_DELTA_MAX,
			     1))
		return published;
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
	return 0;
}

/* As d9__emit_open_at(), which has also found that a head at |ns| fits into one store. */
D9__EMIT_PLAIN uint64_t d9__emit_open(struct d9__slot *slot)
{
	return d9__emit_open_at(slot, slot->time_base);
}

/* Where the first event goes. */
D9__EMIT_PLAIN uint8_t *d9__emit_place(const struct d9__slot *slot, uint64_t published)
{
	return slot->batch + (uint32_t)published;
}

/* Instead of the write. */
D9__EMIT_PLAIN void d9__emit_cancel(struct d9__slot *slot)
{
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
}

/* |events| of |n| bytes together. */
D9__EMIT_PLAIN void d9__emit_commit(struct d9__slot *slot, uint64_t published, uint64_t events,
				    uint64_t n)
{
	/* release: as in d9__emit_leave() */
	atomic_store_explicit(&slot->published, published + (events << 32 | n),
			      memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
}

/* How a task and its name are spelled: the last fields of a PollStart without a wake, as they stand
 * there. */
struct d9__emit_task {
	uint64_t id;
	union {
		uint8_t wire[16]; /* the id's varint, the wire id of the name, 0; copied whole */
		struct {
			uint8_t spelled[14];
			uint8_t library; /* for who remembers this */
			uint8_t start_len; /* of a PollStart from its head on */
		};
	};
};

/* The length of the id's varint. */
static inline uint32_t d9__emit_id_len(const struct d9__emit_task *task)
{
	return task->start_len - D9__EMIT_PLAIN_HEAD_LEN - 5u;
}

/* A PollStart.  |spelled| by reference: what is loaded when it is stored needs no register
 * meanwhile. */
struct d9__poll_start {
	uint64_t ns;
	uint64_t of; /* d9__emit_plain_of() its worker */
	unsigned depth;
	const struct d9__emit_task *spelled; /* NULL: by the two that follow */
	uint64_t task;
	uint32_t loc;  /* wire id */
	uint64_t wake; /* as FORMAT.md has it */
};

/* Put the event; return its length.  |sure|: as in d9__put_head(). */
D9__EMIT_PLAIN size_t d9__put_poll_start(struct d9__slot *slot, uint8_t *begin,
					 const struct d9__poll_start *start, bool sure)
{
	uint64_t wake = start->wake;
	uint8_t *p = d9__put_head(slot, begin, D9__EVENT_POLL_START, start->ns, start->of,
				  d9__emit_depth(start->depth), sure);
	size_t len;

	if (start->spelled) {
		memcpy(p, start->spelled->wire, sizeof(start->spelled->wire));
		len = (size_t)(p - begin) + start->spelled->start_len - D9__EMIT_PLAIN_HEAD_LEN;
	} else {
		p = d9__wire_put_u32(d9__varint_put(p, start->task), start->loc);
		len = (size_t)(p - begin) + 1;
	}
	p = begin + len - 1;
	for (; __builtin_expect(wake > 0x7f, 0); wake >>= 7, len++)
		*p++ = (uint8_t)(wake | 0x80);
	*p = (uint8_t)wake;
	return len;
}

D9__EMIT_PLAIN uint8_t *d9__put_poll_end(struct d9__slot *slot, uint8_t *p, uint64_t ns,
					 uint64_t of, bool sure)
{
	/* It has no byte behind the worker. */
	return d9__put_head(slot, p, D9__EVENT_POLL_END, ns, of, 0, sure) - 1;
}

D9__EMIT_PLAIN uint8_t *d9__put_wake(struct d9__slot *slot, uint8_t *p, uint64_t ns, uint64_t waker,
				     uint64_t woken, unsigned target_worker, unsigned reason)
{
	p = d9__varint_put(d9__emit_head_at(slot, p, D9__EVENT_WAKE, ns), waker);
	p = d9__varint_put(p, woken);
	*p++ = d9__emit_depth(target_worker);
	*p++ = (uint8_t)reason;
	return p;
}

/* ---- the hot events, one by one ---- */

/* |wake|: its wake, as FORMAT.md has it. */
static inline void d9__emit_poll_woken(struct d9__slot *slot, uint64_t ns, uint32_t worker,
				       unsigned depth, uint64_t task, uint32_t loc_name,
				       uint64_t wake)
{
	struct d9__poll_start start = { .ns = ns,
					.of = d9__emit_plain_of(worker),
					.depth = depth,
					.task = task,
					.wake = wake };
	uint8_t *begin;

	if (__builtin_expect(!d9__emit_enter(slot, ns), 0)) {
		d9__emit_missed(slot, worker, D9__WORKER_POLLING, task);
		return;
	}
	start.loc = d9__emit_name(slot, loc_name);
	d9__emit_worker(slot, worker, D9__WORKER_POLLING, task);
	begin = d9__emit_place(slot, d9__emit_published(slot));
	d9__emit_leave(slot, begin + d9__put_poll_start(slot, begin, &start, false));
}

static inline void d9__emit_poll_start(struct d9__slot *slot, uint64_t ns, uint32_t worker,
				       unsigned depth, uint64_t task, uint32_t loc_name)
{
	d9__emit_poll_woken(slot, ns, worker, depth, task, loc_name, 0);
}

static inline void d9__emit_poll_end(struct d9__slot *slot, uint64_t ns, uint32_t worker)
{
	if (__builtin_expect(!d9__emit_enter(slot, ns), 0)) {
		d9__emit_missed(slot, worker, D9__WORKER_RUNNING, 0);
		return;
	}
	d9__emit_worker(slot, worker, D9__WORKER_RUNNING, 0);
	d9__emit_leave(slot, d9__put_poll_end(slot, d9__emit_place(slot, d9__emit_published(slot)),
					      ns, d9__emit_plain_of(worker), false));
}

static inline void d9__emit_park(struct d9__slot *slot, uint64_t ns, uint32_t worker,
				 unsigned depth, uint64_t cpu_ns, uint32_t tid)
{
	uint8_t *p;

	if (__builtin_expect(!d9__emit_enter(slot, ns), 0)) {
		d9__emit_missed(slot, worker, D9__WORKER_PARKED, 0);
		return;
	}
	p = d9__emit_head_worker(slot, D9__EVENT_PARK, ns, worker, d9__emit_depth(depth));
	p = d9__varint_put(p, cpu_ns);
	p = d9__wire_put_u32(p, tid);
	d9__emit_worker(slot, worker, D9__WORKER_PARKED, 0);
	d9__emit_leave(slot, p);
}

static inline void d9__emit_unpark(struct d9__slot *slot, uint64_t ns, uint32_t worker,
				   unsigned depth, uint64_t cpu_ns, uint64_t sched_wait_ns,
				   uint32_t tid)
{
	uint8_t *p;

	if (__builtin_expect(!d9__emit_enter(slot, ns), 0)) {
		d9__emit_missed(slot, worker, D9__WORKER_RUNNING, 0);
		return;
	}
	p = d9__emit_head_worker(slot, D9__EVENT_UNPARK, ns, worker, d9__emit_depth(depth));
	p = d9__varint_put(p, cpu_ns);
	p = d9__varint_put(p, sched_wait_ns);
	p = d9__wire_put_u32(p, tid);
	d9__emit_worker(slot, worker, D9__WORKER_RUNNING, 0);
	d9__emit_leave(slot, p);
}

/* |target_worker|: the worker that issued the wake; 255 none.  |reason|: enum d9_wake_reason. */
static inline void d9__emit_wake(struct d9__slot *slot, uint64_t ns, uint64_t waker, uint64_t woken,
				 unsigned target_worker, unsigned reason)
{
	if (__builtin_expect(atomic_load_explicit(&slot->busy, memory_order_relaxed) != 0, 0)) {
		d9__emit_wake_side(slot, ns, waker, woken, target_worker, reason);
		return;
	}
	if (__builtin_expect(!d9__emit_enter(slot, ns), 0))
		return;
	d9__emit_leave(slot, d9__put_wake(slot, d9__emit_place(slot, d9__emit_published(slot)), ns,
					  waker, woken, target_worker, reason));
}
