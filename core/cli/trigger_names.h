/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trigger names: function names in triggers, looked up in a program that runs or is about to start.
 */

#pragma once

#include <sys/types.h>

#define D9__TRIGGER_OFFSETS 256 /* that the names of one trigger may stand for */

/*
 * Return |texts|, which are valid, with names of callbacks replaced by their offsets in the program
 * |command| and in the libraries that it needs, in new memory.  NULL: one line was printed.  If the
 * program does not exist, the names stay.
 */
char *d9__trigger_names_resolve(const char *texts, const char *command);

/* As d9__trigger_names_resolve(), for process |pid| and the libraries that it has loaded. */
char *d9__trigger_names_resolve_in(const char *texts, pid_t pid);
