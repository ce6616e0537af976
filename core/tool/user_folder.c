/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tool/user_folder.h"

bool d9__user_folder(const char *variable, const char *usual, char path[PATH_MAX])
{
	const char *base = secure_getenv(variable), *home = secure_getenv("HOME");

	/* A relative one counts as none, says the specification. */
	if (base && *base == '/')
		return snprintf(path, PATH_MAX, "%s/dial9", base) < PATH_MAX;
	return home && *home == '/' && !access(home, F_OK) &&
	       snprintf(path, PATH_MAX, "%s/%s/dial9", home, usual) < PATH_MAX;
}
