/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/json.h"
#include "cli/profile_export.h"
#include "cli/stack_tree.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

static void put_frames(struct d9__json *json, const struct d9__stack_tree *tree)
{
	d9__json_open(json, "shared", '{');
	d9__json_open(json, "frames", '[');
	for (size_t i = 0; i < tree->names.n; i++) {
		d9__json_open(json, NULL, '{');
		d9__json_text(json, "name", tree->names.items[i], tree->names.lens[i]);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

/* The frames of |node|, outermost first; |numbers| has room for them. */
static void put_sample(struct d9__json *json, const struct d9__tree_node *node, uint32_t *numbers)
{
	size_t n = 0;

	for (; node->parent; node = node->parent)
		numbers[n++] = node->number;
	d9__json_open(json, NULL, '[');
	while (n > 0)
		d9__json_u64(json, NULL, numbers[--n]);
	d9__json_close(json, ']');
}

static void put_profile(struct d9__json *json, const struct d9__stack_tree *tree, const struct d9__profile *profile,
			uint32_t *numbers)
{
	const struct d9__profile_kind_facts *facts = profile->facts;
	/* Time is what a sample on the CPU stands for, where the trace tells it. */
	uint64_t period_ns = profile->wanted.kind == D9__PROFILE_KIND_CPU ? profile->period_ns : 0;
	uint64_t each = period_ns ? period_ns : 1;
	static const char *const units[] = { [D9__PROFILE_SAMPLES] = "none",
					     [D9__PROFILE_MICROSECONDS] = "microseconds",
					     [D9__PROFILE_BYTES] = "bytes" };

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "type", "sampled");
	d9__json_string(json, "name", facts->what);
	d9__json_string(json, "unit", period_ns ? "nanoseconds" : units[facts->unit]);
	d9__json_u64(json, "startValue", 0);
	d9__json_u64(json, "endValue", each * tree->root.total);
	d9__json_open(json, "samples", '[');
	for (const struct d9__tree_node *node = &tree->root; node; node = d9__stack_tree_next(node))
		if (node->self)
			put_sample(json, node, numbers);
	d9__json_close(json, ']');
	d9__json_open(json, "weights", '[');
	for (const struct d9__tree_node *node = &tree->root; node; node = d9__stack_tree_next(node))
		if (node->self)
			d9__json_u64(json, NULL, each * node->self);
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

int d9__export_speedscope(struct d9__profile *profile, FILE *out)
{
	struct d9__json json = { .out = out };
	struct d9__stack_tree tree = { 0 };
	int err = d9__stack_tree_make(&tree, profile);
	/* No way is longer than all nodes in a row. */
	uint32_t *numbers = err ? NULL : calloc(tree.n + 1, sizeof(*numbers));

	if (numbers) {
		d9__json_open(&json, NULL, '{');
		d9__json_string(&json, "$schema", SCHEMA);
		d9__json_string(&json, "exporter", "dial9 " PACKAGE_VERSION);
		d9__json_u64(&json, "activeProfileIndex", 0);
		put_frames(&json, &tree);
		d9__json_open(&json, "profiles", '[');
		put_profile(&json, &tree, profile, numbers);
		d9__json_close(&json, ']');
		d9__json_close(&json, '}');
	}
	err = numbers ? 0 : -ENOMEM;
	free(numbers);
	d9__stack_tree_release(&tree);
	return err;
}
