/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdw opens the .dwo file by itself, wherever it leads and however large it is, and maps it.  So
 * it is asked for files alone that we have opened before, and works on a copy of them.
 */
#include "config.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "symbol/split_dwarf.h"

#define CANDIDATES_MAX 3

/* Where libdw looks: beside the program, in the folder of the compilation, there from the
 * program's. */
struct candidates {
	char paths[CANDIDATES_MAX][PATH_MAX];
	size_t n;
};

static const char *text_of(Dwarf_Die *die, unsigned name, unsigned older)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, name, &attribute) && (!older || !dwarf_attr(die, older, &attribute)))
		return NULL;
	return dwarf_formstring(&attribute);
}

static void add_candidate(struct candidates *all, const char *folder, const char *between,
			  const char *name)
{
	int len = snprintf(all->paths[all->n], PATH_MAX, "%s%s%s%s%s", folder, *folder ? "/" : "",
			   between, *between ? "/" : "", name);

	all->n += len > 0 && len < PATH_MAX;
}

static void find_candidates(struct candidates *all, const struct d9__elf_file *file,
			    Dwarf_Die *unit, const char *name)
{
	const char *built_in = text_of(unit, DW_AT_comp_dir, 0);
	char folder[PATH_MAX];
	bool has_folder = d9__elf_file_folder(file, folder, sizeof(folder));

	if (name[0] == '/') {
		add_candidate(all, "", "", name);
		return;
	}
	if (has_folder)
		add_candidate(all, folder, "", name);
	if (built_in && built_in[0] == '/')
		add_candidate(all, built_in, "", name);
	else if (built_in && has_folder)
		add_candidate(all, folder, built_in, name);
}

/* True if libdw finds a file, and each that it may open is one that may be read. */
static bool may_be_opened(const struct candidates *all)
{
	struct d9__elf_file *file;
	bool found = false;

	for (size_t i = 0; i < all->n; i++) {
		int err = d9__elf_file_open(all->paths[i], &file);

		if (err == -ENOENT || err == -ENOTDIR)
			continue;
		if (err || !d9__budget_take(D9__KEPT_FILES, (size_t)d9__elf_file_bytes(file)))
			return false;
		d9__elf_file_close(file);
		found = true;
	}
	return found;
}

/* Put a copy in the place of the mapped file: a file that is cut while we read it must not be a
 * SIGBUS. */
static bool copy_mapped(Dwarf *dwarf)
{
	size_t len, page = (size_t)sysconf(_SC_PAGESIZE);
	char *bytes = elf_rawfile(dwarf_getelf(dwarf), &len), *copy;

	/* A file that libelf has read, not mapped, lies behind the head of a block of malloc(). */
	if (!bytes || (uintptr_t)bytes % page)
		return bytes != NULL;
	copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, bytes, len);
	return mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, bytes) == bytes;
}

enum d9__split d9__split_find(const struct d9__elf_file *file, Dwarf_Die *unit, Dwarf_Die *out,
			      char **path)
{
	const char *name = text_of(unit, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	struct candidates *all;
	Dwarf_Die whole;
	bool found;

	*path = NULL;
	if (!name)
		return D9__SPLIT_NOT;
	all = calloc(1, sizeof(*all));
	if (!all)
		return D9__SPLIT_MISSING;
	find_candidates(all, file, unit, name);
	found = may_be_opened(all) &&
		!dwarf_cu_info(unit->cu, NULL, NULL, &whole, out, NULL, NULL, NULL) && out->addr &&
		copy_mapped(dwarf_cu_getdwarf(out->cu));
	if (!found && all->n)
		*path = strdup(all->paths[all->n - 1]);
	free(all);
	return found ? D9__SPLIT_FOUND : D9__SPLIT_MISSING;
}
