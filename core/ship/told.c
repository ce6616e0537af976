/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/told.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

bool d9__told_news(struct d9__told_lines *told, const char *line)
{
	char *copy;

	if (tfind(line, &told->now, by_text))
		return false;
	/* Out of memory: the line will be told once more. */
	copy = strdup(line);
	if (copy && !tsearch(copy, &told->now, by_text))
		free(copy);
	return !tfind(line, &told->before, by_text);
}

void d9__told_looked(struct d9__told_lines *told)
{
	tdestroy(told->before, free);
	told->before = told->now;
	told->now = NULL;
}

void d9__told_release(struct d9__told_lines *told)
{
	tdestroy(told->before, free);
	tdestroy(told->now, free);
	*told = (struct d9__told_lines) { 0 };
}
