/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring target: the store that the recorder of a process names in its ring for its segments.  Every
 * process that can write into that ring can choose these texts, so each is judged like one of a
 * command line, and nothing else is taken from there: no address of a store, no region, no
 * credentials.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ring/ring_file.h"

/* One process's. */
struct d9__ring_target {
	char to[sizeof("s3:///") + D9__BUCKET_NAME + D9__KEY_PREFIX]; /* as --to has it */
	char trace_dir[D9__RING_DIR];
	char boot_id[32]; /* its directory in there */

	/* Its owner's. */
	bool seen;	 /* in the latest look at all rings */
	unsigned looked; /* how often its ring was recovered after its death */
};

struct d9__ring_targets {
	struct d9__ring_target *list; /* owned */
	size_t n;
};

/*
 * Read the target from |header| of a ring whose file |owner| owns.  Returns 0; -ENOENT: none is
 * given; -EPERM: the ring is another user's; -EINVAL: a text in it is not valid.
 */
int d9__ring_target_take(struct d9__ring_target *out, const struct d9__ring_header *header, uid_t owner);

/* Put |target| where the one of the same directory is, or behind the last: the one in the list, or NULL without memory. */
struct d9__ring_target *d9__ring_targets_put(struct d9__ring_targets *targets, const struct d9__ring_target *target);

/* Take number |i| out; the last one has its place then. */
void d9__ring_targets_drop(struct d9__ring_targets *targets, size_t i);

void d9__ring_targets_release(struct d9__ring_targets *targets);
