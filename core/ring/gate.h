/* SPDX-License-Identifier: Apache-2.0 */
/* Gate: one word that says which groups of events are recorded now. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <dial9/export.h>

#include "base/sanitized.h"

enum d9__gate_bit {
	D9__GATE_LOOP = 1,  /* polls, parks, loop entry and exit */
	D9__GATE_TASK = 2,  /* spawn, terminate */
	D9__GATE_WAKE = 4,  /* wakes */
	D9__GATE_EVENT = 8, /* the program's own events and spans */
	D9__GATE_ALL = 15,
	/* Facts that are looked at besides.  Neither bit is ever set alone. */
	D9__GATE_ARM = 16,    /* where tasks are armed */
	D9__GATE_LISTEN = 32, /* which descriptors they watch */
};

/*
 * Never NULL: a static zero word until d9__gate_init().  Then a word on a page of its own, never 0 but
 * where the kernel zeroed it, as it does in every forked child, so that a child is silent from its first
 * instruction even where no atfork handler runs.  Exported, so that adapters ask without
 * a call.
 */
extern D9_API _Atomic(uint32_t) *_Atomic d9__gate;

/*
 * The bits, and above them a number that grows each time the gate is opened: who finds another
 * one than at his latest record knows that recording was off meanwhile.
 * Relaxed: pairs with nothing; a switch may be seen one event late.
 */
static inline uint32_t d9__gate_word(void)
{
	D9__TSAN_ACQUIRE(&d9__gate);
	return atomic_load_explicit(atomic_load_explicit(&d9__gate, memory_order_relaxed),
				    memory_order_relaxed);
}

static inline uint32_t d9__gate_bits(void)
{
	return d9__gate_word() & D9__GATE_ALL;
}

/* Is any of |bits| recorded?  The first thing every hook asks. */
static inline bool d9__gate_open(uint32_t bits)
{
	return __builtin_expect((d9__gate_word() & bits) != 0, 1);
}

/* Is the arming of tasks looked at? */
static inline bool d9__gate_arms(void)
{
	return __builtin_expect(d9__gate_word() & (D9__GATE_ARM | D9__GATE_LISTEN), 0);
}

/*
 * Which log lines are events: enum d9_log_bridge, as the recorder was started with; -1 before the first
 * start.  Behind the gate: it says how much, not whether.
 */
extern _Atomic(int) d9__log_bridge;

/*
 * Allocate the page; the gate stays closed.  Idempotent.  0 or -ENOMEM.  Where the kernel has no
 * MADV_WIPEONFORK the atfork handler has to close the gate in the child.
 */
int d9__gate_init(void);

/*
 * False in a process that was copied without atfork handlers, by a bare clone() or _Fork(), as the kernel
 * wiped the page and the gate was not set since: thread state, slots and ring are the parent's.
 */
bool d9__gate_is_ours(void);

/* Once true in each such process: then its gate says so no more, and stays closed. */
bool d9__gate_disown(void);

/*
 * Set by the recorder when it starts and when it has ended.  Read without its lock, by functions
 * that must not wait for that.  |d9__gate_owner| is the process that it was started in, because a
 * raw clone() of that runs no atfork handler.
 */
extern _Atomic(bool) d9__gate_running;
extern _Atomic(pid_t) d9__gate_owner;

/* True while a recorder runs that was started in this process. */
bool d9__gate_has_recorder(void);

/* Record exactly the groups in |bits| from now on.  No effect before d9__gate_init(). */
void d9__gate_set(uint32_t bits);
