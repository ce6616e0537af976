/* SPDX-License-Identifier: Apache-2.0 */
/* Live trace: the directory that a running process writes its segments to. */

#pragma once

#include <sys/types.h>

/*
 * Its path in new memory; NULL: there is none, and one line on stderr, from |command|, says why and
 * what to do.  Root has the rights of the process's user from then on, for what it reads is that
 * user's.
 */
char *d9__live_trace(const char *command, pid_t pid);
