/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"

/* An old cgroup without a limit has the largest number of whole pages. */
#define NO_LIMIT (UINT64_MAX / 4)

#define ROOT "/sys/fs/cgroup"

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool d9__cgroup_read(const char *dir, const char *name, char *text, size_t size)
{
	char file[2 * PATH_MAX];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	return read_text(file, text, size);
}

/* Call |fn| with the cgroup |path| below |root| and those around it. */
static void walk(const char *root, char *path, bool unified, d9__cgroup_fn fn, void *arg)
{
	char dir[PATH_MAX + 64];

	for (;;) {
		char *slash = strrchr(path, '/');

		snprintf(dir, sizeof(dir), "%s%s", root, path);
		fn(arg, dir, unified);
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* Whether |list|, "cpu,cpuacct", has |controller|. */
static bool has(const char *list, const char *controller)
{
	size_t len = strlen(controller);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (!strncmp(at, controller, len) && (at[len] == ',' || !at[len]))
			return true;
	return false;
}

void d9__cgroup_each(const char *controller, d9__cgroup_fn fn, void *arg)
{
	char text[4096], root[256], *rest = text, *line;

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return;
	/* Lines are ID:CONTROLLERS:PATH; no controllers: that of the second version. */
	while ((line = strsep(&rest, "\n"))) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path || path[1] != '/')
			continue;
		*path++ = '\0';
		if (path[1] == '\0')
			*path = '\0'; /* the root, whose files stand in |root| itself */
		list++;
		snprintf(root, sizeof(root), ROOT "/%s", list);
		if (!*list)
			walk(ROOT, path, true, fn, arg);
		else if (has(list, controller))
			walk(root, path, false, fn, arg);
	}
}

struct least {
	d9__cgroup_limit_fn limit;
	uint64_t least;
};

static void take_least(void *arg, const char *dir, bool unified)
{
	struct least *least = arg;
	uint64_t own = least->limit(dir, unified);

	least->least = own < least->least ? own : least->least;
}

uint64_t d9__cgroup_least(const char *controller, d9__cgroup_limit_fn limit)
{
	struct least least = { limit, UINT64_MAX };

	d9__cgroup_each(controller, take_least, &least);
	return least.least;
}

uint64_t d9__cgroup_parse_memory(const char *text)
{
	char *end;
	uint64_t bytes;

	if (*text < '0' || *text > '9')
		return UINT64_MAX;
	bytes = strtoull(text, &end, 10);
	return (*end == '\n' || !*end) && bytes < NO_LIMIT ? bytes : UINT64_MAX;
}

uint64_t d9__cgroup_memory_limit(const char *dir, bool unified)
{
	char text[64];

	d9__cgroup_read(dir, unified ? "memory.max" : "memory.limit_in_bytes", text, sizeof(text));
	return d9__cgroup_parse_memory(text);
}

uint64_t d9__cgroup_parse_cpu(const char *text)
{
	uint64_t quota_us, period_us;

	if (sscanf(text, "%" SCNu64 " %" SCNu64, &quota_us, &period_us) != 2 || !period_us ||
	    quota_us > UINT64_MAX / 1000)
		return UINT64_MAX;
	return quota_us * 1000 / period_us;
}

uint64_t d9__cgroup_cpu_limit(const char *dir, bool unified)
{
	char text[64], period[32], both[128];

	if (unified) {
		d9__cgroup_read(dir, "cpu.max", text, sizeof(text));
		return d9__cgroup_parse_cpu(text);
	}
	d9__cgroup_read(dir, "cpu.cfs_period_us", period, sizeof(period));
	if (!d9__cgroup_read(dir, "cpu.cfs_quota_us", text, sizeof(text)) || text[0] == '-')
		return UINT64_MAX;
	snprintf(both, sizeof(both), "%s %s", text, period);
	return d9__cgroup_parse_cpu(both);
}
