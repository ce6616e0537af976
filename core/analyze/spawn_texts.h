/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawn texts: what a recorder wrote into `spawn_loc` where `dial9 symbolize` has put functions and lines, for viewers
 * that know no better.  The segment has both in a row of symbols at address 0, where nothing can be: `symbol_name` is the
 * text that stands in the events, `source_file` the recorded one.  Our own readers go by the recorded one, so that what
 * they tell is the same before and after.
 */

#pragma once

#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/texts.h"
#include "base/table.h"

/* All zero is empty. */
struct d9__spawn_texts {
	struct d9__texts texts;
	struct d9__table recorded; /* by segment and number of the text that stands there */
};

/* Take |event| if it is such a row.  0 or -ENOMEM. */
int d9__spawn_texts_learn(struct d9__spawn_texts *texts, const struct d9_event *event);

/* Return the text that was recorded for |text| of the segment |segment|: often the same. */
struct d9_text d9__spawn_texts_recorded(const struct d9__spawn_texts *texts, uint32_t segment, struct d9_text text);

void d9__spawn_texts_release(struct d9__spawn_texts *texts);
