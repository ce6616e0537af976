/* SPDX-License-Identifier: Apache-2.0 */
/* Announce: what TaskSpawnEvent tells of a task; and all tasks that live, for a dump. */

#pragma once

#include "loop/tasks.h"
#include "ring/emit_inl.h"

#define D9__SPAWN_SPELLINGS 16u /* that a thread remembers */

/* How the spawn of a task without a name is spelled behind its id. */
struct d9__spawn_spelling {
	const struct d9_callsite *callsite;
	uint32_t made_of; /* d9__spawn_made_of() */
	uint32_t stamp;	  /* of the chunk whose wire ids |wire| spells; 0: none */
	uint32_t name;	  /* handle of the callsite's, whose wire id |wire| begins with */
	uint32_t len;
	uint8_t wire[40]; /* of one without a descriptor; copied whole */
};

_Static_assert(sizeof(struct d9__spawn_spelling) == 64, "one line for each");

static inline uint32_t d9__spawn_made_of(uint16_t kind, uint16_t flags)
{
	return (uint32_t)kind | (uint32_t)flags << 16;
}

static inline struct d9__spawn_spelling *d9__spawn_spelling_at(struct d9__spawn_spelling *all,
							       const struct d9_callsite *callsite)
{
	return &all[((uintptr_t)callsite >> 4) % D9__SPAWN_SPELLINGS];
}

/* True if it spells the spawn of such a task in the open chunk of |slot|. */
static inline bool d9__spawn_spelling_fits(const struct d9__spawn_spelling *spelling,
					   const struct d9__slot *slot,
					   const struct d9_callsite *callsite, uint32_t made_of)
{
	return callsite && spelling->callsite == callsite && spelling->made_of == made_of &&
	       spelling->stamp == slot->stamp;
}

/* All fields of the spawn at |p|; the place behind them. */
static inline uint8_t *d9__spawn_spelling_put(const struct d9__spawn_spelling *spelling, uint8_t *p,
					      uint64_t id, int32_t fd)
{
	p = d9__varint_put(p, id);
	memcpy(p, spelling->wire, sizeof(spelling->wire));
	p += spelling->len;
	if (fd < 0)
		return p;
	/* Instead of "no descriptor, no name". */
	p[-2] = 1;
	p = d9__varint_put(p - 1, (uint64_t)fd);
	*p++ = 0;
	return p;
}

/* The wire id of the callsite's name. */
static inline uint32_t d9__spawn_spelling_loc(const struct d9__spawn_spelling *spelling)
{
	return d9__wire_get_u32(spelling->wire);
}

/* A spawn of such a task, |callsite| not NULL, was just written to |slot|: remember how. */
void d9__spawn_spelling_learn(struct d9__spawn_spelling *all, const struct d9__slot *slot,
			      const struct d9_callsite *callsite, uint32_t made_of);

/* Write the spawn of |task|.  |callsite| NULL: not known.  False: lost and counted. */
bool d9__announce(struct d9__spawn_spelling *all, struct d9__slot *slot, uint64_t ns,
		  const struct d9__task *task, const struct d9_callsite *callsite);

/* Dumps ask us from now on.  Any thread. */
void d9__announce_start(void);
