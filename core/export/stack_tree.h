/* SPDX-License-Identifier: Apache-2.0 */
/* Call tree: the stacks of a profile by the names of their frames, outermost first, inlined calls as frames of their own. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/texts.h"
#include "base/table.h"
#include "export/profile.h"

enum d9__tree_kind {
	D9__TREE_FUNCTION,
	D9__TREE_KERNEL,  /* a function of the kernel: its name ends in "_[k]" */
	D9__TREE_UNKNOWN, /* named by its place: "memcached+0x1a2b0" */
	D9__TREE_NOTE,	  /* no frame: names something that is missing, in brackets */
	D9__TREE_GROUP,	  /* no frame: the value that the stacks inside share, with --by */
};

struct d9__tree_node {
	const char *name; /* as the trace or a binary has it: shown.h; owned by the tree */
	enum d9__tree_kind kind;
	uint32_t id;	 /* 0: the root; others count from 1 */
	uint32_t number; /* of the name */
	uint64_t self;	 /* samples that end here */
	uint64_t total;	 /* and in what is called from here */
	uint64_t at;	 /* samples before its first, in the order of the tree */
	size_t depth;	 /* 0: the root */
	struct d9__tree_node *parent, *child, *next; /* children by name */
};

struct d9__stack_tree {
	struct d9__tree_node root; /* without a name */
	struct d9__tree_node **nodes; /* owned; parents before their children */
	size_t n;
	struct d9__table by_edge;
	struct d9__texts names;
	uint64_t truncated;   /* samples whose outer frames are missing */
	uint64_t without;     /* samples without a stack */
	uint64_t with_unknown; /* samples with a frame that is named by its place */
};

/* |tree| starts as all zero.  0 or -ENOMEM; release in both cases. */
int d9__stack_tree_make(struct d9__stack_tree *tree, struct d9__profile *profile);
void d9__stack_tree_release(struct d9__stack_tree *tree);

/* The node behind |node|, each before its children; begin with the root.  NULL at the end. */
const struct d9__tree_node *d9__stack_tree_next(const struct d9__tree_node *node);
