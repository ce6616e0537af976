/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limit: how much of the memory that the process may have the ring can take without being noticed. */

#pragma once

#include <stdint.h>

struct d9__memory_limit {
	uint64_t bytes;   /* for the ring; UINT64_MAX: nothing limits it */
	const char *what; /* "ulimit -v" or "memory cgroup"; NULL: nothing */
};

/*
 * A quarter of the address space that is left, or an eighth of what a cgroup of the process may use,
 * whichever is less.  Opens some files of /proc and /sys; changes errno.
 */
struct d9__memory_limit d9__memory_limit(void);
