/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: its last word, one line on standard error. */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "cli/run/record_dir.h"
#include "cli/run/record_result.h"
#include "cli/run/record_ship.h"

struct d9__record_line {
	char *const *argv; /* CMD */
	pid_t follower;	   /* a process of CMD's that has written nothing yet; 0: none */
	const struct d9__record_dir *dir;
	const struct d9__record_result *result;
	struct d9__failure failure;
	bool recovered;	 /* some of it from the ring of a process that was killed, or could not write */
	size_t unwritten; /* rings of which that failed */
	int wait_status; /* of CMD */
	bool start_disabled, follows, profile_only;
	bool gone;	 /* the directory, while CMD ran */
	bool only_dumps; /* a recorder ran, in flight mode */
	bool triggers;	 /* there were some that could have fired */
	struct d9__record_shipped shipped;
};

/* Where the trace is and how to look at it; or that nothing was recorded, and why. */
void d9__record_line(const struct d9__record_line *line);
