/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawn names: `dial9 symbolize` replaces texts in `spawn_loc`, such as "server+0x1a2b0 @
 * server+0x9f04" by "on_read @ accept_cb server.c:71".  The recorded texts go into rows
 * (analyze/spawn_texts.h), so that nothing is lost and a later run can begin with them.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/spawn_texts.h"
#include "analyze/texts.h"
#include "base/table.h"
#include "symbol/row_batch.h"
#include "symbol/symbolizer.h"

/* A text of the segment, and the first task that was registered with it. */
struct d9__spawn_place {
	uint32_t text;		     /* as recorded in the segment */
	uint64_t ns, callback, site; /* when it was met; addresses or 0 */
};

/* All zero is empty. */
struct d9__spawn_names {
	struct d9__texts texts;	 /* of all segments */
	struct d9__table meant;	 /* by the number of a name: number + 1 of its recorded text */

	/* Of the segment at hand. */
	uint32_t segment;
	struct d9__spawn_texts before; /* names of an earlier run */
	struct d9__spawn_place *places;
	size_t n;
	struct d9__table by_text; /* number + 1 of a place */
	struct d9__table names;	  /* of texts as they stand by number: the text to write instead */
};

/* Note the texts and addresses in |event|.  0 or -ENOMEM. */
int d9__spawn_names_learn(struct d9__spawn_names *names, const struct d9_event *event);

/*
 * After the last event of the segment: find the names, and put a row into |rows| for each text that will not be the
 * recorded one; only for those that change if not |all|.  0 or -ENOMEM.
 */
int d9__spawn_names_find(struct d9__spawn_names *names, struct d9__symbolizer *symbolizer, bool all,
			 struct d9__row_batch *rows);

/* Return the text to write instead of |text| of the segment; NULL: keep it.  Terminated. */
const char *d9__spawn_names_of(const struct d9__spawn_names *names, const char *text, size_t len);

/* The next segment begins. */
void d9__spawn_names_next(struct d9__spawn_names *names);

void d9__spawn_names_release(struct d9__spawn_names *names);
