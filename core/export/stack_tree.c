/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "export/profile_view.h"
#include "export/stack_tree.h"
#include "read/stack_role.h"

/* The bytes of a node: itself, a place in the list and places in a table that is half empty. */
#define NODE_BYTES (sizeof(struct d9__tree_node) + 2 * sizeof(void *) + 3 * sizeof(struct d9__table_entry))

static struct d9__tree_node *add_node(struct d9__stack_tree *tree, struct d9__tree_node *parent, uint32_t name,
				      enum d9__tree_kind kind, uint64_t edge)
{
	struct d9__tree_node *node =
		!d9__array_grow(tree->nodes, tree->n) ? NULL : calloc(1, sizeof(*node));

	if (!node || d9__table_add(&tree->by_edge, edge, node)) {
		free(node);
		return NULL;
	}
	node->parent = parent;
	node->number = name;
	node->name = tree->names.items[name];
	node->kind = kind;
	tree->nodes[tree->n++] = node;
	node->id = (uint32_t)tree->n;
	return node;
}

/*
 * Go from |*at| to its child called |name|, made at its first sight.  Beyond the budget |*at| stays: the frames
 * inside are left out, and the samples are still counted.  0 or -ENOMEM.
 */
static int descend(struct d9__stack_tree *tree, struct d9__tree_node **at, const char *name, enum d9__tree_kind kind)
{
	struct d9__tree_node *child;
	uint32_t number;
	uint64_t edge;

	if (d9__texts_number(&tree->names, name, strlen(name), &number))
		return -ENOMEM;
	edge = (uint64_t)(*at)->id << 32 | number;
	child = d9__table_find(&tree->by_edge, edge);
	if (!child) {
		if (!d9__budget_take(D9__KEPT_STACKS, NODE_BYTES))
			return 0;
		child = add_node(tree, *at, number, kind, edge);
	}
	if (!child)
		return -ENOMEM;
	*at = child;
	return 0;
}

/* ---- stacks ---- */

static int add_kernel_frame(struct d9__stack_tree *tree, struct d9__tree_node **at, const char *function)
{
	char *name;
	int err;

	if (asprintf(&name, "%s_[k]", function) < 0)
		return -ENOMEM;
	err = descend(tree, at, name, D9__TREE_KERNEL);
	free(name);
	return err;
}

/* The functions at work at address |i|, the real one before those that were inlined into it. */
static int add_address(struct d9__stack_tree *tree, struct d9__profile *profile,
		       const struct d9__profile_stack *stack, size_t i, struct d9__tree_node **at, bool *unknown)
{
	struct d9__frames frames;
	int err = 0;

	d9__profile_frames(profile, stack, i, &frames);
	*unknown = *unknown || !frames.known;
	for (size_t k = frames.n; k > 0 && !err; k--) {
		const char *function = frames.items[k - 1].function;

		function = function ? function : "[unknown]";
		if (d9__address_is_kernel(stack->addresses[i]))
			err = add_kernel_frame(tree, at, function);
		else
			err = descend(tree, at, function, frames.known ? D9__TREE_FUNCTION : D9__TREE_UNKNOWN);
	}
	return err;
}

/* Threads of one name are several. */
static const char *thread_of(const struct d9__profile_stack *stack, char *buf, size_t size)
{
	const struct d9__worker *worker = stack->worker;
	uint64_t tid = stack->tid ? stack->tid : worker ? worker->tid : 0;
	const char *name = stack->thread ? stack->thread : worker && worker->thread_name[0] ? worker->thread_name : "thread";

	if (!tid)
		return "[no thread]";
	snprintf(buf, size, "%s %" PRIu64, name, tid);
	return buf;
}

/* The outermost frame of --by; NULL: there is none. */
static const char *group_of(const struct d9__profile *profile, const struct d9__profile_stack *stack, char *buf, size_t size)
{
	switch (profile->wanted.by) {
	case D9__PROFILE_BY_CALLBACK:
		return stack->callback ? d9__callback_way(stack->callback, buf, size) : "[no callback]";
	case D9__PROFILE_BY_WORKER:
		if (!stack->worker)
			return "[no worker]";
		snprintf(buf, size, "worker %" PRIu64, stack->worker->id);
		return buf;
	case D9__PROFILE_BY_THREAD:
		return thread_of(stack, buf, size);
	case D9__PROFILE_BY_SPAN:
		return stack->span ? stack->span : "[no span]";
	default:
		return NULL;
	}
}

/* The name of a callback whose function has no frame. */
static const char *name_of(const struct d9__callback *callback, char *buf, size_t size)
{
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	snprintf(buf, size, "%.*s", (int)(len < size ? len : size - 1), name);
	return buf;
}

static int add_stack(struct d9__stack_tree *tree, struct d9__profile *profile, const struct d9__profile_stack *stack)
{
	struct d9__tree_node *at = &tree->root;
	char buf[1024];
	const char *group = group_of(profile, stack, buf, sizeof(buf));
	struct d9__profile_view view;
	bool unknown = false;
	int err = group ? descend(tree, &at, group, D9__TREE_GROUP) : 0;

	if (!err && stack->lonely &&
	    !(group && stack->callback && profile->wanted.by == D9__PROFILE_BY_CALLBACK))
		err = descend(tree, &at, d9__profile_lonely(stack, buf, sizeof(buf)),
			      D9__TREE_NOTE);
	if (err)
		return err;
	d9__profile_view(profile, stack, &view);
	if (!stack->n)
		err = descend(tree, &at, "[no stack]", D9__TREE_NOTE);
	else if (view.rooted && !view.named)
		err = descend(tree, &at, name_of(stack->callback, buf, sizeof(buf)),
			      D9__TREE_FUNCTION);
	else if (stack->truncated && !view.rooted)
		err = descend(tree, &at, "[cut stack]", D9__TREE_NOTE);
	for (size_t i = view.n; i > 0 && !err; i--)
		if (!view.hidden[i - 1])
			err = add_address(tree, profile, stack, i - 1, &at, &unknown);
	at->self += stack->samples;
	for (; at; at = at->parent)
		at->total += stack->samples;
	tree->without += stack->n ? 0 : stack->samples;
	tree->truncated += stack->n && stack->truncated && !view.rooted ? stack->samples : 0;
	tree->with_unknown += unknown ? stack->samples : 0;
	return err;
}

/* ---- order ---- */

static int compare_names(const void *left, const void *right)
{
	const struct d9__tree_node *a = *(const struct d9__tree_node *const *)left;
	const struct d9__tree_node *b = *(const struct d9__tree_node *const *)right;

	return strcmp(a->name, b->name);
}

/* Children are listed by name, so that two runs give one picture: each goes before those behind it in the alphabet. */
static int link_children(struct d9__stack_tree *tree)
{
	struct d9__tree_node **sorted = calloc(tree->n + 1, sizeof(struct d9__tree_node *));

	if (!sorted)
		return -ENOMEM;
	if (tree->n)
		memcpy(sorted, tree->nodes, tree->n * sizeof(sorted[0]));
	qsort(sorted, tree->n, sizeof(sorted[0]), compare_names);
	for (size_t i = tree->n; i > 0; i--) {
		struct d9__tree_node *node = sorted[i - 1];

		node->next = node->parent->child;
		node->parent->child = node;
	}
	free(sorted);
	return 0;
}

/*
 * Place children from the left of their parent on; the rest at its right is what the function
 * computed itself.
 */
static void place_children(struct d9__stack_tree *tree)
{
	for (const struct d9__tree_node *node = &tree->root; node; node = d9__stack_tree_next(node)) {
		uint64_t at = node->at;

		for (struct d9__tree_node *child = node->child; child; child = child->next) {
			child->at = at;
			child->depth = node->depth + 1;
			at += child->total;
		}
	}
}

int d9__stack_tree_make(struct d9__stack_tree *tree, struct d9__profile *profile)
{
	int err = 0;

	for (size_t i = 0; i < profile->n && !err; i++)
		err = add_stack(tree, profile, profile->stacks[i]);
	if (!err)
		err = link_children(tree);
	if (!err)
		place_children(tree);
	return err;
}

void d9__stack_tree_release(struct d9__stack_tree *tree)
{
	for (size_t i = 0; i < tree->n; i++)
		free(tree->nodes[i]);
	free(tree->nodes);
	d9__table_release(&tree->by_edge);
	d9__texts_release(&tree->names);
}

const struct d9__tree_node *d9__stack_tree_next(const struct d9__tree_node *node)
{
	if (node->child)
		return node->child;
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}
