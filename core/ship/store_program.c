/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/store_program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "dial9-store"

char *d9__store_program(void)
{
	/* The third is for an installation that was moved as a whole. */
	static const char *const places[] = { "%s/" NAME, PKGLIBEXECDIR "/" NAME, "%s/../libexec/dial9/" NAME };
	char folder[PATH_MAX], path[PATH_MAX + sizeof("/../libexec/dial9/" NAME)];
	ssize_t len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	folder[len > 0 ? len : 0] = '\0';
	if (strrchr(folder, '/'))
		*strrchr(folder, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *tail = strncmp(places[i], "%s", 2) ? NULL : places[i] + 2;

		snprintf(path, sizeof(path), "%s%s", tail ? folder : places[i], tail ? tail : "");
		if (!access(path, X_OK))
			return strdup(path);
	}
	return NULL;
}
