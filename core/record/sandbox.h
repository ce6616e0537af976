/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: a program that forbids itself system calls.
 *
 * A seccomp filter with an allow-list kills the thread, or the process, that makes a call which the
 * program's author did not foresee, and no author foresees those of a recorder.  So from the moment at
 * which a thread gets a filter, no thread but the recorder's own makes a system call for us: callbacks are
 * recorded into the memory that is there, the flush thread, which has no filter, writes it, and what needs a
 * call is left out: readings of CPU time, new threads, new loops, a recorder that was not started before.
 *
 * A thread that enters strict mode, or may not read the processor's counter any more (PR_SET_TSC), with which the vDSO's
 * clock_gettime() reads the time, is done with: what is open in it ends before, and it records nothing more.  The others
 * go on.
 *
 * There is no way to ask whether a thread has a filter that could not itself be forbidden; therefore the
 * preload library notices the call that makes one.
 */

#pragma once

#include <stdbool.h>

#include <dial9/export.h>

#include "base/sandbox.h"

/* Call |fn| on a thread that is about to get a filter, for what has to be made before.  At most one function. */
void d9__sandbox_on_enter(void (*fn)(void));

/* Call |fn| on a thread that is barred, or with false not any more.  At most one function. */
void d9__sandbox_on_bar(void (*fn)(bool barred));

/*
 * The calling thread is about to lose the processor's counter, or with |calls| all its system calls but few: it is done with.
 * True if it was not before; then d9__sandbox_unbar() undoes it.
 */
D9_API bool d9__sandbox_bar(bool calls);

/* The calling thread may record again, if it was barred because of the processor's counter, or was not in the end. */
D9_API void d9__sandbox_unbar(void);

/*
 * The calling thread is about to get a filter, or with |all| every thread of the process, ours included:
 * then the recorder ends here, and writes all that it has.  A thread that has a filter already waits for that
 * without a system call.
 */
D9_API void d9__sandbox_enter(bool all);

/* The filter of the latest d9__sandbox_enter() was refused: recording goes on, unless a thread had one before. */
D9_API void d9__sandbox_refused(void);
