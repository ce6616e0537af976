/* SPDX-License-Identifier: Apache-2.0 */
/* Row batch: answers as SymbolTableEntry rows, in a batch of their own to be put behind a segment. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/texts.h"
#include "symbol/symbolizer.h"

/* All zero is empty. */
struct d9__row_batch {
	uint8_t *bytes;
	size_t len, capacity;
	size_t rows;
	struct d9__texts pool;
	uint32_t n_pooled; /* of |pool|, that stand in the batch */
};

/*
 * Add what is at |address|: a row for each of |frames|, the real function first, at depth 0.  Of an address of which
 * nothing is known the row says where it lies, as readers expect that.  0 or -ENOMEM.
 */
int d9__row_batch_add(struct d9__row_batch *batch, uint64_t address, const struct d9__frames *frames);

/* Add a row which says that |name| stands in the segment in place of |recorded|: analyze/spawn_texts.h.  0 or -ENOMEM. */
int d9__row_batch_add_text(struct d9__row_batch *batch, const char *name, const char *recorded);

void d9__row_batch_release(struct d9__row_batch *batch);
