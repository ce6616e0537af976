/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a program's loader would map, and the functions that a file exports. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct d9__elf_need {
	char *name; /* as it is asked for */
	char *path; /* NULL: not found */
};

struct d9__elf_needs {
	struct d9__elf_need *items;
	size_t n;
};

/*
 * Ask the dynamic loader what it would map for |path|, in the order of its scope, with this
 * environment.  Nothing of |path| or of the libraries runs, for only a loader that is also this
 * program's is asked.  0, -ENOTSUP if |path| has another loader or none, -ENOEXEC if the loader
 * gives up, -ENOMEM, or an error of posix_spawn(3).
 */
int d9__elf_needs_list(const char *path, struct d9__elf_needs *out);
void d9__elf_needs_release(struct d9__elf_needs *needs);

/* Is the function |name| defined in the file |path|, as far as its symbols tell? */
bool d9__elf_defines(const char *path, const char *name);

/* Does it call the function |name| of another file? */
bool d9__elf_calls(const char *path, const char *name);
