/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: threads that run loops, their ids, and the lane groups they belong to. */

#ifndef D9_LOOP_WORKERS_H
#define D9_LOOP_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/slot.h"

#define D9__WORKERS_MAX     64u
#define D9__WORKER_NAME_MAX 64

/*
 * An id for thread |tid| in group |name|: a freed one last held under that name, else one never
 * used, else the longest free one.  -1 if all are held; counted.
 * This thread follows whoever had it last: see d9__slot_follow(), also for |may_move|.
 */
int d9__workers_take(uint32_t tid, const char *name, bool may_move);

/* The name is that of |worker|'s thread: look now and then whether the thread got another one. */
void d9__workers_follow_thread(unsigned worker);

/* Do that.  On the flush thread, whose descriptors are its own. */
void d9__workers_look(uint64_t now_ns);

/* The thread of |worker| ends, and leaves its latest events at |left|. */
void d9__workers_release(unsigned worker, struct d9__left left);

/*
 * Bring the metadata `runtime.<name>` up to date, if ids were given out since.  Takes locks: not
 * under a loop library's.
 */
void d9__workers_publish(void);

/* Threads that got no id. */
uint64_t d9__workers_dropped(void);

void d9__workers_fork_prepare(void);
void d9__workers_fork_parent(void);

/* Every id is free and none was ever used: the child writes a trace of its own. */
void d9__workers_fork_child(void);

#endif /* D9_LOOP_WORKERS_H */
