/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "stage/clean_environment.h"

/*
 * The variables that a stage inherits.  Names do not show which variables hold secrets
 * (DATABASE_URL, GH_PAT), so no others are passed on. dial9-record(1) and dial9-process(1) have the
 * list.
 */
static const char *const passed_on[D9__CLEAN_VARIABLES] = {
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "TZ", "TERM", "LD_LIBRARY_PATH", "LANG", "LANGUAGE",
	"LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
};

void d9__clean_environment(char *out[D9__CLEAN_VARIABLES + 2], char *more)
{
	size_t n = 0;

	for (char **variable = environ; *variable; variable++)
		for (size_t i = 0; i < D9__CLEAN_VARIABLES && n < D9__CLEAN_VARIABLES; i++) {
			size_t len = strlen(passed_on[i]);

			if (!strncmp(*variable, passed_on[i], len) && (*variable)[len] == '=')
				out[n++] = *variable;
		}
	out[n++] = more;
	out[n] = NULL;
}
