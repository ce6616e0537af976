/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dir: the names in a directory, without memory from the C library.
 *
 *	struct d9__dir dir;
 *
 *	if (d9__dir_open(&dir, path) == 0) {
 *		while ((name = d9__dir_next(&dir)))
 *			... name, which is not "." or ".."; dir.fd is the directory ...
 *		d9__dir_close(&dir);
 *	}
 *
 * Changes errno.
 */

#pragma once

#include <dirent.h>
#include <sys/types.h>

struct d9__dir {
	int fd;
	ssize_t at, n;
	_Alignas(struct dirent64) char bytes[4096];
};

/* 0, or -errno. */
int d9__dir_open(struct d9__dir *dir, const char *path);

/* Read the directory |fd| from its begin.  d9__dir_close() closes |fd|. */
void d9__dir_of(struct d9__dir *dir, int fd);

/* The name is valid until the next call; NULL: that was the last, or the directory cannot be read any further. */
const char *d9__dir_next(struct d9__dir *dir);

void d9__dir_close(struct d9__dir *dir);
