/* SPDX-License-Identifier: Apache-2.0 */
/* Announce: what TaskSpawnEvent tells of a task; and all tasks that live, for a dump. */

#ifndef D9_LOOP_ANNOUNCE_H
#define D9_LOOP_ANNOUNCE_H

#include "loop/tasks.h"
#include "record/emit_inl.h"

/* |callsite| NULL: not known. */
struct d9__task_spawn d9__announce_of(const struct d9__task *task, const struct d9_callsite *callsite);

/* Dumps ask us from now on.  Any thread. */
void d9__announce_start(void);

#endif /* D9_LOOP_ANNOUNCE_H */
