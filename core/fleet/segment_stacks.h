/* SPDX-License-Identifier: Apache-2.0 */
/* Segment stacks: the stacks of a segment's samples by names, each once. */

#pragma once

#include "base/table.h"
#include "fleet/segment_rows.h"
#include "symbol/symbolizer.h"

#define D9__STACK_ID 17 /* with its end */

struct d9__named_stack {
	char id[D9__STACK_ID]; /* of |folded|: the same wherever that is the same */
	char *folded;	       /* names of functions, the outermost first, joined by ';' */
	char *leaf;	       /* the innermost */
	size_t frames;
};

/* All zero is empty. */
struct d9__segment_stacks {
	struct d9__named_stack *items; /* in order of their first samples */
	size_t n;
	struct d9__table by_id;
};

/*
 * |stacks| starts as all zero.  The samples of |rows| have the numbers of |items| afterwards, and equal ones are one row.  0 or
 * -ENOMEM; release in both cases.
 */
int d9__segment_stacks_make(struct d9__segment_stacks *stacks, struct d9__segment_rows *rows, struct d9__symbolizer *symbols);
void d9__segment_stacks_release(struct d9__segment_stacks *stacks);
