/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/preload_path.h"

#define LIBRARY "libdial9-preload.so"
#define MEMORY  "libdial9-memory.so.0"

/* The folder of this program; false if /proc is not there. */
static int own_folder(char folder[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	folder[n] = '\0';
	*strrchr(folder, '/') = '\0';
	return 0;
}

/* "../lib/dial9" for /usr/bin and /usr/lib/dial9: an installation may have moved as a whole. */
static void relative_path(const char *from, const char *to, char *out, size_t size)
{
	size_t common = 0, n = 0;

	for (size_t i = 0; from[i] && from[i] == to[i]; i++)
		if (from[i] == '/')
			common = i + 1;
	for (const char *rest = from + common; rest && *rest; rest = strchr(rest, '/')) {
		rest += *rest == '/';
		n += (size_t)snprintf(out + n, size - n, "../");
	}
	snprintf(out + n, size - n, "%s", to + common);
}

/* |folder|/|relative|/LIBRARY if it can be read, in its shortest spelling. */
static char *try_folder(const char *folder, const char *relative)
{
	char path[2 * PATH_MAX + sizeof("//" LIBRARY)], *real;

	snprintf(path, sizeof(path), "%s/%s/" LIBRARY, folder, relative);
	real = realpath(path, NULL);
	if (real && access(real, R_OK)) {
		free(real);
		real = NULL;
	}
	return real;
}

int d9__preload_memory_path(const char *preload, char **out)
{
	static const char *const places[] = { ".", "..", "../../.libs" };
	const char *slash = strrchr(preload, '/');
	char path[2 * PATH_MAX];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%.*s/%s/" MEMORY, (int)(slash - preload), preload, places[i]);
		*out = realpath(path, NULL);
		if (*out)
			return 0;
	}
	return -ENOENT;
}

int d9__preload_path(char **out)
{
	const char *wanted = getenv("DIAL9_PRELOAD");
	char folder[PATH_MAX], relative[PATH_MAX], *path = NULL;

	if (wanted && *wanted) {
		path = realpath(wanted, NULL);
	} else if (!own_folder(folder)) {
		relative_path(BINDIR, PKGLIBDIR, relative, sizeof(relative));
		path = try_folder(folder, "../adapters/.libs");
		if (!path)
			path = try_folder(folder, "../adapters/preload/.libs");
		if (!path)
			path = try_folder(folder, relative);
	}
	if (!path && !(wanted && *wanted))
		path = try_folder(PKGLIBDIR, ".");
	if (!path)
		return -ENOENT;
	if (strpbrk(path, " :\t\n")) {
		free(path);
		return -EINVAL;
	}
	*out = path;
	return 0;
}
