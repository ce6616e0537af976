/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that the events of a segment hold, each once. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "base/table.h"
#include "symbol/symbol.h"
#include "symbol/symbolizer.h"

struct d9__address {
	uint64_t address;
	uint64_t ns; /* when it was met first */
	enum d9__address_role role;
	bool has_row; /* the segment says itself what is there */
	bool met;     /* and not only told of by a row */
};

/* All zero is empty. */
struct d9__address_set {
	struct d9__address *items; /* in the order in which they were met */
	size_t n;
	struct d9__table by_address; /* number + 1, as a pointer */
	size_t bytes;		     /* taken from the budget */
};

/*
 * Take what |event| holds: the frames of its stacks, what it was registered with, a place in `spawn_loc` that is a bare
 * address, the places that spans and helpers' runs name, also in modules that |symbolizer|, which may be NULL, has
 * learned; of a row of symbols, that it is there.  An address that was met in two roles has the one that a row can
 * tell best: behind a call, then at work, then a function's beginning.  0 or -ENOMEM.
 */
int d9__address_set_learn(struct d9__address_set *set, const struct d9__symbolizer *symbolizer,
			  const struct d9_event *event);

/* Ascending, from now on; nothing can be added. */
void d9__address_set_sort(struct d9__address_set *set);

void d9__address_set_release(struct d9__address_set *set);
