/* SPDX-License-Identifier: Apache-2.0 */
/* A segment with rows of symbols behind it, packed as it was. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/symbolize/spawn_names.h"
#include "symbol/row_batch.h"

/* Where the rows begin that were put behind a segment before. */
struct d9__symbolize_tail {
	bool found;		   /* false: there are none, or they cannot be cut off */
	uint64_t unpacked, stored; /* offsets of their batch; |stored| is that of its frame in a zstd segment */
};

/*
 * Find the last batch of the segment |path| if it has rows of time 0 only.  0, -ENOMEM, or an error of reading; then
 * there is no tail.
 */
int d9__symbolize_find_tail(const char *path, struct d9__symbolize_tail *tail);

/*
 * Write the segment |path| without its |tail|, with |names| in it and |rows|, one whole batch or
 * nothing, to |output|.  That may be the same file, and it appears when it is complete.  A sealed
 * zstd segment keeps its seek table.  Returns 0, -ENOTTY, -ENOMEM, or an error of reading or
 * writing.
 */
int d9__symbolize_write(const char *path, const struct d9__symbolize_tail *tail, const struct d9__spawn_names *names,
			const struct d9__row_batch *rows, const char *output);
