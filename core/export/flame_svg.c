/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/flame_svg.h"
#include "export/stack_tree.h"
#include "export/svg_text.h"
#include "text/units.h"

/* flame_script.c has the first, LEFT and PER_CHAR, too. */
#define SCALE	  1180.0 /* of all samples */
#define LEFT	  10.0
#define PER_CHAR  6.7
#define ROW	  17.0
#define TOP	  72.0
#define BOTTOM	  12.0
#define MIN_WIDTH 0.1 /* less cannot be seen, and there are many */

struct drawing {
	FILE *out;
	const struct d9__profile *profile;
	const struct d9__stack_tree *tree;
	size_t depth;  /* of the deepest box; the root's is 0 */
	size_t narrow; /* frames that are not drawn */
	double height;
};

static double width_of(const struct drawing *d, const struct d9__tree_node *node)
{
	return (double)node->total / (double)d->tree->root.total * SCALE;
}

/* ---- boxes ---- */

/*
 * Write the class of a box.  A function's shade comes from its name, so it is the same everywhere.
 */
static void put_class(const struct drawing *d, const struct d9__tree_node *node)
{
	static const char *const classes[] = { [D9__TREE_KERNEL] = "k", [D9__TREE_UNKNOWN] = "u", [D9__TREE_NOTE] = "n",
					       [D9__TREE_GROUP] = "r" };
	unsigned shade = 0;

	if (!node->parent) {
		fputs("r", d->out);
	} else if (node->kind != D9__TREE_FUNCTION) {
		fputs(classes[node->kind], d->out);
	} else {
		for (const char *c = node->name; *c; c++)
			shade = shade * 31 + (unsigned char)*c;
		fprintf(d->out, "c%u", shade % 6);
	}
}

static void put_box(const struct drawing *d, const struct d9__tree_node *node)
{
	const char *name = node->parent ? node->name : "all";
	double x = LEFT + (double)node->at / (double)d->tree->root.total * SCALE, width = width_of(d, node);
	double y = d->height - BOTTOM - ROW * (double)(node->depth + 1);

	fputs("<g class=\"f ", d->out);
	put_class(d, node);
	fprintf(d->out, "\" data-x=\"%" PRIu64 "\" data-w=\"%" PRIu64 "\" data-d=\"%zu\"><title>", node->at,
		node->total, node->depth);
	d9__svg_text(d->out, name);
	fprintf(d->out, " (%s, %s)</title>", d9__profile_amount(d->profile, node->total).text,
		d9__units_percent((double)node->total / (double)d->tree->root.total).text);
	fprintf(d->out, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" rx=\"1\"/>", x, y, width, ROW - 1);
	fprintf(d->out, "<text x=\"%.2f\" y=\"%.0f\">", x + 2, y + 12);
	d9__svg_text_fitting(d->out, name, width > 4 ? (size_t)((width - 4) / PER_CHAR) : 0);
	fputs("</text></g>\n", d->out);
}

/*
 * Set the depth from the wide boxes alone: no box inside of a narrow one is drawn, because it is no
 * wider.
 */
static void measure(struct drawing *d)
{
	for (const struct d9__tree_node *node = &d->tree->root; node; node = d9__stack_tree_next(node)) {
		if (width_of(d, node) < MIN_WIDTH)
			d->narrow++;
		else if (node->depth > d->depth)
			d->depth = node->depth;
	}
	d->height = TOP + ROW * (double)(d->depth + 1) + BOTTOM;
}

static void put_boxes(const struct drawing *d)
{
	for (const struct d9__tree_node *node = &d->tree->root; node; node = d9__stack_tree_next(node))
		if (width_of(d, node) >= MIN_WIDTH)
			put_box(d, node);
}

/* ---- words ---- */

/* Which samples these are. */
static void put_what(const struct drawing *d)
{
	const struct d9__profile_filter *wanted = &d->profile->wanted;
	const struct d9__profile_kind_facts *facts = d->profile->facts;
	const char *program = d9__metadata_value(&d->profile->analysis.metadata, "program");

	if (facts->unit == D9__PROFILE_SAMPLES)
		fprintf(d->out, "%s %s sample%s", d9__units_count(d->tree->root.total).text, facts->title,
			d->tree->root.total == 1 ? "" : "s");
	else
		fprintf(d->out, "%s %s", d9__profile_amount(d->profile, d->tree->root.total).text, facts->title);
	if (program) {
		fputs(" of ", d->out);
		d9__svg_text(d->out, program);
	}
	if (wanted->callback) {
		fputs(", in ", d->out);
		d9__svg_text(d->out, wanted->callback);
	}
	if (wanted->span) {
		fputs(", in span ", d->out);
		d9__svg_text(d->out, wanted->span);
	}
	if (wanted->loop) {
		fputs(", in loop ", d->out);
		d9__svg_text(d->out, wanted->loop);
	}
	if (wanted->has_worker)
		fprintf(d->out, ", worker %" PRIu64, wanted->worker);
	if (wanted->from_ns)
		fprintf(d->out, ", from %s", d9__units_offset(0, wanted->from_ns).text);
	if (wanted->to_ns != UINT64_MAX)
		fprintf(d->out, ", to %s", d9__units_offset(0, wanted->to_ns).text);
}

static void put_count(const struct drawing *d, const char **between, uint64_t n, const char *what)
{
	if (!n)
		return;
	fprintf(d->out, "%s%s %s", *between,
		d->profile->facts->unit == D9__PROFILE_SAMPLES ? d9__units_count(n).text
							       : d9__profile_amount(d->profile, n).text,
		what);
	*between = "; ";
}

/* Write the samples that the picture does not show. */
static void put_missing(const struct drawing *d)
{
	const char *between = "";
	char share[128];

	d9__profile_share(d->profile, share, sizeof(share));
	if (share[0]) {
		fputs(share, d->out);
		between = "; ";
	}
	put_count(d, &between, d->tree->with_unknown, "with functions without a name (grey)");
	put_count(d, &between, d->tree->truncated, "without their outer frames ([cut stack])");
	put_count(d, &between, d->tree->without, "without a stack");
	if (d->narrow)
		fprintf(d->out, "%s%s frames too narrow to draw", between, d9__units_count(d->narrow).text);
}

static void put_head(const struct drawing *d)
{
	fprintf(d->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 %.0f\" width=\"100%%\">\n<title>",
		d->height);
	put_what(d);
	fprintf(d->out, "</title>\n<style>\n%s</style>\n<text class=\"h\" x=\"10\" y=\"24\">", d9__flame_style);
	put_what(d);
	fputs("</text>\n<text class=\"s\" x=\"10\" y=\"44\">", d->out);
	put_missing(d);
	fputs("</text>\n<text class=\"b\" id=\"search\" x=\"10\" y=\"62\">Search</text>"
	      "<text class=\"b\" id=\"reset\" x=\"70\" y=\"62\" style=\"display: none\">Reset zoom</text>"
	      "<text id=\"found\" x=\"150\" y=\"62\"></text>\n",
	      d->out);
}

int d9__flame_svg(struct d9__profile *profile, FILE *out)
{
	struct d9__stack_tree tree = { 0 };
	struct drawing d = { .out = out, .profile = profile, .tree = &tree };
	int err = d9__stack_tree_make(&tree, profile);

	if (!err) {
		measure(&d);
		put_head(&d);
		put_boxes(&d);
		fprintf(out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", d9__flame_script);
	}
	d9__stack_tree_release(&tree);
	return err;
}
