/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/memory_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* An old cgroup without a limit has the largest number of whole pages. */
#define NO_LIMIT (UINT64_MAX / 4)

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

uint64_t d9__memory_limit_parse(const char *text)
{
	char *end;
	uint64_t bytes;

	if (*text < '0' || *text > '9')
		return UINT64_MAX;
	bytes = strtoull(text, &end, 10);
	return (*end == '\n' || !*end) && bytes < NO_LIMIT ? bytes : UINT64_MAX;
}

/* What is left of the address space that the process may have. */
static uint64_t address_space(void)
{
	struct rlimit limit;
	char text[128];
	uint64_t used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    !read_text("/proc/self/statm", text, sizeof(text)))
		return UINT64_MAX;
	used = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/* The least limit of the cgroup |path| and those around it, in the files |name| below |root|. */
static uint64_t least_of(const char *root, char *path, const char *name)
{
	uint64_t least = UINT64_MAX;
	char file[PATH_MAX + 64], text[64];

	for (;;) {
		char *slash = strrchr(path, '/');

		snprintf(file, sizeof(file), "%s%s/%s", root, path, name);
		if (read_text(file, text, sizeof(text)) && d9__memory_limit_parse(text) < least)
			least = d9__memory_limit_parse(text);
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* Lines are ID:CONTROLLERS:PATH; no controllers: that of the second version. */
static uint64_t cgroup(void)
{
	char text[4096], *rest = text, *line;
	uint64_t least = UINT64_MAX;

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return least;
	while ((line = strsep(&rest, "\n"))) {
		char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
		uint64_t bytes = UINT64_MAX;

		if (!path || path[1] != '/')
			continue;
		*path++ = '\0';
		if (path[1] == '\0')
			*path = '\0'; /* the root, whose files stand in |root| itself */
		if (!strcmp(controllers, ":"))
			bytes = least_of("/sys/fs/cgroup", path, "memory.max");
		else if (!strcmp(controllers, ":memory"))
			bytes = least_of("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
		if (bytes < least)
			least = bytes;
	}
	return least;
}

struct d9__memory_limit d9__memory_limit(void)
{
	uint64_t space = address_space(), group = cgroup();
	struct d9__memory_limit limit = { UINT64_MAX, NULL };

	if (space != UINT64_MAX)
		limit = (struct d9__memory_limit){ space / 4, "ulimit -v" };
	if (group != UINT64_MAX && group / 8 < limit.bytes)
		limit = (struct d9__memory_limit){ group / 8, "memory cgroup" };
	return limit;
}
