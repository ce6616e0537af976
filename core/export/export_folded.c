/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/profile_export.h"
#include "export/stack_tree.h"
#include "text/shown.h"

/* Write |name| without ';', which separates frames. */
static void put_name(FILE *out, const char *name)
{
	for (;;) {
		size_t len = strcspn(name, ";");

		d9__shown_write(out, name, len);
		if (!name[len])
			return;
		putc(':', out);
		name += len + 1;
	}
}

/* The way from the root to |node|; |names| has room for it. */
static void put_stack(FILE *out, const struct d9__tree_node *node, const char **names)
{
	size_t n = 0;

	for (const struct d9__tree_node *at = node; at->parent; at = at->parent)
		names[n++] = at->name;
	while (n > 0) {
		put_name(out, names[--n]);
		putc(n ? ';' : ' ', out);
	}
	fprintf(out, "%" PRIu64 "\n", node->self);
}

int d9__export_folded(struct d9__profile *profile, FILE *out)
{
	struct d9__stack_tree tree = { 0 };
	int err = d9__stack_tree_make(&tree, profile);
	/* No way is longer than all nodes in a row. */
	const char **names = err ? NULL : calloc(tree.n + 1, sizeof(const char *));

	if (!names)
		err = -ENOMEM;
	for (const struct d9__tree_node *node = err ? NULL : &tree.root; node; node = d9__stack_tree_next(node))
		if (node->self && node->parent)
			put_stack(out, node, names);
	free(names);
	d9__stack_tree_release(&tree);
	return err;
}
