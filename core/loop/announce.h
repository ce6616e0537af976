/* SPDX-License-Identifier: Apache-2.0 */
/* Announce: what TaskSpawnEvent tells of a task; and all tasks that live, for a dump. */

#ifndef D9_LOOP_ANNOUNCE_H
#define D9_LOOP_ANNOUNCE_H

#include "loop/tasks.h"
#include "record/emit_inl.h"

#define D9__SPAWN_SPELLINGS 16u /* that a thread remembers */

/* |callsite| NULL: not known. */
struct d9__task_spawn d9__announce_of(const struct d9__task *task, const struct d9_callsite *callsite);

/*
 * How the spawn of a task is spelled behind its id, if it has no descriptor and no name, in a chunk that
 * knows the names of callsite and kind.
 */
struct d9__spawn_spelling {
	const struct d9_callsite *callsite;
	uint32_t made_of; /* kind, flags */
	uint32_t stamp;	  /* of the chunk whose wire ids |wire| spells; 0: none */
	uint32_t name;	  /* handle of the callsite's, whose wire id |wire| begins with */
	uint32_t len;
	uint8_t wire[40]; /* copied whole */
};

_Static_assert(sizeof(struct d9__spawn_spelling) == 64, "one line for each");

static inline uint32_t d9__spawn_spelling_of(const struct d9_task *task)
{
	return (uint32_t)task->kind | (uint32_t)task->flags << 16;
}

static inline struct d9__spawn_spelling *d9__spawn_spelling_at(struct d9__spawn_spelling *all,
							   const struct d9_callsite *callsite)
{
	return &all[((uintptr_t)callsite >> 4) % D9__SPAWN_SPELLINGS];
}

/* Does it spell the spawn of |task| in the open chunk of |slot|? */
static inline bool d9__spawn_spelling_fits(const struct d9__spawn_spelling *spelling,
					 const struct d9__slot *slot, const struct d9_task *task)
{
	return spelling->callsite == task->callsite && task->callsite && !task->name &&
	       task->fd < 0 && spelling->made_of == d9__spawn_spelling_of(task) &&
	       spelling->stamp == slot->stamp;
}

/* The spawn of |task|, which has a callsite, was just written to |slot|: remember how. */
void d9__spawn_spelling_learn(struct d9__spawn_spelling *all, const struct d9__slot *slot,
			    const struct d9_task *task);

/* Dumps ask us from now on.  Any thread. */
void d9__announce_start(void);

#endif /* D9_LOOP_ANNOUNCE_H */
