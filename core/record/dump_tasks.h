/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump tasks: a dump begins in the middle of tasks' lives.  Those whose beginning the ring no longer has
 * are announced at the dump's own.  Flush thread, unless a function says otherwise.
 */

#ifndef D9_RECORD_DUMP_TASKS_H
#define D9_RECORD_DUMP_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/chunk.h"
#include "record/emit_inl.h"
#include "record/walk.h"
#include "record/writer.h"

#define D9__DUMP_TASKS_MAX 65536u /* announced ones; those that were polled in the window go first */

/* A task that lives, and when it was polled last. */
typedef void (*d9__dump_task_fn)(void *arg, const struct d9__task_spawn *task, uint64_t polled_ns);

/* From now on |each| tells of all tasks whose spawn was written.  Once per process, any thread. */
void d9__dump_tasks_provide(void (*each)(d9__dump_task_fn fn, void *arg));

/* What the dump holds of its own.  All zero at first. */
struct d9__dump_tasks {
	uint64_t *spawned; /* ids */
	size_t n, capacity;
	uint64_t first_ns; /* of all its events; 0: it has none */
	bool failed;       /* out of memory */
};

/* |batch| will be in the dump, from behind what was taken of it. */
void d9__dump_tasks_look(struct d9__dump_tasks *tasks, struct d9__walker *walker,
			 const struct d9__batch *batch);

/*
 * Announce the others, at the time of the first event; nothing if there is none.  0, -ENOMEM or an error of
 * the writer.
 */
int d9__dump_tasks_announce(struct d9__dump_tasks *tasks, struct d9__writer *writer,
			    uint64_t from_ns, uint64_t now_ns);

void d9__dump_tasks_release(struct d9__dump_tasks *tasks);

#endif /* D9_RECORD_DUMP_TASKS_H */
