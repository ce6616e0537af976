/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbol/elf_functions.h"

#define SIZED 8 /* added to the rank of functions of which the table tells the size */

static unsigned rank_symbol(const GElf_Sym *sym, const char *name)
{
	unsigned rank = name[0] == '_' ? 0 : 1;

	if (GELF_ST_BIND(sym->st_info) == STB_GLOBAL)
		rank += 4;
	else if (GELF_ST_BIND(sym->st_info) == STB_WEAK)
		rank += 2;
	return sym->st_size ? rank + SIZED : rank;
}

/* Where |sym| ends at the latest: without a size at the end of its section, or _init would reach into the PLT. */
static uint64_t end_of(Elf *elf, const GElf_Sym *sym)
{
	Elf_Scn *section = sym->st_size ? NULL : elf_getscn(elf, sym->st_shndx);
	GElf_Shdr header;
	uint64_t end;

	if (!sym->st_size && (!section || !gelf_getshdr(section, &header)))
		return UINT64_MAX;
	if (sym->st_size ? __builtin_add_overflow(sym->st_value, sym->st_size, &end)
			 : __builtin_add_overflow(header.sh_addr, header.sh_size, &end))
		return UINT64_MAX;
	return end;
}

static void add_function(struct d9__elf_functions *functions, Elf *elf, const GElf_Sym *sym, const char *name)
{
	unsigned type = GELF_ST_TYPE(sym->st_info);
	struct d9__elf_function *function;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym->st_shndx == SHN_UNDEF || !name || !*name ||
	    !d9__array_grow(functions->items, functions->n))
		return;
	function = &functions->items[functions->n++];
	function->start = sym->st_value;
	function->end = end_of(elf, sym);
	function->name = name;
	function->rank = rank_symbol(sym, name);
}

static void add_table(struct d9__elf_functions *functions, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 0; data && i < n && i <= INT32_MAX; i++)
		if (gelf_getsym(data, (int)i, &sym))
			add_function(functions, elf, &sym, elf_strptr(elf, header->sh_link, sym.st_name));
}

void d9__elf_functions_add(struct d9__elf_functions *functions, const struct d9__elf_file *file)
{
	Elf *elf = d9__elf_file_elf(file);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			add_table(functions, elf, section, &header);
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct d9__elf_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->name, y->name);
}

void d9__elf_functions_order(struct d9__elf_functions *functions)
{
	struct d9__elf_function *items = functions->items;
	size_t n = 0;

	if (!functions->n)
		return;
	qsort(items, functions->n, sizeof(*items), compare_functions);
	for (size_t i = 0; i < functions->n; i++)
		if (!n || items[n - 1].start != items[i].start)
			items[n++] = items[i];
	functions->n = n;
	/* A function without a size reaches to the next one. */
	for (size_t i = 0; i + 1 < n; i++)
		if (items[i].rank < SIZED && items[i].end > items[i + 1].start)
			items[i].end = items[i + 1].start;
}

const struct d9__elf_function *d9__elf_functions_find(const struct d9__elf_functions *functions, uint64_t address)
{
	size_t low = 0, high = functions->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < functions->items[low - 1].end ? &functions->items[low - 1] : NULL;
}

void d9__elf_functions_release(struct d9__elf_functions *functions)
{
	free(functions->items);
	*functions = (struct d9__elf_functions){ 0 };
}
