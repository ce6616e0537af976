/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for code that lies in no module: what the runtime of a language made at run time, such as the
 * closures by which libffi calls Python, or the output of a compiler.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

/* "python" for a module of Python's, and so on; NULL: of no runtime that is known.  |module|: "NAME+0x..". */
const char *d9__language_of(const char *module);

#define D9__TASK_KINDS (D9_TASK_PERIODIC + 1u)

/*
 * Write what to call |callback|, of a task of |kind|, whose place |buf| holds as "0x...", and which was
 * registered at |site|: "python timer callback", and "python timer callback 2" for the second of a process; |*shared|
 * if the name stands for many.  What nothing is known of stays as it is.  Returns the length.  Takes locks; any
 * thread.
 */
int d9__generated_name(const void *callback, const void *site, unsigned kind, char *buf, size_t size, bool *shared);

/* The language whose generated code |addr| may be, by the program that runs; NULL: none. */
const char *d9__generated_by(void);

void d9__generated_fork_prepare(void);
void d9__generated_fork_parent(void);
