/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions in triggers: what they stand for in a program that is about to start, or runs. */

#pragma once

#include <sys/types.h>

#define D9__TRIGGER_OFFSETS 256 /* that the names of one trigger may stand for */

/*
 * |texts|, which were read without a fault, with what names of callbacks stand for in the program |command| and in the
 * libraries that it needs, in new memory.  NULL: one line was printed.  A program that is not there has none looked up.
 */
char *d9__trigger_names_resolve(const char *texts, const char *command);

/* The same for process |pid| and the libraries that it has loaded. */
char *d9__trigger_names_resolve_in(const char *texts, pid_t pid);
