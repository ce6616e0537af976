/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define HEAD_MAX   ((size_t)1 << 20)
#define COPY_BYTES ((size_t)1 << 16)
#define ACTIVE     ".active"

static ssize_t read_fd(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = read(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int open_stdin(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

static int open_name(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

/* A segment is renamed when it is sealed: then that is its path from now on. */
static int open_path(struct d9__input *input)
{
	size_t len = strlen(input->path), suffix = strlen(ACTIVE);
	int fd = open_name(input->path);

	if (fd != -ENOENT || len <= suffix || strcmp(input->path + len - suffix, ACTIVE) != 0)
		return fd;
	input->path[len - suffix] = '\0';
	fd = open_name(input->path);
	if (fd < 0)
		input->path[len - suffix] = ACTIVE[0];
	return fd;
}

static int look(struct d9__input *input)
{
	struct stat st;
	off_t at;

	if (fstat(input->fd, &st) != 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	input->dev = st.st_dev;
	input->ino = st.st_ino;
	at = S_ISREG(st.st_mode) ? lseek(input->fd, 0, SEEK_CUR) : -1;
	input->pipe = at < 0;
	input->keep_head = input->pipe;
	if (at >= 0) {
		input->base = (uint64_t)at;
		input->size_bytes = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
	}
	return 0;
}

int d9__input_open(struct d9__input *input, const char *path)
{
	int err;

	*input = (struct d9__input) { .fd = -1 };
	input->path = strdup(path);
	if (!input->path)
		return -ENOMEM;
	input->fd = strcmp(path, "-") == 0 ? open_stdin() : open_path(input);
	err = input->fd < 0 ? input->fd : look(input);
	if (err && input->fd >= 0)
		close(input->fd);
	if (err)
		input->fd = -1;
	return err;
}

int d9__input_reopen(struct d9__input *input)
{
	struct stat st;
	int fd;

	if (input->fd >= 0)
		return 0;
	fd = open_path(input);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0 || st.st_dev != input->dev || st.st_ino != input->ino) {
		close(fd);
		return -ESTALE;
	}
	input->fd = fd;
	return 0;
}

void d9__input_close(struct d9__input *input)
{
	/* Standard input and spooled pipes have no path to open them by. */
	if (input->fd < 0 || input->pipe || input->spooled || strcmp(input->path, "-") == 0)
		return;
	close(input->fd);
	input->fd = -1;
}

static ssize_t read_pipe(struct d9__input *input, uint64_t offset, void *buf, size_t len)
{
	ssize_t n;

	if (offset < input->head_len) {
		size_t have = input->head_len - (size_t)offset;

		len = len < have ? len : have;
		memcpy(buf, input->head + offset, len);
		return (ssize_t)len;
	}
	if (offset != input->taken)
		return -ESPIPE;
	n = read_fd(input->fd, buf, len);
	if (n <= 0)
		return n;
	input->taken += (uint64_t)n;
	if (!input->keep_head)
		return n;
	if (input->head_len + (size_t)n > HEAD_MAX)
		return -EFBIG;
	if (!d9__array_reserve(input->head, &input->head_capacity, input->head_len, (size_t)n))
		return -ENOMEM;
	memcpy(input->head + input->head_len, buf, (size_t)n);
	input->head_len += (size_t)n;
	return n;
}

ssize_t d9__input_read_at(struct d9__input *input, uint64_t offset, void *buf, size_t len)
{
	bool briefly = input->fd < 0;
	ssize_t n;

	if (input->pipe)
		return read_pipe(input, offset, buf, len);
	if (briefly) {
		int err = d9__input_reopen(input);

		if (err)
			return err;
	}
	do
		n = pread(input->fd, buf, len, (off_t)(input->base + offset));
	while (n < 0 && errno == EINTR);
	n = n < 0 ? -errno : n;
	if (briefly)
		d9__input_close(input);
	return n;
}

int d9__temporary_open(void)
{
	const char *dir = secure_getenv("TMPDIR");
	char path[4096];
	int fd;

	if (!dir || !*dir)
		dir = "/tmp";
	fd = open(dir, O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/dial9-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int d9__write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int copy_rest(struct d9__input *input, int to, uint64_t *size)
{
	char *buf = malloc(COPY_BYTES);
	ssize_t n;
	int err = buf ? d9__write_all(to, input->head, input->head_len) : -ENOMEM;

	*size = input->head_len;
	while (!err && (n = read_fd(input->fd, buf, COPY_BYTES)) != 0) {
		err = n < 0 ? (int)n : d9__write_all(to, buf, (size_t)n);
		*size += n > 0 ? (uint64_t)n : 0;
	}
	free(buf);
	return err;
}

int d9__input_spool(struct d9__input *input)
{
	uint64_t size;
	int fd, err;

	if (!input->pipe)
		return 0;
	fd = d9__temporary_open();
	if (fd < 0)
		return fd;
	err = copy_rest(input, fd, &size);
	if (err) {
		close(fd);
		return err;
	}
	close(input->fd);
	input->fd = fd;
	input->pipe = false;
	input->spooled = true;
	input->size_bytes = size;
	return 0;
}

void d9__input_release(struct d9__input *input)
{
	if (input->fd >= 0)
		close(input->fd);
	free(input->path);
	free(input->head);
	*input = (struct d9__input) { .fd = -1 };
}
