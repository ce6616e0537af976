/* SPDX-License-Identifier: Apache-2.0 */
/* Recorder: the one of this process, for the other folders and for our adapters. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/export.h>
#include <dial9/recorder.h>

#include "base/options.h"
#include "ring/gate.h"

/* In the trace directory, "ERRNO SERVICE": why there is no recorder in a process that `dial9 record` began. */
#define D9__CAUSE_LINK ".cause"

/*
 * For attaching: start the recorder from the environment, unless this process has or had one.  Does
 * not wait for the trace directory; what is wrong with that shows in the recorder's state.  0, also if
 * recording is off; -ENOMEM or the error of pthread_create(3).
 */
D9_API int d9__recorder_ensure(void);

/* Do so before there is a loop; if there never is one, nothing is left of it.  In a constructor. */
D9_API void d9__recorder_open_early(void);

/*
 * Do so later: once the process has used |cpu_ns| of CPU time, at a call by the program in which a thread may be started.
 * Programs that start others and end have no thread of ours by then.  |prepare| (NULL: nothing) is called before, by one
 * thread.  Where two ask, the sooner counts.  In a constructor.
 */
D9_API void d9__recorder_open_later(void (*prepare)(void), uint64_t cpu_ns);

/* Start it now, whether it is due or not, if it is to be started later and this is such a call. */
void d9__recorder_begin(void);

/* Forked children record from their start on, and not only when a loop runs.  After the first start. */
D9_API void d9__recorder_follow_forks(void);

/* Work that the recorder does at the next good place. */
enum d9__pending {
	D9__PENDING_CHILD = 1, /* to start in a forked child whose parent was recording */
	D9__PENDING_START,     /* to start at all: d9__recorder_open_later() */
	D9__PENDING_THREAD,    /* to start its thread again, which d9__recorder_step_aside() has ended */
};
extern _Atomic(int) d9__recorder_pending;

/* Do it, if this is one, which a signal handler is not.  Keeps errno. */
void d9__recorder_do_pending(void);
void d9__recorder_clone_check(void);

/* Do it if there is any; for places where the program calls us and holds no lock. */
static inline void d9__recorder_pending_check(void)
{
	if (__builtin_expect(atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed), 0))
		d9__recorder_do_pending();
}

/*
 * Called where a child may begin to record: at a park, a poll, an event that the program records.  Starts a
 * recorder with the parent's options in a directory of its own, once.  Keeps errno.  In a copy that was made
 * without atfork handlers none can be started, as any lock may be held there for ever: the parent counts it.
 */
static inline void d9__recorder_child_check(void)
{
	/* relaxed: set before the child has a second thread */
	if (__builtin_expect(atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed), 0))
		d9__recorder_do_pending();
	else if (__builtin_expect(!d9__gate_word(), 0))
		d9__recorder_clone_check();
}

/*
 * The options in force; the defaults before the first start.  For sources and hooks that want their
 * intervals; not on hot paths.
 */
uint64_t d9__recorder_number(enum d9__option id);

/* Copies the text, "" if there is none.  |size| at least 1. */
void d9__recorder_text(enum d9__option id, char *buf, size_t size);

/* As d9_recorder_stop(), of a process that ends: what could not be written stays in the ring. */
void d9__recorder_end(uint32_t deadline_ms);

/* End it, and remove the ring if all of it is written.  For the process's end, or that of its recording. */
void d9__recorder_end_here(void);

/*
 * End it without a system call, on a thread that may make none: it looks again and again whether the flush thread
 * has ended, which is within a second.
 */
void d9__recorder_end_unasked(uint32_t deadline_ms);

#define D9__BEFORE_START_MAX 4

/*
 * Call |fn| before a thread of ours is started, and again at each try, without a lock.  For
 * constructors, one after the other; at most D9__BEFORE_START_MAX.
 */
void d9__recorder_on_start(void (*fn)(void));

/*
 * Before a call by the program that wants the process to be as it is without us: our threads end, and are started again at a
 * park, where an event is recorded, or at the end.  False: there are none, it would take more than a second, or the program has
 * made too many such calls; then they stay.  Keeps errno.
 */
bool d9__recorder_step_aside(void);

/* If they have: start them again, unless this is in a signal handler.  Keeps errno. */
void d9__recorder_step_in(void);

/* Start again, with the same options, after d9__recorder_end(). */
void d9__recorder_resume(void);

/*
 * Install the handlers that hold our locks over forks, once.  Before those of a library that takes ours under
 * locks of its own, because handlers that are installed later take their locks earlier.
 */
void d9__recorder_hold_over_forks(void);
