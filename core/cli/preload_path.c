/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/preload_path.h"

#include "cli/own_path.h"

#define LIBRARY "libdial9-preload.so"
#define MEMORY  "libdial9-memory.so.0"

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
	} else if (!d9__own_folder(folder, sizeof(folder))) {
		d9__relative_path(BINDIR, PKGLIBDIR, relative, sizeof(relative));
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
