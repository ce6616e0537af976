/* SPDX-License-Identifier: Apache-2.0 */
/* A pager between a command and the terminal, chosen as git chooses it. */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct d9__pager {
	pid_t pid;
	int terminal; /* a copy of the original standard output */
};

/*
 * Send standard output through $DIAL9_PAGER, $PAGER or less(1) if it is a terminal, with LESS=FRX
 * unless LESS is set.  True if a pager runs, which d9__pager_end() ends.  An empty name, or "cat",
 * means none.
 */
bool d9__pager_begin(struct d9__pager *pager);

/*
 * Wait until the user has read.  False if the pager could not be run, so that the output was not
 * shown.
 */
bool d9__pager_end(struct d9__pager *pager);
