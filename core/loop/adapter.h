/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on loops and tasks for our own adapters, beyond <dial9/loop.h>. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <dial9/export.h>
#include <dial9/loop.h>

/*
 * d9_loop_register() in two halves, for adapters that have a lock which fork() takes.  The first asks the dynamic loader, and
 * must not be called under such a lock: a constructor that forks has the loader, and fork() would wait for the lock.  The
 * second may, and takes a |name| as the whole does.  Both keep errno.
 */
D9_API int d9__loop_prepare(void);
D9_API int d9__loop_add(enum d9_library library, const void *address, const char *name, struct d9_loop **loop);

/* A pointer of the adapter's that goes with |loop|; NULL after its registration.  Quick. */
D9_API void d9__loop_set_companion(struct d9_loop *loop, void *companion);
D9_API void *d9__loop_companion(struct d9_loop *loop);

/*
 * Get the values with which the living task |key| was armed: |out->callsite|, |out->fd| and |out->kind|.  False:
 * there is none.  Quick.
 */
D9_API bool d9__task_armed(enum d9_library library, uint64_t key, struct d9_task *out);

/*
 * As d9_task_arm() on the thread that runs |loop|, and the trace knows the task from now on.  Its number, or 0: this
 * thread does not run the loop, nothing is recorded or there is no memory.
 */
D9_API uint64_t d9__task_told(struct d9_loop *loop, const struct d9_task *task);

/*
 * This thread's loop calls |function| of the program, which is no callback; NULL: it has returned.  Quick.  A loop that
 * stays in there is told with it.
 */
D9_API void d9__loop_outside(const void *function);

/*
 * The task |key| of |loop| is armed by the call of |function| that returns to |caller|: it begins to wait, and with it,
 * if it |stays| armed, behind each of its polls.  |fd| is the descriptor that it waits for; -1: none, or it was told by
 * d9_task_arm().  Keeps errno; any lock but ours may be held.  These two only where d9__gate_arms().
 */
D9_API void d9__task_waits(struct d9_loop *loop, uint64_t key, int fd, const void *function, const void *caller,
			   bool stays);

/* It is armed no longer. */
D9_API void d9__task_rests(enum d9_library library, uint64_t key);
