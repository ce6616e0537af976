/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump tasks: a dump begins in the middle of tasks' lives.  Those that are in it and began before are
 * announced at its own beginning.  Flush thread, unless a function says otherwise.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_set.h"
#include "ring/emit_inl.h"
#include "segment/walk.h"
#include "segment/writer.h"

#define D9__DUMP_TASKS_MAX 65536u /* announced ones; those that were polled in the window go first */

/* A task that lives, and when it was polled last. */
typedef void (*d9__dump_task_fn)(void *arg, const struct d9__task_spawn *task, uint64_t polled_ns);

/* From now on |each| tells of all tasks whose spawn was written.  Once per process, any thread. */
void d9__dump_tasks_provide(void (*each)(d9__dump_task_fn fn, void *arg));

/* A string of the batch that is looked at. */
struct d9__dump_text {
	const char *text;
	uint32_t len;
};

/* All zero at first. */
struct d9__dump_tasks {
	struct d9__task_spawn *items; /* to announce */
	size_t n, capacity;
	struct d9__id_set spawned; /* in the dump */
	struct d9__id_set used;    /* polled, woken or ended in it */
	struct d9__id_set missing; /* those of them of which nothing is known yet */
	uint64_t first_ns;         /* of all its events; 0: it has none */
	bool failed;               /* out of memory */

	/* Of the batch that is looked at. */
	struct d9__walker *walker;
	const uint8_t *from;
	struct d9__dump_text *texts;
	size_t n_texts, texts_capacity;
};

/*
 * First, and before all that is to be in the dump is known: list the tasks that live, those that were polled
 * since |from_ns| first.
 */
void d9__dump_tasks_list(struct d9__dump_tasks *tasks, uint64_t from_ns);

/* The first of the batches in [bytes, bytes + len) will be in the dump from |taken| on.  Its length. */
uint32_t d9__dump_tasks_look(struct d9__dump_tasks *tasks, struct d9__walker *walker, const uint8_t *bytes,
			     uint32_t taken, size_t len);

/* All was looked at.  How many tasks are in the dump of which neither it nor the list tells. */
uint64_t d9__dump_tasks_settle(struct d9__dump_tasks *tasks);

/*
 * The same batch as for d9__dump_tasks_look(), from before: tasks that are missing may have begun in it.
 * Its length, or 0 when none is missing any more.
 */
uint32_t d9__dump_tasks_search(struct d9__dump_tasks *tasks, struct d9__walker *walker, const uint8_t *bytes,
			       size_t len);

/* Announce what is listed, at |ns|.  0, -ENOMEM or an error of the writer. */
int d9__dump_tasks_announce(struct d9__dump_tasks *tasks, struct d9__writer *writer, uint64_t ns,
			    uint64_t now_ns);

void d9__dump_tasks_release(struct d9__dump_tasks *tasks);
