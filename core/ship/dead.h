/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead: the files of processes whose recorder has ended.  A recorder's lock is released with it:
 * one whose lock is free in two looks with some time between them is dead.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/tree.h"

struct d9__dead_process {
	char *path;	   /* owned */
	uint64_t since_ns; /* CLOCK_MONOTONIC: its lock has been free */
	bool dead, seen;
};

/* All zero knows none. */
struct d9__ship_dead {
	struct d9__dead_process *items;
	size_t n;
	uint64_t evicted, evicted_bytes; /* so far */
};

/* Look at the processes of |tree|.  True if one is dead that was not in the look before. */
bool d9__ship_dead_look(struct d9__ship_dead *dead, const struct d9__ship_tree *tree, uint64_t now_ns, uint64_t gap_ns);

/*
 * Remove segments of dead processes, oldest first, until the rest has |max_bytes| at most.  Each is
 * written into the list of its process (shipped.h) before.  Returns the number of segments removed.
 */
size_t d9__ship_dead_make_room(struct d9__ship_dead *dead, const struct d9__ship_tree *tree, uint64_t max_bytes);

/*
 * Remove empty directories of dead processes: without a segment, a dump, a ring to recover, or
 * other programs' files.
 */
void d9__ship_dead_remove_empty(struct d9__ship_dead *dead, const struct d9__ship_tree *tree);

void d9__ship_dead_release(struct d9__ship_dead *dead);
