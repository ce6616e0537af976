/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trigger_text.h"
#include "symbol/debug_files.h"
#include "symbol/demangle.h"
#include "symbol/elf_file.h"
#include "symbol/elf_functions.h"
#include "symbol/entries.h"

/* One module with its symbols. */
struct module {
	struct d9__elf_file *files[3]; /* itself, its debug file, what is packed into it; NULL: there is none */
	struct d9__elf_functions functions;
};

static void open_module(struct module *module, const char *path)
{
	const struct d9__debug_places places = { .dirs = NULL };
	struct d9__debug_search search = { .places = &places, .path = path };

	if (d9__elf_file_open(path, &module->files[0]))
		return;
	search.build_id = d9__elf_file_build_id(module->files[0]);
	search.binary = module->files[0];
	module->files[1] = d9__debug_file_find(&search);
	if (!module->files[1])
		module->files[2] = d9__debug_data_open(module->files[0]);
	for (int i = 0; i < 3; i++)
		if (module->files[i])
			d9__elf_functions_add(&module->functions, module->files[i]);
}

static void close_module(struct module *module)
{
	d9__elf_functions_release(&module->functions);
	for (int i = 3; i-- > 0;)
		d9__elf_file_close(module->files[i]);
}

static bool has_symbols(const struct module *module)
{
	for (int i = 0; i < 3; i++)
		if (module->files[i] && d9__elf_file_section(module->files[i], ".symtab"))
			return true;
	return false;
}

/*
 * The compiler makes parts of functions and names them after these: "parse.constprop.0", and "parse.cold", which no
 * program calls by a pointer.  Symbols may have a version: "parse@@LIB_1".
 */
static bool is_called(const char *name, const char *glob)
{
	size_t len = strcspn(name, ".@");
	char *plain;
	bool is;

	if (!strncmp(name + len, ".cold", 5) || !strncmp(name + len, ".part.", 6))
		return false;
	if (d9__trigger_glob(glob, name, strlen(name)) || (len && d9__trigger_glob(glob, name, len)))
		return true;
	plain = d9__demangle(name);
	is = plain && d9__trigger_glob(glob, plain, strlen(plain));
	free(plain);
	return is;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Their starts, in order, to |*out|.  How many; SIZE_MAX: no memory. */
static size_t find_starts(const struct module *module, const char *glob, uint64_t **out)
{
	const struct d9__elf_functions *functions = &module->functions;
	uint64_t *starts = calloc(functions->n + 1, sizeof(*starts));
	size_t n = 0, kept = 0;

	*out = starts;
	if (!starts)
		return SIZE_MAX;
	for (size_t i = 0; i < functions->n; i++)
		if (is_called(functions->items[i].name, glob))
			starts[n++] = functions->items[i].start;
	qsort(starts, n, sizeof(*starts), compare);
	for (size_t i = 0; i < n; i++)
		if (!kept || starts[kept - 1] != starts[i])
			starts[kept++] = starts[i];
	return kept;
}

/* A name that stands for itself in a trigger. */
static bool is_plain(const char *name)
{
	return name[0] && name[0] != '+' && !strpbrk(name, "|\";\n");
}

static int find_in(const char *path, const char *glob, size_t max, bool is_first, struct d9__entries *out, FILE *text)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct module module = { .functions = { 0 } };
	uint64_t *starts;
	size_t n;

	open_module(&module, path);
	if (is_first)
		out->stripped = module.files[0] && !has_symbols(&module);
	n = find_starts(&module, glob, &starts);
	close_module(&module);
	if (n == SIZE_MAX || !is_plain(name)) {
		free(starts);
		return n == SIZE_MAX ? -ENOMEM : 0;
	}
	for (size_t i = 0; i < n && out->n + i < max; i++)
		fprintf(text, "%s%s+0x%" PRIx64, out->n + i ? "|" : "", i ? "" : name, starts[i]);
	out->n += n;
	out->n_first += is_first ? n : 0;
	free(starts);
	return 0;
}

int d9__entries_find(const char *const *paths, size_t n, const char *glob, size_t max, struct d9__entries *out)
{
	size_t len;
	FILE *text;
	int err = 0;

	*out = (struct d9__entries){ .n = 0 };
	text = open_memstream(&out->text, &len);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = find_in(paths[i], glob, max, i == 0, out, text);
	if (fclose(text) && !err)
		err = -ENOMEM;
	if (!err && out->n > max)
		out->text[0] = '\0';
	return err;
}

void d9__entries_release(struct d9__entries *entries)
{
	free(entries->text);
	*entries = (struct d9__entries){ .n = 0 };
}
