/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split DWARF: debug information that the compiler left in files of its own (-gsplit-dwarf).  The
 * program has the rows of lines, and for each of its units the name of the .dwo file with the
 * functions and what is inlined into them.
 */

#pragma once

#include <elfutils/libdw.h>

#include "symbol/elf_file.h"

enum d9__split {
	D9__SPLIT_NOT,	   /* the unit is whole */
	D9__SPLIT_FOUND,   /* the rest of it was found */
	D9__SPLIT_MISSING, /* it is not there, or no file to be read */
};

/*
 * Find the rest of |unit|, of |file|: |*out| is its entry in the .dwo file, as long as the Dwarf of
 * |unit|.  If it is missing,
 * |*path| is the file that was looked for, in new memory, or NULL.
 */
enum d9__split d9__split_find(const struct d9__elf_file *file, Dwarf_Die *unit, Dwarf_Die *out,
			      char **path);
