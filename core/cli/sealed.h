/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments that the operands of a command mean: in directories, alone, or listed by a dump's manifest. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "read/folder.h"

/* All zero is none. */
struct d9__sealed {
	struct d9__folder files;
	size_t n_active; /* left out: they are still being written */
	bool missing;	 /* a manifest lists a missing segment, and a line was printed */
};

/*
 * Add the segments of |path|: a segment, a manifest or a folder.  0, or the exit status of
 * |command| after a line on stderr.
 */
int d9__sealed_add(struct d9__sealed *sealed, const char *command, const char *path);

void d9__sealed_release(struct d9__sealed *sealed);
