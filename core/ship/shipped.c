/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/shipped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/input.h"

#define LINE_MAX_BYTES 2048
#define RANGE_MAX      100000 /* indexes of one range that are looked at */

/* ---- writing ---- */

/* A line that was cut by a crash or a full disk gets its end, so that ours begins one. */
static int end_line(int fd)
{
	struct stat st;
	char last = '\n';

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size && pread(fd, &last, 1, st.st_size - 1) != 1)
		return -EIO;
	return last == '\n' ? 0 : d9__write_all(fd, "\n", 1);
}

int d9__shipped_append(int dir, const struct d9__shipped_line *line)
{
	char text[LINE_MAX_BYTES];
	int fd = openat(dir, D9__SHIPPED_NAME, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600), err;
	int len = snprintf(text, sizeof(text),
			   "stored %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", line->index,
			   line->bytes, line->worst_ms, line->first_ns, line->last_ns, line->stored_ns, line->key);

	if (fd < 0)
		return -errno;
	err = len < 0 || (size_t)len >= sizeof(text) ? -ENAMETOOLONG : flock(fd, LOCK_EX) ? -errno : end_line(fd);
	if (!err)
		err = d9__write_all(fd, text, (size_t)len);
	if (!err && (fsync(fd) || fsync(dir)))
		err = -errno;
	close(fd);
	return err;
}

/* ---- reading ---- */

static int add(struct d9__shipped *shipped, uint64_t index, uint64_t bytes, const char *key)
{
	if (shipped->n == shipped->capacity) {
		size_t capacity = shipped->capacity ? 2 * shipped->capacity : 64;
		uint64_t *indexes = reallocarray(shipped->indexes, capacity, sizeof(*indexes));
		char **keys;

		if (!indexes)
			return -ENOMEM;
		shipped->indexes = indexes;
		keys = reallocarray(shipped->keys, capacity, sizeof(*keys));
		if (!keys)
			return -ENOMEM;
		shipped->keys = keys;
		shipped->capacity = capacity;
	}
	shipped->indexes[shipped->n] = index;
	shipped->keys[shipped->n] = strdup(key);
	if (!shipped->keys[shipped->n])
		return -ENOMEM;
	shipped->n++;
	shipped->bytes += bytes;
	return 0;
}

static int read_lines(struct d9__shipped *shipped, FILE *in)
{
	char line[LINE_MAX_BYTES], key[LINE_MAX_BYTES];
	uint64_t index, bytes;
	int err = 0;

	while (!err && fgets(line, sizeof(line), in))
		if (strchr(line, '\n') &&
		    sscanf(line, "stored %" SCNu64 " %" SCNu64 " %*u %*u %*u %*u %2047s", &index, &bytes, key) == 3)
			err = add(shipped, index, bytes, key);
	return err;
}

int d9__shipped_read(struct d9__shipped *shipped, int dir)
{
	int fd = openat(dir, D9__SHIPPED_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err;
	FILE *in;

	*shipped = (struct d9__shipped) { 0 };
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	in = fdopen(fd, "r");
	if (!in) {
		close(fd);
		return -ENOMEM;
	}
	err = read_lines(shipped, in);
	fclose(in);
	return err;
}

const char *d9__shipped_key(const struct d9__shipped *shipped, uint64_t index)
{
	for (size_t i = shipped->n; i-- > 0;)
		if (shipped->indexes[i] == index)
			return shipped->keys[i];
	return NULL;
}

/* ---- what is missing ---- */

struct ranges {
	char *out;
	size_t size, len;
	bool any;
	uint64_t first, last; /* one that has no end yet */
};

static void put_range(struct ranges *ranges)
{
	char text[48];
	int len = snprintf(text, sizeof(text), "%s%" PRIu64, ranges->len ? "," : "", ranges->first);

	if (ranges->last > ranges->first)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "-%" PRIu64, ranges->last);
	if (ranges->any && ranges->len + (size_t)len < ranges->size) {
		memcpy(ranges->out + ranges->len, text, (size_t)len + 1);
		ranges->len += (size_t)len;
	}
	ranges->any = false;
}

static void put_index(struct ranges *ranges, uint64_t index)
{
	if (ranges->any && ranges->last + 1 == index) {
		ranges->last = index;
		return;
	}
	put_range(ranges);
	ranges->any = true;
	ranges->first = ranges->last = index;
}

void d9__shipped_missing(const struct d9__shipped *shipped, const char *text, char *out, size_t size)
{
	struct ranges ranges = { .out = out, .size = size };

	out[0] = '\0';
	while (*text >= '0' && *text <= '9') {
		char *end;
		uint64_t first = strtoull(text, &end, 10), last = *end == '-' ? strtoull(end + 1, &end, 10) : first;

		for (uint64_t i = first; i <= last && i - first < RANGE_MAX; i++)
			if (!d9__shipped_key(shipped, i))
				put_index(&ranges, i);
		text = *end == ',' ? end + 1 : end;
	}
	put_range(&ranges);
}

void d9__shipped_release(struct d9__shipped *shipped)
{
	for (size_t i = 0; i < shipped->n; i++)
		free(shipped->keys[i]);
	free(shipped->indexes);
	free(shipped->keys);
	*shipped = (struct d9__shipped) { 0 };
}
