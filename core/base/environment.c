/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/heap.h"

#define PREFIX "DIAL9_"

/* "NAME=VALUE", as they were; NULL-ended.  NULL: they are in the environment. */
static char **taken;

static bool is_ours(const char *variable)
{
	return strncmp(variable, PREFIX, strlen(PREFIX)) == 0;
}

bool d9__environment_counts(void)
{
	return getauxval(AT_SECURE) == 0;
}

char *d9__environment_get(const char *name)
{
	size_t len = strlen(name);

	if (!d9__environment_counts())
		return NULL;
	if (!taken || !is_ours(name))
		return getenv(name);
	for (char **copy = taken; *copy; copy++) {
		if (strncmp(*copy, name, len) == 0 && (*copy)[len] == '=')
			return *copy + len + 1;
	}
	return NULL;
}

const char *d9__environment_ours(size_t i)
{
	char **list = taken ? taken : environ;

	if (!d9__environment_counts())
		return NULL;
	for (; list && *list; list++)
		if (is_ours(*list) && i-- == 0)
			return *list;
	return NULL;
}

/* Copies, because programs write their title over the originals.  NULL: no memory. */
static char **copy_ours(void)
{
	size_t n = 0;
	char **copies;

	for (char **variable = environ; *variable; variable++)
		n += is_ours(*variable);
	copies = d9__calloc(n + 1, sizeof(*copies));
	n = 0;
	for (char **variable = environ; copies && *variable; variable++) {
		if (is_ours(*variable) && !(copies[n++] = d9__strdup(*variable)))
			return NULL; /* what is copied is lost, once in a process's life */
	}
	return copies;
}

void d9__environment_take(void)
{
	char **copies = environ ? copy_ours() : NULL, **keep = environ;

	if (!copies)
		return;
	taken = copies;
	for (char **variable = environ; *variable; variable++) {
		if (!is_ours(*variable))
			*keep++ = *variable;
	}
	*keep = NULL;
}
