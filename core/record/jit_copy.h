/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JIT copy: the names of functions that a language's runtime compiles while the process runs.  Runtimes write them to
 * /tmp/perf-PID.map, which is gone with the machine, or with the container that /tmp is in; so the flush thread keeps
 * a copy of it beside the segments, under the same name, where readers look for it.
 */

#pragma once

#include <stdint.h>
#include <sys/types.h>

#define D9__JIT_COPY_MAX ((uint64_t)16 << 20) /* bytes; of a longer file the beginning */

/* All zero at first.  Flush thread. */
struct d9__jit_copy {
	dev_t device; /* of what was copied */
	ino_t inode;
	uint64_t bytes; /* of it so far */
};

/*
 * Bring the copy in |dir_fd| up to date: what the runtime has added since is added.  Nothing happens if there is no such
 * file, or it is a link, no plain file or another user's: /tmp is everybody's.  An error leaves a shorter copy, for the
 * next call to go on with.
 */
void d9__jit_copy_refresh(struct d9__jit_copy *copy, int dir_fd);
