/* SPDX-License-Identifier: Apache-2.0 */
/* A pager between a command and the terminal, chosen as git does. */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct d9__pager {
	pid_t pid;
	int terminal; /* what standard output was */
};

/*
 * If standard output is a terminal, let it go through $DIAL9_PAGER, $PAGER or less(1), with LESS=FRX if
 * that is not set; neither an empty one nor "cat" is one.  Whether there is a pager, which
 * d9__pager_end() ends.
 */
bool d9__pager_begin(struct d9__pager *pager);

/* Wait until the user has read; false if the pager could not be run: then nobody has seen what was printed. */
bool d9__pager_end(struct d9__pager *pager);
