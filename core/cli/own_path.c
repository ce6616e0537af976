/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/own_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int d9__own_folder(char *folder, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", folder, size - 1);

	if (n < 0)
		return -errno;
	folder[n] = '\0';
	*strrchr(folder, '/') = '\0';
	return 0;
}

void d9__relative_path(const char *from, const char *to, char *out, size_t size)
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
