/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls and wakes for our adapters: nearly all are plain ones of known tasks, and those need no more of
 * struct d9_poll than who it is.  What the task is, is for the others, and is left to them.
 */

#pragma once

#include <stdbool.h>

#include <dial9/export.h>
#include <dial9/loop.h>

/*
 * Begin |poll|, if it is a plain one of a known task.  Of |task| only key, identity and callsite are
 * read, and no task that runs once is known.  False: nothing happened; fill the rest and call
 * d9__poll_begin_other().
 */
D9_API bool d9__poll_begin_known(struct d9_poll *poll);

/* The same of a poll that tells why, or since when, it is ready. */
D9_API bool d9__poll_begin_woken(struct d9_poll *poll);

/*
 * As d9_poll_end(), of a task that stays ready: its next wake has the stamp of this end.  Key, identity
 * and callsite of |poll| have to be there still.
 */
D9_API void d9__poll_end_ready(struct d9_poll *poll);

/*
 * As d9_wake() of a task that this thread has polled and that still has |identity|, by the running
 * callback or by what the loop found ready.  False: nothing happened; ask d9_wake().  The gate for wakes is
 * open: ask that before you find out what these want to know.
 */
D9_API bool d9__wake_known(struct d9_loop *loop, uint64_t key, uint64_t identity);
D9_API bool d9__wake_known_fd(struct d9_loop *loop, uint64_t key, uint64_t identity);

/* As d9_poll_begin(), of a poll that is hardly plain. */
D9_API void d9__poll_begin_other(struct d9_poll *poll);
