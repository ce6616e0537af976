/* SPDX-License-Identifier: Apache-2.0 */
/* Can a library be preloaded into this program? */

#pragma once

#include <stdbool.h>

enum d9__preload_fate {
	D9__PRELOAD_WORKS,   /* as far as can be told from the file */
	D9__PRELOAD_STATIC,  /* no dynamic loader runs in it */
	D9__PRELOAD_SECURE,  /* set-user-ID or alike: the loader ignores LD_PRELOAD */
	D9__PRELOAD_FOREIGN, /* for another kind of machine than this program */
	D9__PRELOAD_LIBC,    /* for another C library than this program: its loader ends it where it does not find ours */
	D9__PRELOAD_ASAN,    /* its sanitizer's runtime, a shared library, has to be the first that is loaded */
	D9__PRELOAD_TSAN,    /* its sanitizer takes code that it did not see compiled for wrong */
	D9__PRELOAD_MSAN,    /* likewise */
	D9__PRELOAD_UNKNOWN, /* not found, not readable, not ELF */
};

/*
 * Judge what execvp(3) would run for |command|; for a script, its interpreter.  |path|, of
 * |size| bytes, receives the file that was judged.
 */
enum d9__preload_fate d9__preload_judge(const char *command, char *path, unsigned size);

/* Why nothing can be preloaded, and what to do: "is statically linked, ...".  "" for the first and the last. */
const char *d9__preload_why(enum d9__preload_fate fate);
const char *d9__preload_advice(enum d9__preload_fate fate);

/* Whether the program would not start, or accuse us, with a library preloaded. */
bool d9__preload_is_harmful(enum d9__preload_fate fate);

/*
 * The dynamic loader that the ELF file |path| asks for.  0, -ENOENT if it asks for none, -EBADMSG if
 * it is no ELF file, -ENAMETOOLONG, or an error of open(2).
 */
int d9__elf_interpreter(const char *path, char *interpreter, unsigned size);
