/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/memory_limit.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"

/* Return how much is left of the address space that the process may have. */
static uint64_t address_space(void)
{
	struct rlimit limit;
	char text[128];
	uint64_t used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    !d9__cgroup_read("/proc/self", "statm", text, sizeof(text)))
		return UINT64_MAX;
	used = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

struct d9__memory_limit d9__memory_limit(void)
{
	uint64_t space = address_space(), group = d9__cgroup_least("memory", d9__cgroup_memory_limit);
	struct d9__memory_limit limit = { UINT64_MAX, NULL };

	if (space != UINT64_MAX)
		limit = (struct d9__memory_limit){ space / 4, "ulimit -v" };
	if (group != UINT64_MAX && group / 8 < limit.bytes)
		limit = (struct d9__memory_limit){ group / 8, "memory cgroup" };
	return limit;
}
