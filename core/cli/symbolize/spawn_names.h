/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawn names: what `dial9 symbolize` makes of the texts in `spawn_loc`: "on_read @ accept_cb server.c:71" of
 * "server+0x1a2b0 @ server+0x9f04".  What was recorded goes into rows (analyze/spawn_texts.h), so that nothing is lost
 * and a later run begins with it.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/spawn_texts.h"
#include "analyze/table.h"
#include "symbol/row_batch.h"
#include "symbol/symbolizer.h"

/* A text of the segment, and what tasks with it were registered with. */
struct d9__spawn_place {
	uint32_t text; /* as it stands in the segment */
	uint64_t ns, callback, site; /* when it was met; addresses or 0 */
};

/* All zero is empty. */
struct d9__spawn_names {
	struct d9__texts texts;	 /* of all segments */
	struct d9__table meant;	 /* by the number of a name: number + 1 of the recorded text that it stands for */

	/* Of the segment at hand. */
	uint32_t segment;
	struct d9__spawn_texts before; /* what an earlier run wrote */
	struct d9__spawn_place *places;
	size_t n, max;
	struct d9__table by_text; /* number + 1 of a place */
	struct d9__table names;	  /* of texts as they stand by number: the text to write instead */
};

/* Take what |event| of the segment says.  0 or -ENOMEM. */
int d9__spawn_names_learn(struct d9__spawn_names *names, const struct d9_event *event);

/*
 * After the last event of the segment: find the names, and put a row into |rows| for each text that will not be the
 * recorded one; only for those that change if not |all|.  0 or -ENOMEM.
 */
int d9__spawn_names_find(struct d9__spawn_names *names, struct d9__symbolizer *symbolizer, bool all,
			 struct d9__row_batch *rows);

/* What to write instead of |text| of the segment; NULL: it stays.  Terminated. */
const char *d9__spawn_names_of(const struct d9__spawn_names *names, const char *text, size_t len);

/* The next segment begins. */
void d9__spawn_names_next(struct d9__spawn_names *names);

void d9__spawn_names_release(struct d9__spawn_names *names);
