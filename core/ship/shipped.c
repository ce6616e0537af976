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

#include "base/array.h"
#include "read/input.h"

#define LINE_MAX_BYTES 2048
#define MISSING	       "missing "
#define CUT	       " cut\n"

/* ---- writing ---- */

/*
 * End a line that was cut by a crash or a full disk with an ending that no whole line has, so that
 * the next one begins a line.
 */
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
	return last == '\n' ? 0 : d9__write_all(fd, CUT, strlen(CUT));
}

static int open_list(int dir)
{
	int fd = openat(dir, D9__SHIPPED_NAME, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return fd;
}

int d9__shipped_ready(int dir)
{
	int fd = open_list(dir), err = 0;
	struct stat st;

	if (fd < 0)
		return fd == -ENOSPC || fd == -EDQUOT ? 0 : fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		err = -EINVAL;
	close(fd);
	return err;
}

/* Append |text|, a line, and have it on disk. */
static int append(int dir, const char *text)
{
	int fd = open_list(dir), err;

	if (fd < 0)
		return fd;
	err = flock(fd, LOCK_EX) ? -errno : end_line(fd);
	if (!err)
		err = d9__write_all(fd, text, strlen(text));
	if (!err && (fsync(fd) || fsync(dir)))
		err = -errno;
	close(fd);
	return err;
}

int d9__shipped_append(int dir, const struct d9__shipped_line *line)
{
	char text[LINE_MAX_BYTES];
	int len = snprintf(text, sizeof(text),
			   "stored %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", line->index,
			   line->bytes, line->worst_ms, line->first_ns, line->last_ns, line->stored_ns, line->key);

	return len < 0 || (size_t)len >= sizeof(text) ? -ENAMETOOLONG : append(dir, text);
}

/* ---- reading ---- */

static int add(struct d9__shipped *shipped, uint64_t index, uint64_t bytes, const char *key)
{
	if (!d9__array_grow(shipped->indexes, shipped->n) ||
	    !d9__array_grow(shipped->keys, shipped->n))
		return -ENOMEM;
	shipped->indexes[shipped->n] = index;
	shipped->keys[shipped->n] = strdup(key);
	if (!shipped->keys[shipped->n])
		return -ENOMEM;
	shipped->n++;
	shipped->bytes += bytes;
	return 0;
}

/* A line "missing RANGES EPOCH_S". */
static int add_gap(struct d9__shipped *shipped, const char *line)
{
	const char *list = line + strlen(MISSING), *epoch = strchr(list, ' ');
	struct d9__shipped_gap *gap;
	char *end;
	uint64_t epoch_s = epoch ? strtoull(epoch, &end, 10) : 0;

	if (!epoch || *end != '\n')
		return 0;
	if (!d9__array_grow(shipped->gaps, shipped->n_gaps))
		return -ENOMEM;
	gap = &shipped->gaps[shipped->n_gaps++];
	*gap = (struct d9__shipped_gap) { .epoch_s = epoch_s };
	return d9__ranges_parse(&gap->ranges, list);
}

/* A line "stored INDEX ... KEY", whole. */
static int add_stored(struct d9__shipped *shipped, const char *line)
{
	char key[LINE_MAX_BYTES], end = '\0';
	uint64_t index, bytes;

	if (sscanf(line, "stored %" SCNu64 " %" SCNu64 " %*u %*u %*u %*u %2047s%c", &index, &bytes, key, &end) < 3 || end != '\n')
		return 0;
	return add(shipped, index, bytes, key);
}

static int read_lines(struct d9__shipped *shipped, FILE *in)
{
	char line[LINE_MAX_BYTES];
	int err = 0;

	while (!err && fgets(line, sizeof(line), in))
		if (!strchr(line, '\n'))
			continue;
		else if (!strncmp(line, MISSING, strlen(MISSING)))
			err = add_gap(shipped, line);
		else
			err = add_stored(shipped, line);
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

int d9__shipped_missing(const struct d9__shipped *shipped, const char *text, struct d9__ranges *missing)
{
	int err = d9__ranges_parse(missing, text);

	for (size_t i = 0; !err && i < shipped->n; i++)
		err = d9__ranges_remove(missing, shipped->indexes[i], shipped->indexes[i]);
	return err;
}

/* ---- gaps ---- */

int d9__shipped_gap(int dir, const char *evicted, uint64_t epoch_s)
{
	struct d9__shipped shipped;
	struct d9__ranges missing = { 0 };
	char text[LINE_MAX_BYTES], list[LINE_MAX_BYTES / 2];
	int err;

	/* Most say nothing, and the list is long. */
	if (!*evicted)
		return 0;
	err = d9__shipped_read(&shipped, dir);

	if (!err)
		err = d9__shipped_missing(&shipped, evicted, &missing);
	for (size_t i = 0; !err && i < shipped.n_gaps; i++)
		err = d9__ranges_take(&missing, &shipped.gaps[i].ranges);
	if (!err && missing.n) {
		d9__ranges_write(&missing, list, sizeof(list));
		snprintf(text, sizeof(text), MISSING "%s %" PRIu64 "\n", list, epoch_s);
		err = append(dir, text);
	}
	d9__ranges_release(&missing);
	d9__shipped_release(&shipped);
	return err;
}

void d9__shipped_release(struct d9__shipped *shipped)
{
	for (size_t i = 0; i < shipped->n; i++)
		free(shipped->keys[i]);
	free(shipped->indexes);
	free(shipped->keys);
	for (size_t i = 0; i < shipped->n_gaps; i++)
		d9__ranges_release(&shipped->gaps[i].ranges);
	free(shipped->gaps);
	*shipped = (struct d9__shipped) { 0 };
}
