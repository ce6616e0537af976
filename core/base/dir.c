/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

int d9__dir_open(struct d9__dir *dir, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	d9__dir_of(dir, fd);
	return 0;
}

void d9__dir_of(struct d9__dir *dir, int fd)
{
	dir->fd = fd;
	dir->at = dir->n = 0;
}

static bool fill(struct d9__dir *dir)
{
	dir->at = 0;
	dir->n = getdents64(dir->fd, dir->bytes, sizeof(dir->bytes));
	return dir->n > 0;
}

const char *d9__dir_next(struct d9__dir *dir)
{
	const char *name = NULL;

	while (!name && (dir->at < dir->n || fill(dir))) {
		const struct dirent64 *entry = (const struct dirent64 *)(const void *)(dir->bytes + dir->at);

		dir->at += entry->d_reclen;
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			name = entry->d_name;
	}
	return name;
}

void d9__dir_close(struct d9__dir *dir)
{
	close(dir->fd);
}
