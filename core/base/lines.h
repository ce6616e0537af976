/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines: a text file line by line, without memory from the C library.
 *
 *	struct d9__lines lines;
 *
 *	if (d9__lines_open(&lines, path)) {
 *		while (d9__lines_next(&lines))
 *			... lines.text ...
 *		d9__lines_close(&lines);
 *	}
 *
 * Changes errno.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct d9__lines {
	int fd;
	size_t at, n;
	char text[512]; /* without its newline; of a longer line the begin */
	char bytes[1024];
};

/* False, and errno: it cannot be read. */
bool d9__lines_open(struct d9__lines *lines, const char *path);

/* False: that was the last. */
bool d9__lines_next(struct d9__lines *lines);

void d9__lines_close(struct d9__lines *lines);
