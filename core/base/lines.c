/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/lines.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

bool d9__lines_open(struct d9__lines *lines, const char *path)
{
	lines->at = lines->n = 0;
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	return lines->fd >= 0;
}

/* The next byte; -1: there is none. */
static int next_byte(struct d9__lines *lines)
{
	if (lines->at == lines->n) {
		ssize_t n = read(lines->fd, lines->bytes, sizeof(lines->bytes));

		lines->at = 0;
		lines->n = n > 0 ? (size_t)n : 0;
	}
	return lines->at < lines->n ? (unsigned char)lines->bytes[lines->at++] : -1;
}

bool d9__lines_next(struct d9__lines *lines)
{
	int byte = next_byte(lines);
	size_t len = 0;

	if (byte < 0)
		return false;
	for (; byte >= 0 && byte != '\n'; byte = next_byte(lines))
		if (len < sizeof(lines->text) - 1)
			lines->text[len++] = (char)byte;
	lines->text[len] = '\0';
	return true;
}

void d9__lines_close(struct d9__lines *lines)
{
	close(lines->fd);
}
