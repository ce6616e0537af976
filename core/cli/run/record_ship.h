/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 record --ship`: run a `dial9 ship` of the trace directory beside CMD, as a child of this
 * process in a process group of its own, so that CMD is not affected.  Once CMD has ended, another
 * one sends the rest, for a limited time.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run/record_result.h"

#define D9__RECORD_SHIP_TO 512

struct d9__record_ship {
	bool wanted;
	const char *url;      /* as given; NULL: the environment's */
	const char *more;     /* options of `dial9 ship`, as given; NULL: none */
	uint64_t deadline_ns; /* for the rest, once CMD has ended */

	/* Inside. */
	char to[D9__RECORD_SHIP_TO];
	char **words; /* of |more|; owned */
	const char *dir;
	pid_t pid; /* of the one that runs; 0: none does */
};

/* The numbers of segments and dumps of CMD's processes that were stored and that are left. */
struct d9__record_shipped {
	const char *to; /* NULL: --ship was not given */
	size_t stored, left, dumps_left;
	uint64_t bytes; /* stored */
};

/* True if `dial9 ship` takes all that it will be given; false: one line was printed. */
bool d9__record_ship_check(struct d9__record_ship *ship);

/* Start one for |dir|, whose text must stay; does nothing without --ship. */
void d9__record_ship_begin(struct d9__record_ship *ship, const char *dir);

/*
 * CMD has ended, and all that it left is sealed: send that until the deadline, or until a signal asks this process to end;
 * none runs any more then.  |out| tells of directories that are not in |before|.
 */
void d9__record_ship_end(struct d9__record_ship *ship, const struct d9__namespaces *before, struct d9__record_shipped *out);

/* End the one that runs, if one does, and forget the rest. */
void d9__record_ship_release(struct d9__record_ship *ship);
