/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "symbol/jit_map.h"

#define FOUND_MAX 1024 /* functions that were at one address */

/* Pass a hex number and the space behind it; false if there is none. */
static bool take_number(const char **text, uint64_t *out)
{
	const char *digits = "0123456789abcdef", *p = *text, *digit;
	uint64_t n = 0;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (*text = p; *p && (digit = strchr(digits, *p | 0x20)) && p - *text < 16; p++)
		n = n << 4 | (uint64_t)(digit - digits);
	if (p == *text || *p != ' ')
		return false;
	*text = p + 1;
	*out = n;
	return true;
}

static bool take_line(struct d9__jit_map *map, const char *line)
{
	struct d9__jit_function *function = &map->functions[map->n];
	uint64_t size;

	if (!take_number(&line, &function->start) || !take_number(&line, &size) || !size || !*line)
		return false;
	if (__builtin_add_overflow(function->start, size, &function->end))
		function->end = UINT64_MAX;
	function->name = line;
	return true;
}

int d9__jit_map_parse(struct d9__jit_map *map, char *text, size_t len)
{
	size_t max = 1;
	char *line = text, *end;

	d9__jit_map_release(map);
	map->text = text;
	text[len] = '\0';
	for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + len - p))); p++)
		max++;
	if (!d9__budget_take(D9__KEPT_SYMBOLS, len + max * (sizeof(*map->functions) + sizeof(struct d9__interval))))
		return 0;
	map->functions = calloc(max, sizeof(*map->functions));
	if (!map->functions)
		return -ENOMEM;
	for (; line < text + len && map->n < max; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		if (!end)
			end = text + len;
		*end = '\0';
		map->n += take_line(map, line);
	}
	return d9__intervals_build(&map->index, &map->functions->start, &map->functions->end, sizeof(*map->functions),
				   map->n);
}

static int read_all(int fd, size_t len, char **out)
{
	char *text = malloc(len + 1);
	size_t have = 0;
	ssize_t n = 1;
	int err;

	if (!text)
		return -ENOMEM;
	while (have < len && (n = read(fd, text + have, len - have)) > 0)
		have += (size_t)n;
	if (n < 0) {
		err = -errno;
		free(text);
		return err;
	}
	text[have] = '\0';
	*out = text;
	return 0;
}

int d9__jit_map_read(struct d9__jit_map *map, const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), err = 0;
	struct stat st;
	char *text = NULL;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		err = -EBADMSG;
	else if ((uint64_t)st.st_size > D9__JIT_MAP_MAX)
		err = -EFBIG;
	else
		err = read_all(fd, (size_t)st.st_size, &text);
	close(fd);
	return err ? err : d9__jit_map_parse(map, text, strlen(text));
}

const char *d9__jit_map_find(const struct d9__jit_map *map, uint64_t address)
{
	size_t found[FOUND_MAX], n = d9__intervals_find(&map->index, address, found, FOUND_MAX), last = 0;

	for (size_t i = 0; i < n; i++)
		last = found[i] > last ? found[i] : last;
	return n ? map->functions[last].name : NULL;
}

void d9__jit_map_release(struct d9__jit_map *map)
{
	free(map->text);
	free(map->functions);
	d9__intervals_release(&map->index);
	*map = (struct d9__jit_map){ 0 };
}
