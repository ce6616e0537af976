/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/symbolize/symbolize_summary.h"
#include "symbol/debian_packages.h"
#include "symbol/symbol_rows.h"
#include "text/shown.h"
#include "text/units.h"

#define TOLD_MAX 20 /* modules, one by one */

/* ---- counting ---- */

static void add(struct d9__symbolize_counts *counts, const struct d9__frames *frames)
{
	const char *function = frames->items[frames->n - 1].function;

	counts->all++;
	counts->named += frames->known && function && !d9__symbol_rows_is_mere_place(function, strlen(function));
	counts->placed += frames->known && frames->items[0].path && frames->items[0].line;
}

static struct d9__symbolize_module *find_module(const struct d9__symbolize_summary *summary, const char *name)
{
	for (size_t i = 0; i < summary->n_modules; i++)
		if (summary->modules[i].name == name)
			return &summary->modules[i];
	return NULL;
}

int d9__symbolize_summary_count(struct d9__symbolize_summary *summary, const struct d9__frames *frames)
{
	const char *name = frames->items[frames->n - 1].module;
	struct d9__symbolize_module *module = name ? find_module(summary, name) : NULL;

	add(&summary->counts, frames);
	if (name && !module) {
		if (!d9__array_grow(summary->modules, summary->n_modules))
			return -ENOMEM;
		module = &summary->modules[summary->n_modules++];
		*module = (struct d9__symbolize_module){ .name = name };
	}
	if (module)
		add(&module->counts, frames);
	return 0;
}

void d9__symbolize_summary_leave_out(struct d9__symbolize_summary *summary, const struct d9_segment_info *info)
{
	summary->n_active += info->active;
	summary->n_cut += !info->active;
}

/* ---- telling ---- */

/* A binary of which some addresses have no name. */
struct lacking {
	const struct d9__binary *binary;
	struct d9__symbolize_counts counts;
	char *package; /* that would help, or NULL */
};

struct lackings {
	struct lacking *items;
	size_t n;
};

static void take_binary(struct lackings *lackings, const struct d9__symbolize_summary *summary,
			const struct d9__binary *binary)
{
	const struct d9__symbolize_module *module = find_module(summary, binary->name);

	/* Skip a binary with lines: its addresses without a name lie between functions. */
	if (!module || (binary->fate == D9__BINARY_FOUND && module->counts.placed) ||
	    module->counts.placed == module->counts.all)
		return;
	/* Processes of one program have the same. */
	for (size_t i = 0; i < lackings->n; i++)
		if (!strcmp(lackings->items[i].binary->path, binary->path) &&
		    !strcmp(lackings->items[i].binary->build_id, binary->build_id)) {
			lackings->items[i].counts.all += module->counts.all;
			lackings->items[i].counts.named += module->counts.named;
			lackings->items[i].counts.placed += module->counts.placed;
			return;
		}
	if (d9__array_grow(lackings->items, lackings->n))
		lackings->items[lackings->n++] =
			(struct lacking) { .binary = binary, .counts = module->counts };
}

/* The most addresses first. */
static int compare(const void *left, const void *right)
{
	const struct lacking *a = left, *b = right;

	if (a->counts.all != b->counts.all)
		return a->counts.all > b->counts.all ? -1 : 1;
	return strcmp(a->binary->path, b->binary->path);
}

static void find_packages(struct lackings *lackings)
{
	const char **files = calloc(lackings->n + 1, sizeof(*files));
	char **packages = calloc(lackings->n + 1, sizeof(*packages));

	for (size_t i = 0; files && i < lackings->n; i++)
		files[i] = lackings->items[i].binary->path;
	if (files && packages && !d9__debian_debug_packages(D9__DPKG_INFO, files, lackings->n, packages))
		for (size_t i = 0; i < lackings->n; i++)
			lackings->items[i].package = packages[i];
	free(files);
	free(packages);
}

static void print_refused(const char *path, FILE *out)
{
	fputs("no lines: ", out);
	d9__shown_write(out, path, strlen(path));
	fputs(" has another build-id, not used", out);
}

static void print_split(const char *path, FILE *out)
{
	fputs("no lines: ", out);
	d9__shown_write(out, path, strlen(path));
	fputs(" is not here", out);
}

/* Print the fault of a binary whose addresses have no names, and how to mend it. */
static void print_lacking(const struct lacking *lacking, FILE *out)
{
	const struct d9__binary *binary = lacking->binary;

	fputs("  ", out);
	d9__shown_write(out, binary->path, strlen(binary->path));
	fprintf(out, ", %s of %s without a name: ", d9__units_count(lacking->counts.all - lacking->counts.named).text,
		d9__units_count(lacking->counts.all).text);
	if (binary->fate == D9__BINARY_REFUSED)
		fprintf(out, "%s; put the recorded file or its debug file into --debug-dir",
			d9__binary_refusal(binary) + strlen("has "));
	else if (binary->fate == D9__BINARY_MISSING)
		fputs("not here; put its debug file into --debug-dir", out);
	else if (binary->fate == D9__BINARY_NO_FILE)
		fputs("no file", out);
	else if (binary->refused)
		print_refused(binary->refused, out);
	else if (binary->split)
		print_split(binary->split, out);
	else if (lacking->package)
		fprintf(out, "no lines; apt install %s", lacking->package);
	else
		fputs("no lines: it was built without -g, or its debug file is missing", out);
	putc('\n', out);
}

static void print_left_out(const struct d9__symbolize_summary *summary, FILE *out)
{
	if (summary->n_active)
		fprintf(out, "%s still being written, left as %s; dial9 rotate seals it\n",
			d9__units_count(summary->n_active).text, summary->n_active == 1 ? "it is" : "they are");
	if (summary->n_cut)
		fprintf(out, "%s damaged or cut, left as %s\n", d9__units_count(summary->n_cut).text,
			summary->n_cut == 1 ? "it is" : "they are");
}

void d9__symbolize_summary_print(const struct d9__symbolize_summary *summary,
				 struct d9__symbolizer *const *symbolizers, size_t n, FILE *out)
{
	struct lackings lackings = { 0 };

	fprintf(out, "%s addresses, %s named, %s with lines\n", d9__units_count(summary->counts.all).text,
		d9__units_count(summary->counts.named).text, d9__units_count(summary->counts.placed).text);
	print_left_out(summary, out);
	for (size_t i = 0; i < n; i++) {
		const struct d9__binaries *binaries = d9__symbolizer_binaries(symbolizers[i]);

		for (size_t k = 0; k < d9__binaries_count(binaries); k++)
			take_binary(&lackings, summary, d9__binaries_get(binaries, (uint32_t)k));
	}
	if (lackings.n)
		qsort(lackings.items, lackings.n, sizeof(*lackings.items), compare);
	find_packages(&lackings);
	for (size_t i = 0; i < lackings.n && i < TOLD_MAX; i++)
		print_lacking(&lackings.items[i], out);
	if (lackings.n > TOLD_MAX)
		fprintf(out, "  and %zu more\n", lackings.n - TOLD_MAX);
	for (size_t i = 0; i < lackings.n; i++)
		free(lackings.items[i].package);
	free(lackings.items);
}

void d9__symbolize_summary_release(struct d9__symbolize_summary *summary)
{
	free(summary->modules);
	*summary = (struct d9__symbolize_summary){ 0 };
}
