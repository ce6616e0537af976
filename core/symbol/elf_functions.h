/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of one module by address, from the symbol tables of all files that belong to it. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbol/elf_file.h"

struct d9__elf_function {
	uint64_t start, end;
	const char *name; /* in the file's string table */
	unsigned rank;	  /* of several names for one address the highest wins */
};

/* All zero is empty.  |items| are sorted by start, one per start address, once it is ordered. */
struct d9__elf_functions {
	struct d9__elf_function *items;
	size_t n;
};

/*
 * Add what .symtab and .dynsym of |file| name; the names live as long as |file|.  A table that does not fit into
 * memory is cut.
 */
void d9__elf_functions_add(struct d9__elf_functions *functions, const struct d9__elf_file *file);

/* Sort after the last file; before the first question. */
void d9__elf_functions_order(struct d9__elf_functions *functions);

/* The function that contains the file address |address|, or NULL. */
const struct d9__elf_function *d9__elf_functions_find(const struct d9__elf_functions *functions, uint64_t address);

void d9__elf_functions_release(struct d9__elf_functions *functions);
