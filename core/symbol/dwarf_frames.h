/* SPDX-License-Identifier: Apache-2.0 */
/* From an address of one file to the lines it was compiled from, through all functions inlined there. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf_file.h"

#define D9__DWARF_DEPTH_MAX 64 /* frames of one address */

/* A function at work.  Texts live as long as the struct d9__dwarf, and may be mangled; NULL: unknown. */
struct d9__dwarf_frame {
	const char *function, *path;
	unsigned line; /* 0: unknown */
};

struct d9__dwarf;

/* Of |file|, which is borrowed.  0, -ENOENT if it has no debug information, -ENOMEM. */
int d9__dwarf_open(const struct d9__elf_file *file, struct d9__dwarf **out);

/* NULL is allowed. */
void d9__dwarf_close(struct d9__dwarf *dwarf);

/*
 * The frames at the file address |address|, the innermost first, the real function last.  Of a function that is
 * written in another way (assembler) the last has a line and no name.  How many; 0: nothing is known.
 */
size_t d9__dwarf_frames(struct d9__dwarf *dwarf, uint64_t address, struct d9__dwarf_frame frames[D9__DWARF_DEPTH_MAX]);

/* A file with debug information of |dwarf| that is missing, so that functions have no lines; NULL:
 * none was needed. */
const char *d9__dwarf_missing(const struct d9__dwarf *dwarf);

/*
 * Where the function that begins at |address| is declared: by the rows of lines that is in another one, if the
 * compiler put a call of that one inline at its beginning.  false if no function begins there.
 */
bool d9__dwarf_entry(struct d9__dwarf *dwarf, uint64_t address, struct d9__dwarf_frame *out);
