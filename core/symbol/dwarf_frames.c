/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of each unit that an address is asked of, the functions become a sorted table at the first question, and of each
 * of these functions the calls inlined into it become a list at its first question.  Later questions search both.
 */
#include "config.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "base/table.h"
#include "symbol/dwarf_frames.h"
#include "symbol/split_dwarf.h"

#define NESTED_MAX 64 /* blocks, functions, classes and namespaces inside each other */

#define RANGE_BYTES (2 * sizeof(struct range)) /* that a range takes in an array at the most */

/* A range of addresses of the tree entry |die|. */
struct range {
	uint64_t start, end;
	Dwarf_Off die;
	unsigned depth; /* of a call: 1 if it is inlined into the function itself */
};

struct ranges {
	struct range *items;
	size_t n;
};

struct function {
	uint64_t start, end;
	Dwarf_Off die;
	struct ranges calls; /* inlined; a caller stands before what is inlined into it */
	bool walked;
};

struct unit {
	Dwarf *dwarf;		    /* with the functions: of the program, or of the .dwo file */
	Dwarf_Die root;		    /* there */
	struct function *functions; /* sorted by start */
	size_t n_functions;
	/* A row of lines may belong to an inlined function, which a .dwo file would tell that is
	 * missing. */
	bool is_hollow;
};

struct d9__dwarf {
	Dwarf *dwarf;
	const struct d9__elf_file *file;
	char *missing;		/* the first .dwo file that is not there */
	struct ranges units;	/* sorted by start; for files whose compiler wrote no .debug_aranges */
	bool units_read;
	struct d9__table walked; /* struct unit by offset of its tree */
};

int d9__dwarf_open(const struct d9__elf_file *file, struct d9__dwarf **out)
{
	Dwarf *dwarf = dwarf_begin_elf(d9__elf_file_elf(file), DWARF_C_READ, NULL);
	struct d9__dwarf *new;

	if (!dwarf)
		return -ENOENT;
	new = calloc(1, sizeof(*new));
	if (!new) {
		dwarf_end(dwarf);
		return -ENOMEM;
	}
	new->dwarf = dwarf;
	new->file = file;
	*out = new;
	return 0;
}

static void free_unit(struct unit *unit)
{
	for (size_t i = 0; i < unit->n_functions; i++)
		free(unit->functions[i].calls.items);
	free(unit->functions);
	free(unit);
}

void d9__dwarf_close(struct d9__dwarf *dwarf)
{
	void *unit;

	if (!dwarf)
		return;
	for (size_t place = 0; (place = d9__table_next(&dwarf->walked, place, &unit));)
		free_unit(unit);
	d9__table_release(&dwarf->walked);
	free(dwarf->units.items);
	free(dwarf->missing);
	dwarf_end(dwarf->dwarf);
	free(dwarf);
}

/* ---- the tree ---- */

/* Append the ranges of |die|.  false: no memory is left for more, and nothing more is to be looked at. */
static bool add_ranges(struct ranges *ranges, Dwarf_Die *die, unsigned depth)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0) {
		/* A range that the linker threw away begins at 0. */
		if (!start || start >= end)
			continue;
		if (!d9__array_grow(ranges->items, ranges->n) || !d9__budget_take(D9__KEPT_SYMBOLS, RANGE_BYTES))
			return false;
		ranges->items[ranges->n++] = (struct range){ start, end, dwarf_dieoffset(die), depth };
	}
	return true;
}

/* Step to the next of |die|'s siblings.  A file may say that it is one before it, and so on for ever. */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Off here = dwarf_dieoffset(die);

	return !dwarf_siblingof(die, die) && dwarf_dieoffset(die) > here;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

static void sort_ranges(struct ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->items, ranges->n, sizeof(*ranges->items), compare_ranges);
}

/*
 * True if a DIE with |tag| can contain functions with code.  Inside a function a class can: it holds a
 * lambda's body.
 */
static bool holds_functions(int tag, bool inside)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_subprogram:
		return true;
	case DW_TAG_lexical_block:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return inside;
	default:
		return false;
	}
}

/* The functions below |parent| that have code; |inside|: that is a function, or inside of one. */
static bool collect_functions(struct ranges *found, Dwarf_Die *parent, bool inside, unsigned nested)
{
	Dwarf_Die die;
	bool ok = true;

	if (nested > NESTED_MAX || dwarf_child(parent, &die))
		return true;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			ok = add_ranges(found, &die, 0);
		if (ok && holds_functions(tag, inside))
			ok = collect_functions(found, &die, inside || tag == DW_TAG_subprogram, nested + 1);
	} while (ok && next_sibling(&die));
	return ok;
}

/* The calls that are inlined below |parent|, each before what is inlined into it. */
static bool collect_calls(struct ranges *found, Dwarf_Die *parent, unsigned depth, unsigned nested)
{
	Dwarf_Die die;
	bool ok = true;

	if (nested > NESTED_MAX || dwarf_child(parent, &die))
		return true;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_lexical_block) {
			ok = collect_calls(found, &die, depth, nested + 1);
		} else if (tag == DW_TAG_inlined_subroutine) {
			ok = add_ranges(found, &die, depth + 1) &&
			     collect_calls(found, &die, depth + 1, nested + 1);
		}
	} while (ok && next_sibling(&die));
	return ok;
}

/* ---- units ---- */

static void read_units(struct d9__dwarf *dwarf)
{
	Dwarf_Off offset = 0, next;
	size_t header_len;
	Dwarf_Die die;
	bool ok = true;

	dwarf->units_read = true;
	while (ok && !dwarf_nextcu(dwarf->dwarf, offset, &next, &header_len, NULL, NULL, NULL)) {
		if (dwarf_offdie(dwarf->dwarf, offset + header_len, &die))
			ok = add_ranges(&dwarf->units, &die, 0);
		offset = next;
	}
	sort_ranges(&dwarf->units);
}

/* How many of |items|, |step| bytes apart and sorted by the uint64_t they begin with, begin at |address| or before. */
static size_t count_begun(const void *items, size_t n, size_t step, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (*(const uint64_t *)(const void *)((const char *)items + middle * step) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The unit of |address|: by .debug_aranges, else by our own table, for clang writes none. */
static bool find_unit(struct d9__dwarf *dwarf, uint64_t address, Dwarf_Die *die)
{
	const struct range *range;
	size_t n;

	if (dwarf_addrdie(dwarf->dwarf, address, die))
		return true;
	if (!dwarf->units_read)
		read_units(dwarf);
	n = count_begun(dwarf->units.items, dwarf->units.n, sizeof(*range), address);
	range = n ? &dwarf->units.items[n - 1] : NULL;
	return range && address < range->end && dwarf_offdie(dwarf->dwarf, range->die, die);
}

static struct unit *walk_unit(struct d9__dwarf *dwarf, Dwarf_Die *die)
{
	struct unit *unit = calloc(1, sizeof(*unit));
	struct ranges found = { 0 };
	enum d9__split split;
	char *missing;

	if (!unit)
		return NULL;
	unit->root = *die;
	split = d9__split_find(dwarf->file, die, &unit->root, &missing);
	if (split == D9__SPLIT_MISSING)
		unit->root = *die;
	unit->dwarf = dwarf_cu_getdwarf(unit->root.cu);
	collect_functions(&found, &unit->root, false, 0);
	/* Some compilers leave a few functions in the program. */
	unit->is_hollow = split == D9__SPLIT_MISSING && !found.n;
	if (unit->is_hollow && !dwarf->missing)
		dwarf->missing = missing;
	else
		free(missing);
	sort_ranges(&found);
	if (found.n && d9__budget_take(D9__KEPT_SYMBOLS, found.n * sizeof(*unit->functions)))
		unit->functions = calloc(found.n, sizeof(*unit->functions));
	for (size_t i = 0; unit->functions && i < found.n; i++) {
		const struct range *range = &found.items[i];

		unit->functions[unit->n_functions++] =
			(struct function){ .start = range->start, .end = range->end, .die = range->die };
	}
	d9__budget_give(found.n * RANGE_BYTES);
	free(found.items);
	return unit;
}

/* The functions of the unit |die|, as they were walked before or now; NULL: out of memory. */
static struct unit *unit_of(struct d9__dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	struct unit *unit = d9__table_find(&dwarf->walked, offset);

	if (unit)
		return unit;
	unit = walk_unit(dwarf, die);
	if (unit && d9__table_add(&dwarf->walked, offset, unit)) {
		free_unit(unit);
		return NULL;
	}
	return unit;
}

static struct function *find_function(const struct unit *unit, uint64_t address)
{
	struct function *function;
	size_t n;

	n = count_begun(unit->functions, unit->n_functions, sizeof(*function), address);
	function = n ? &unit->functions[n - 1] : NULL;
	return function && address < function->end ? function : NULL;
}

/* ---- frames ---- */

/* The name for the linker, which tells more, else the one in the source. */
static const char *name_of(Dwarf_Die *die)
{
	static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };
	Dwarf_Attribute attribute;
	const char *name = NULL;

	for (size_t i = 0; !name && i < sizeof(names) / sizeof(names[0]); i++)
		if (dwarf_attr_integrate(die, names[i], &attribute))
			name = dwarf_formstring(&attribute);
	return name;
}

static unsigned number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) || value > INT32_MAX)
		return 0;
	return (unsigned)value;
}

/* Where the inlined |call| was written. */
static void place_call(Dwarf_Die *unit, Dwarf_Die *call, struct d9__dwarf_frame *frame)
{
	unsigned file = number_of(call, DW_AT_call_file);
	Dwarf_Files *files;
	size_t n;

	frame->line = number_of(call, DW_AT_call_line);
	if (!dwarf_getsrcfiles(unit, &files, &n) && file < n)
		frame->path = dwarf_filesrc(files, file, NULL, NULL);
}

static void place_row(Dwarf_Die *unit, uint64_t address, struct d9__dwarf_frame *frame)
{
	Dwarf_Line *row = dwarf_getsrc_die(unit, address);
	int number;

	if (!row)
		return;
	frame->path = dwarf_linesrc(row, NULL, NULL);
	if (!dwarf_lineno(row, &number) && number > 0)
		frame->line = (unsigned)number;
}

/* The calls of |function| that are open at |address|, the outermost first; how many. */
static size_t find_calls(Dwarf *dwarf, struct function *function, uint64_t address,
			 Dwarf_Off calls[D9__DWARF_DEPTH_MAX - 1])
{
	Dwarf_Die die;
	size_t n = 0;

	if (!function->walked && dwarf_offdie(dwarf, function->die, &die))
		collect_calls(&function->calls, &die, 0, 0);
	function->walked = true;
	for (size_t i = 0; i < function->calls.n && n < D9__DWARF_DEPTH_MAX - 1; i++) {
		const struct range *call = &function->calls.items[i];

		if (address >= call->start && address < call->end && call->depth == n + 1)
			calls[n++] = call->die;
	}
	return n;
}

size_t d9__dwarf_frames(struct d9__dwarf *dwarf, uint64_t address, struct d9__dwarf_frame frames[D9__DWARF_DEPTH_MAX])
{
	Dwarf_Off calls[D9__DWARF_DEPTH_MAX - 1];
	struct function *function;
	struct unit *unit;
	Dwarf_Die root, die;
	size_t n = 0;

	unit = find_unit(dwarf, address, &root) ? unit_of(dwarf, &root) : NULL;
	if (!unit || unit->is_hollow)
		return 0;
	frames[0] = (struct d9__dwarf_frame){ 0 };
	place_row(&root, address, &frames[0]);
	function = find_function(unit, address);
	if (!function)
		return frames[0].path != NULL;
	for (size_t left = find_calls(unit->dwarf, function, address, calls); left--; n++) {
		frames[n + 1] = (struct d9__dwarf_frame){ 0 };
		if (!dwarf_offdie(unit->dwarf, calls[left], &die))
			continue;
		frames[n].function = name_of(&die);
		place_call(&unit->root, &die, &frames[n + 1]);
	}
	if (dwarf_offdie(unit->dwarf, function->die, &die))
		frames[n].function = name_of(&die);
	return n + 1;
}

/* The file that |die| of |unit| is declared in. */
static const char *declared_in(const struct d9__dwarf *dwarf, const struct unit *unit,
			       Dwarf_Die *die)
{
	Dwarf_Die root = unit->root;
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t n;

	/* libdw's own ends the process where a .dwo file has lines of no code. */
	if (unit->dwarf == dwarf->dwarf)
		return dwarf_decl_file(die);
	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
	    dwarf_formudata(&attribute, &number) || dwarf_getsrcfiles(&root, &files, &n) ||
	    number >= n)
		return NULL;
	return dwarf_filesrc(files, number, NULL, NULL);
}

bool d9__dwarf_entry(struct d9__dwarf *dwarf, uint64_t address, struct d9__dwarf_frame *out)
{
	const struct function *function;
	const struct unit *unit;
	Dwarf_Die root, die;
	Dwarf_Addr start;
	int number;

	unit = find_unit(dwarf, address, &root) ? unit_of(dwarf, &root) : NULL;
	function = unit ? find_function(unit, address) : NULL;
	if (!function || function->start != address ||
	    !dwarf_offdie(unit->dwarf, function->die, &die) || dwarf_entrypc(&die, &start) ||
	    start != address || dwarf_decl_line(&die, &number) || number <= 0)
		return false;
	*out = (struct d9__dwarf_frame) { name_of(&die), declared_in(dwarf, unit, &die),
					  (unsigned)number };
	return out->path != NULL;
}

const char *d9__dwarf_missing(const struct d9__dwarf *dwarf)
{
	return dwarf->missing;
}
