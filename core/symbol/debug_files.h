/* SPDX-License-Identifier: Apache-2.0 */
/* Where the debug information of a binary may be, beside the binary itself. */

#pragma once

#include <limits.h>
#include <stdbool.h>

#include "symbol/elf_file.h"

/* Where to look.  All zero is what distributions do, and no network. */
struct d9__debug_places {
	const char *const *dirs; /* looked into before /usr/lib/debug; ends with NULL; NULL: none */
	bool debuginfod;	 /* ask the servers in $DEBUGINFOD_URLS, too */
};

/* One search.  Set the first five; the rest 0. */
struct d9__debug_search {
	const struct d9__debug_places *places;
	const char *path;	 /* of the binary, as recorded */
	const char *build_id;	 /* as recorded, in hex; may be empty */
	const struct d9__elf_facts *facts; /* as recorded, in place of a build-id */
	struct d9__elf_file *binary; /* borrowed; NULL: it is missing or was refused */
	char refused[PATH_MAX];	 /* a file of the right name and another build-id; "": none */
};

/*
 * The debug file, in this order: .build-id/XX/YYYY.debug and the same without .debug below each
 * directory; if the binary is missing, a file of its name, or of that with .debug, in each of the
 * given directories (of a binary without a build-id a copy that kept its time); what .gnu_debuglink
 * of the binary names, beside it, in .debug beside it and below each directory; a server's.  Its
 * build-id is the recorded one; without any, its checksum is the link's.  NULL: there is none.
 */
struct d9__elf_file *d9__debug_file_find(struct d9__debug_search *search);

/* The symbols that are packed into |binary| itself (.gnu_debugdata), or NULL. */
struct d9__elf_file *d9__debug_data_open(const struct d9__elf_file *binary);

/* The code that the kernel maps into this process, for samples in it: that of the running kernel.  NULL: none. */
struct d9__elf_file *d9__debug_vdso_open(void);

/* Whether |build_id| is lower-case hex of a sensible length: it comes from a trace and becomes part of paths. */
bool d9__debug_build_id_is_fit(const char *build_id);
