/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/shipped_next.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* A line on its way: "stored NUMBER ..." or "missing NUMBER ...". */
struct line {
	char begin[32];
	size_t len;
};

/* Read the number behind the first word and a blank.  False: no such line. */
static bool number_of(const struct line *line, uint64_t *out)
{
	static const char *const words[] = { "stored ", "missing " };
	const char *p = NULL;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(line->begin, words[i], strlen(words[i])))
			p = line->begin + strlen(words[i]);
	if (!p || *p < '0' || *p > '9')
		return false;
	for (*out = 0; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(*out, UINT64_C(10), out) || __builtin_add_overflow(*out, (uint64_t)(*p - '0'), out))
			return false;
	return *p == ' ' && *out < UINT64_MAX;
}

static void take(struct line *line, char c, uint64_t *next)
{
	uint64_t number;

	if (c != '\n') {
		if (line->len < sizeof(line->begin) - 1)
			line->begin[line->len++] = c;
		return;
	}
	line->begin[line->len] = '\0';
	if (number_of(line, &number) && number >= *next)
		*next = number + 1;
	line->len = 0;
}

uint64_t d9__shipped_next(int dir_fd)
{
	int fd = openat(dir_fd, ".shipped", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct line line = { .len = 0 };
	uint64_t next = 0;
	char buf[4096];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			take(&line, buf[i], &next);
	if (fd >= 0)
		close(fd);
	return next;
}
