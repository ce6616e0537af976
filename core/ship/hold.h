/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold: the file .ship of a trace directory tells recorders that a shipper sends its segments.  A
 * shipper locks it, together with other shippers, and touches it each minute.  While it is held,
 * the shipper alone removes the files of dead processes (segment/namespace.h).
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/tree.h"

struct d9__held_directory {
	char *path; /* owned */
	int fd;	    /* of its .ship, locked; -1: not now */
	bool told;
};

/* All zero holds none. */
struct d9__ship_hold {
	struct d9__held_directory *items;
	size_t n;
	uint64_t touched_ns; /* CLOCK_MONOTONIC */
};

/*
 * Hold each directory with processes of |tree|, too.  A directory that cannot be held is told by
 * |tree|, once.
 */
void d9__ship_hold_take(struct d9__ship_hold *hold, const struct d9__ship_tree *tree);

/* Touch the files that are held, from time to time. */
void d9__ship_hold_touch(struct d9__ship_hold *hold, uint64_t now_ns);

void d9__ship_hold_release(struct d9__ship_hold *hold);
