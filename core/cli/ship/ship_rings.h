/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 ship --from-rings`: send the segments of this user's recorders to the stores that their
 * rings name.
 */

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct d9__ship_rings {
	char *const *dirs;     /* only recorders that write to one of these, or below it; none: all */
	uint64_t every_ns;     /* between two looks */
	uint64_t deadline_ns;  /* from now on; 0: none */
	bool once, dry_run;
	/*
	 * Run in a process of its own: send the sealed segments in |paths| (NULL-ended),
	 * directories of processes, to |to|, within |deadline_ns| (0: no limit).  Returns an exit
	 * status.
	 */
	int (*ship)(void *context, const char *to, char **paths, uint64_t deadline_ns);
	void *context;
	volatile sig_atomic_t *stop;
};

/* Until |*stop| if not |once|.  An exit status: of several, the worst. */
int d9__ship_rings(const struct d9__ship_rings *how);
