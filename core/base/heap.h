/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what dial9 itself keeps.  In the programs `dial9` and in the reader it is the C library's (heap.c).  libdial9 has
 * pages of its own (record/own_heap.c), so that nothing of it goes through malloc() and free() of the traced program, which may
 * be the program's own, know one thread only, count, or have been broken by the program.
 *
 * Memory from here goes to d9__free(), which is free() only where heap.c's functions are linked.
 *
 * They behave as the functions of the C library whose names they have.  d9__free() does not change errno.
 */

#pragma once

#include <stddef.h>

#include <dial9/export.h>

D9_API void *d9__malloc(size_t size);
void *d9__calloc(size_t n, size_t size);
void *d9__realloc(void *block, size_t size);
void *d9__reallocarray(void *block, size_t n, size_t size);
D9_API void d9__free(void *block);
char *d9__strdup(const char *text);

/* Return the text that printf() would write, in memory of its own; NULL if there is none. */
char *d9__text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fork(): the child's heap is usable even if another thread of the parent was in it. */
void d9__heap_fork_child(void);
