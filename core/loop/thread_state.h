/* SPDX-License-Identifier: Apache-2.0 */
/* Thread state: what this thread's loops are doing, and how much of it the trace knows. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <dial9/loop.h>

#include "loop/announce.h"
#include "loop/cpu_time.h"
#include "loop/early_wakes.h"
#include "loop/task_cache.h"
#include "loop/task_io.h"
#include "loop/waits.h"
#include "ring/slot.h"

#define D9__FRAMES_MAX	64u /* callbacks inside one another; deeper ones are not recorded */
#define D9__RUNS_MAX	64u /* loops inside one another; deeper ones are not told apart */
#define D9__HELD_MAX	256u /* wakes reported by one wait; later ones get stamps of their own */

/* Why d9_poll_begin() cannot take its short way.  Bits of d9__thread.odd. */
enum d9__odd {
	D9__ODD_NO_WORKER = 1, /* no id was free: nothing is recorded */
	D9__ODD_STOPPED = 2,   /* the trace does not say that the worker runs */
	D9__ODD_OPEN = 4,      /* a PollStart without its end is in the trace */
	D9__ODD_FRAMES = 8,    /* callbacks are running */
	D9__ODD_WIDE = 16,     /* the worker's id takes two bytes: short ways write one */
	D9__ODD_WAITS = 32,    /* D9__GATE_ARM: polls end and begin the waits of their tasks */
};

enum d9__stage {
	D9__STAGE_OUTSIDE,
	D9__STAGE_BACKEND, /* between park and unpark */
	D9__STAGE_FRESH,   /* behind an unpark, no callback ran yet */
	D9__STAGE_ROUND,   /* callbacks run */
};

/* A running callback.  Kept here, not on its stack, which a longjmp() may have given to others. */
struct d9__frame_running {
	uintptr_t address; /* of its struct d9_poll: deeper is lower */
	uint64_t task, key;
	uint64_t start_ns; /* of its first piece */
	uint32_t library, loc;
	uint32_t depth;
	uint32_t stamp; /* of the chunk with the beginning of its open piece */
	bool once; /* the task ends with it; false in frames that are not in use */
	/* The task ended while it ran: in this epoch, D9__ENDED_IN(); 0 in frames that are not in use. */
	uint8_t ended;
};

#define D9__ENDED_IN(epoch) ((uint8_t)((epoch) | 0x80))

struct d9__run {
	uintptr_t address; /* of its struct d9_loop_run */
	struct d9_loop *loop;
	uint32_t n_frames; /* callbacks that ran when it began; those above run in it */
};

/* Outside of all loops, for who goes round them by himself; see between.h. */
struct d9__between_rounds {
	uint64_t left_ns; /* when it left the outermost one; 0: it is in one, or nothing is known */
	/* Of those that were too short to be told one by one, since |since_ns|. */
	uint64_t since_ns, calls, total_ns, max_ns;
};

struct d9__thread {
	/* The members that every poll touches, in one cache line.  Owner thread only. */
	union {
		struct {
			uint8_t odd;	   /* enum d9__odd */
			uint8_t stage;	   /* enum d9__stage */
			uint16_t n_frames; /* signal handlers of this thread read the top one's task */
		};
		uint32_t mode; /* the three, see d9__mode() */
	};
	uint32_t gate; /* word of the gate at the latest record */
	uint32_t worker;
	uint32_t epoch;
	uint64_t head; /* d9__emit_plain_of() |worker| */
	uint64_t shared_ns; /* end of the latest poll, while it may start the next; else 0 */
	struct d9_loop *loop; /* latest to park or poll */
	uint64_t round_ns; /* latest unpark, or when a wait without timeout was over; 0: not known */
	/* A second piece that is due: the top frame's, from this moment; 0: none. */
	uint64_t resume_ns;
	uint32_t unpark_stamp; /* of the chunk with the Unpark of |round_ns|; 0: there is none */
	uint32_t found;	       /* D9__WOKEN() of a descriptor that the wait finds */

	/* Near the front: the first one's fields have short addresses. */
	struct d9__frame_running frames[D9__FRAMES_MAX];

	uint64_t park_ns; /* latest Park written */
	/* When the open poll ended, if that was while recording was off; else 0. */
	uint64_t late_end_ns;
	uint32_t spins;	  /* waits without timeout since then */
	bool parked;	  /* Park written, Unpark not */
	bool refused;	  /* no worker id was free: not asked for again before the next entry */
	uint32_t n_held, n_runs;
	uint16_t waits;   /* that could last; wraps around */
	uint64_t number, numbers_end; /* of tasks: the latest of its own, the last one */
	uint32_t tid;
	uintptr_t stack_low, stack_high; /* both 0: unknown */
	const void *outside; /* the program's function that the loop is in, no callback; read by the flush thread */
	struct d9__between_rounds between;
	struct d9__cpu_time cpu;
	struct d9__thread *next, **at; /* in the list of all; protected by its lock */

	struct d9__run runs[D9__RUNS_MAX];
	struct d9__task *held[D9__HELD_MAX]; /* what a wait finds, until it is over */

	struct d9__task_cache cache;

	/* That of the outermost callback, if it runs once and no table has it; see once.c. */
	struct d9__task solo;
	struct d9__spawn_spelling spellings[D9__SPAWN_SPELLINGS];
	struct d9__early_wakes early;
	struct d9__waits waiting;
	struct d9__task_io io;
};

_Static_assert(offsetof(struct d9__thread, frames) == 64, "one line for all that a poll touches");

/* Of d9__self: this thread has ended. */
#define D9__THREAD_GONE ((struct d9__thread *)1)

/* Grows in every forked child: what was written before is not in its trace. */
extern _Atomic(uint32_t) d9__loop_epoch;

/*
 * Make this thread's state and give it a worker id in the group of |loop|.  NULL without memory,
 * after the thread's exit, or, with the state kept, when no id is free.  Keeps errno.
 */
struct d9__thread *d9__thread_make(struct d9_loop *loop);

static inline bool d9__thread_exists(const struct d9__thread *thread)
{
	return (uintptr_t)thread > (uintptr_t)D9__THREAD_GONE;
}

/* This thread's state, or NULL.  Makes none. */
static inline struct d9__thread *d9__thread_peek(void)
{
	struct d9__thread *thread = d9__self.thread;

	return __builtin_expect(d9__thread_exists(thread), 1) ? thread : NULL;
}

/* This thread's state as a worker; NULL: it cannot record. */
static inline struct d9__thread *d9__thread_self(struct d9_loop *loop)
{
	struct d9__thread *thread = d9__self.thread;

	if (__builtin_expect(!d9__thread_exists(thread), 0))
		return d9__thread_make(loop);
	return thread;
}

static inline uint32_t d9__mode(uint8_t odd, uint8_t stage, uint16_t n_frames)
{
	const struct {
		uint8_t odd, stage;
		uint16_t n_frames;
	} parts = { odd, stage, n_frames };
	uint32_t mode;

	memcpy(&mode, &parts, sizeof(mode));
	return mode;
}

/* The task of the top frame, or 0. */
static inline uint64_t d9__thread_task(const struct d9__thread *thread)
{
	uint16_t n = __atomic_load_n(&thread->n_frames, __ATOMIC_RELAXED);

	return n ? thread->frames[n - 1].task : 0;
}

/* True if |address| is on this thread's own stack, as far as known. */
static inline bool d9__thread_on_stack(const struct d9__thread *thread, uintptr_t address)
{
	return address >= thread->stack_low && address < thread->stack_high;
}

/* The bounds of the calling thread's stack; untouched if they cannot be found.  Allocates, changes errno. */
void d9__thread_find_stack(uintptr_t *low, uintptr_t *high);

/* Call |fn| for every thread that has a state. */
void d9__threads_each(void (*fn)(void *arg, const struct d9__thread *thread), void *arg);

/* Call |fn| for the |n|-th of them, while none of them can end.  False: there are not so many. */
bool d9__threads_nth(size_t n, void (*fn)(void *arg, struct d9__thread *thread), void *arg);

/* Give the worker id back and free the state.  The trace knows already. */
void d9__thread_free(struct d9__thread *thread);

/* The forked thread is the child's only one and no worker yet. */
void d9__threads_fork_prepare(void);
void d9__threads_fork_parent(void);
void d9__threads_fork_child(void);
