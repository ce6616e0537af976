/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adapter: all that an adapter uses of the core besides <dial9/loop.h>, hook/ and what knows no
 * loop (base/).  Its functions stand where the rest of their concept does: in loop.c, poll.c,
 * wakes.c, callsites.c, logs.c and so on.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/export.h>
#include <dial9/loop.h>

#include "base/time.h"
#include "record/sandbox.h"
#include "record/source.h"
#include "ring/gate.h"
#include "segment/modules.h"

/* The latest time that an event of this thread has; 0: it has none.  Quick: no clock is asked. */
D9_API uint64_t d9__loop_latest_ns(void);

/* ---- loops and tasks ---- */

/*
 * d9_loop_register() in two halves, for adapters that have a lock which fork() takes.  The first
 * asks the dynamic loader, and must not be called under such a lock: a constructor that forks has
 * the loader, and fork() would wait for the lock.  The second may, and takes a |name| as the whole
 * does.  Both keep errno.
 */
D9_API int d9__loop_prepare(void);
D9_API int d9__loop_add(enum d9_library library, const void *address, const char *name,
			struct d9_loop **loop);

/* A pointer of the adapter's that goes with |loop|; NULL after its registration.  Quick. */
D9_API void d9__loop_set_companion(struct d9_loop *loop, void *companion);
D9_API void *d9__loop_companion(struct d9_loop *loop);

/*
 * Get the values with which the living task |key| was armed: |out->callsite|, |out->fd| and
 * |out->kind|.  False: there is none.  Quick.
 */
D9_API bool d9__task_armed(enum d9_library library, uint64_t key, struct d9_task *out);

/*
 * Arm |task| like d9_task_arm(), on the thread that runs |loop|: the trace knows the task from now
 * on.  Returns its number, or 0: this thread does not run the loop, nothing is recorded or there is
 * no memory.
 */
D9_API uint64_t d9__task_told(struct d9_loop *loop, const struct d9_task *task);

/*
 * This thread's loop calls |function| of the program, which is no callback; NULL: it has returned.
 * Quick.  A loop that stays in there is told with it.
 */
D9_API void d9__loop_outside(const void *function);

/*
 * A round of a loop that the program goes round by itself begins on this thread, and is over, where
 * d9_loop_enter() and d9_loop_leave() would be too much.  What lies between two of them is the
 * program's.  Inside a callback, or a run of a loop, they do nothing.  Quick.
 */
D9_API void d9__loop_round_begin(void);
D9_API void d9__loop_round_end(void);

/*
 * The task |key| of |loop| is armed by the call of |function| that returns to |caller|: it begins
 * to wait, and with it, if it |stays| armed, behind each of its polls.  |fd| is the descriptor that
 * it waits for; -1: none, or it was told by d9_task_arm().  Keeps errno; any lock but ours may be
 * held.  These two only where d9__gate_arms().
 */
D9_API void d9__task_waits(struct d9_loop *loop, uint64_t key, int fd, const void *function,
			   const void *caller, bool stays);

/* It is armed no longer. */
D9_API void d9__task_rests(enum d9_library library, uint64_t key);

/*
 * Redirect calls that block, if the recorder was asked to and they are not; else when it is.  The
 * trace has what came of it as source.blocking.  Keeps errno.  Not under a loop library's lock.  In
 * block/blocking.c.
 */
D9_API void d9__blocking_start(void);

#define D9__BLOCKING_NS D9__MS_NS /* calls that block are told from here on */

struct d9__lock_holder;

/* A call that is over. */
struct d9__blocked_call {
	const char *function; /* at most 31 bytes */
	const void *real;     /* the function that was called, ... */
	const void *caller;   /* ... and the address behind the call */
	int fd;		      /* below 0: none */
	uint64_t begin_ns, ns;
	const struct d9__lock_holder *holder; /* NULL: none is known */
};

/* Leave the call and its stack in the thread's side ring.  Keeps errno.  In block/call.c. */
D9_API void d9__block_tell(const struct d9__blocked_call *blocked);

/* ---- polls and wakes ----
 *
 * Nearly all are plain ones of known tasks, and those need no more of struct d9_poll than which
 * task runs.  All that describes the task is for the others, and is left to them.
 */

/*
 * Begin |poll|, if it is a plain one of a known task.  Of |task| only key, identity and callsite
 * are read, and no task that runs once is known.  False: nothing happened; fill the rest and call
 * d9__poll_begin_other().
 */
D9_API bool d9__poll_begin_known(struct d9_poll *poll);

/* Begin |poll| like d9__poll_begin_known(); it tells why, or since when, it is ready. */
D9_API bool d9__poll_begin_woken(struct d9_poll *poll);

/* Begin |poll|, which is hardly plain, like d9_poll_begin(). */
D9_API void d9__poll_begin_other(struct d9_poll *poll);

/*
 * End |poll| like d9_poll_end(), of a task that stays ready: its next wake has the stamp of this end.
 * Key, identity and callsite of |poll| have to be there still.
 */
D9_API void d9__poll_end_ready(struct d9_poll *poll);

/*
 * The short way of d9_poll_begin() and d9_poll_end() for tasks that end with their poll
 * (D9_TASK_RUNS_ONCE), see once.c.
 */
D9_API void d9__poll_begin_once(struct d9_poll *poll);
D9_API void d9__poll_end_once(struct d9_poll *poll);

/*
 * Wake like d9_wake() a task that this thread has polled and that still has |identity|, by the
 * running callback or by what the loop found ready.  False: nothing happened; ask d9_wake().  The
 * gate for wakes is open: ask that before you find out what these want to know.
 */
D9_API bool d9__wake_known(struct d9_loop *loop, uint64_t key, uint64_t identity);
D9_API bool d9__wake_known_fd(struct d9_loop *loop, uint64_t key, uint64_t identity);

/* ---- callbacks and their places ---- */

struct d9_callsite {
	struct d9_callsite *next; /* in its bucket; written once */
	const void *callback, *site;
	/* Handle of the text plus 1; 0: not made yet.  release/acquire with the text's making. */
	_Atomic(uint32_t) name;
	uint16_t kind; /* of its tasks, where that was told; written once */
	_Atomic(bool) gone; /* its module was unloaded: what is there later is another function */
};

/*
 * Intern like d9_callsite() without flags, for a task of |kind|, after which callbacks in no module
 * are called.  Callbacks that cannot be told apart, such as closures that a binding makes for one
 * call, have one callsite, without addresses, because thousands of them would fill the table.
 */
D9_API const struct d9_callsite *d9__callsite_of_kind(const void *callback, const void *site,
						      enum d9_task_kind kind);

/*
 * A loop library's own callback: what it is for, as far as its adapter knows; NULL: not known.
 * |role| is a literal and stands for the function's module and offset in the names of its
 * callsites.  Lock-free; any lock may be held.
 */
D9_API const char *d9__callback_role(const void *callback);
D9_API void d9__callback_role_set(const void *callback, const char *role);

/*
 * True if code may be at |address|: of a module, or code that has unwind tables of its own.  Not in
 * signal handlers.
 */
D9_API bool d9__callsite_is_code(const void *address);

/* ---- log lines of loop libraries, as events beside what the loops do ---- */

/* In the libraries' own words, the worst first. */
enum d9__log_level {
	D9__LOG_ERROR,
	D9__LOG_CRITICAL,
	D9__LOG_WARNING,
	D9__LOG_MESSAGE,
	D9__LOG_INFO,
	D9__LOG_DEBUG,
	D9__LOG_LEVELS
};

/*
 * Is any line wanted?  An adapter that is told no leaves the logging of its library alone.  Before
 * the first start DIAL9_LOG_BRIDGE is what is known.
 */
D9_API bool d9__logs_bridged(void);

/* True if lines of |level| are recorded now.  Two relaxed loads. */
D9_API bool d9__log_wanted(enum d9__log_level level);

/*
 * Record the line |text|, cut at 1 KiB.  |target|: what part of a program or library it comes from,
 * or NULL.  Beyond 1000 lines a second they are dropped, and counted in the metadata as
 * `log.dropped`.  Any thread; keeps errno; allocates and locks at the first line only.
 */
D9_API void d9__log_line(enum d9_library library, enum d9__log_level level, const char *target,
			 const char *text, size_t len);
