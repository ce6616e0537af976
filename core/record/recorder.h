/* SPDX-License-Identifier: Apache-2.0 */
/* Recorder: the one of this process, for the other folders and for our adapters. */

#ifndef D9_RECORD_RECORDER_H
#define D9_RECORD_RECORDER_H

#include <stdatomic.h>
#include <stdint.h>

#include <dial9/export.h>
#include <dial9/recorder.h>

#include "record/gate.h"
#include "record/options.h"

/* In the trace directory, "ERRNO SERVICE": why there is no recorder in a process that `dial9 record` began. */
#define D9__CAUSE_LINK ".cause"

/*
 * For attaching: start the recorder from the environment, unless this process has or had one.  Does
 * not wait for the trace directory; what is wrong with that shows in the recorder's state.  0, also if
 * recording is off; -ENOMEM or the error of pthread_create(3).
 */
D9_API int d9__recorder_ensure(void);

/* The same before there is a loop, and perhaps there never is: then nothing is left of it.  In a constructor. */
D9_API void d9__recorder_open_early(void);

/* Forked children record from their start on, and not only when a loop runs.  After the first start. */
D9_API void d9__recorder_follow_forks(void);

/* Not 0 in a forked child whose parent was recording, until it records itself. */
extern _Atomic(int) d9__child_pending;

void d9__recorder_child_start(void);
void d9__recorder_clone_check(void);

/*
 * Called where a child may begin to record: at a park, a poll, an event of the program's.  Starts a
 * recorder with the parent's options in a directory of its own, once.  Keeps errno.  In a copy that was made
 * without atfork handlers none can be started, as any lock may be held there for ever: the parent counts it.
 */
static inline void d9__recorder_child_check(void)
{
	/* relaxed: set before the child has a second thread */
	if (__builtin_expect(atomic_load_explicit(&d9__child_pending, memory_order_relaxed), 0))
		d9__recorder_child_start();
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

/* The same, and the ring goes if all of it is written.  For the process's end, or that of its recording. */
void d9__recorder_end_here(void);

/*
 * The same without a system call, by a thread that may make none: it looks again and again whether the flush thread
 * has ended, which is within a second.
 */
void d9__recorder_end_unasked(uint32_t deadline_ms);

/* Start again, with the same options, after d9__recorder_end(). */
void d9__recorder_resume(void);

/*
 * What holds our locks over forks, once.  Before anybody else's who takes ours under locks of its own:
 * handlers that are installed later take theirs earlier.
 */
void d9__recorder_hold_over_forks(void);

#endif /* D9_RECORD_RECORDER_H */
