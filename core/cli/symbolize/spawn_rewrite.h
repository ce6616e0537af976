/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawn rewrite: the frames of a segment once more, with other texts in `spawn_loc`.  A text is defined in its batch
 * beside the recorded one, under a number that nothing there has, and the event's four bytes that refer to the recorded
 * one refer to it; every other byte is copied.
 *
 *	err = d9__spawn_rewrite_open(&rewrite, path, names);
 *	while (!err && !rewrite.ended && !(err = d9__spawn_rewrite_next(&rewrite, until += n)))
 *		... rewrite.bytes ...
 *	d9__spawn_rewrite_release(&rewrite);
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "cli/raw_segment.h"
#include "cli/symbolize/spawn_names.h"

struct d9__spawn_rewrite {
	const struct d9__spawn_names *names; /* borrowed */
	struct d9__raw_segment segment;
	struct d9__frame frame; /* the next frame, if |waiting| */
	uint64_t at;		/* its offset */
	bool waiting;
	bool ended; /* there are no more */
	uint64_t first_id, next_id; /* of texts: in each batch; the next one in this */
	struct d9__table ids; /* of this batch: by recorded id, the number + 1 of the new one behind |first_id| */

	/* Frames, rewritten. */
	uint8_t *bytes;
	size_t len, capacity;
};

/* 0, -ENOMEM, or an error of reading.  Release in any case. */
int d9__spawn_rewrite_open(struct d9__spawn_rewrite *rewrite, const char *path, const struct d9__spawn_names *names);

/*
 * Put the frames that begin before |until|, an offset in the unpacked segment, and behind those of the call before, into
 * |bytes|, which may be none.  0, -ENOMEM, or an error of reading.
 */
int d9__spawn_rewrite_next(struct d9__spawn_rewrite *rewrite, uint64_t until);

void d9__spawn_rewrite_release(struct d9__spawn_rewrite *rewrite);
