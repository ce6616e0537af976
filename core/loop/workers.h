/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: threads that run loops, their ids, and the lane groups they belong to. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/slot.h"

/*
 * Every thread that has a slot can be a worker.  Two ids stay free, because a wake tells its worker in one
 * byte: 254 is a thread pool there, 255 is none.
 */
#define D9__WORKERS_MAX     1024u
#define D9__WORKER_IS_ID(n) ((n) != 254u && (n) != 255u)

/* Ids from here on take two bytes on the wire: such a worker's polls go the long way, see thread_state.h. */
#define D9__WORKER_WIDE     0x80u

/*
 * Foreign readers expect ids below this one, so higher ones are given out only while so many threads are
 * workers at once.  Those go without the kernel's figures of their waits: each would hold a descriptor.
 */
#define D9__WORKERS_USUAL   64u

#define D9__WORKER_NAME_MAX 64

/*
 * An id for thread |tid| in group |name|: a freed one last held under that name, else one below
 * D9__WORKERS_USUAL that was never used, else the longest free one, else a higher one.  -1 if all are held.
 * This thread follows the one that had it last: see d9__slot_follow(), also for |may_move|.
 */
int d9__workers_take(uint32_t tid, const char *name, bool may_move);

/* The name is that of |worker|'s thread: look now and then whether the thread got another one. */
void d9__workers_follow_thread(unsigned worker);

/* Do that.  On the flush thread, whose descriptors are its own. */
void d9__workers_look(uint64_t now_ns);

/* Copy |worker|'s name to |out|; empty if it has none, or if a thread is about to change one.  Does not wait. */
void d9__workers_name(uint32_t worker, char *out, size_t size);

/* The thread of |worker| ends, and leaves its latest events at |left|. */
void d9__workers_release(unsigned worker, struct d9__left left);

/*
 * Bring the metadata `runtime.<name>` up to date, if ids were given out since.  Takes locks: not
 * under a loop library's.
 */
void d9__workers_publish(void);

/* Do d9__workers_publish(), and wait for another thread that is at it. */
void d9__workers_settle(void);

void d9__workers_fork_prepare(void);
void d9__workers_fork_parent(void);

/* Every id is free and none was ever used: the child writes a trace of its own. */
void d9__workers_fork_child(void);
