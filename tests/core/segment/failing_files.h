/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that fails when a test says so: a test that includes this is linked with --wrap for
 * pwrite, ftruncate and renameat.
 */

#pragma once

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static struct failing {
	int nth;   /* from which call on; 0: never */
	int times; /* how often */
	int err;   /* 0: a write writes nothing, and says so */
	bool half; /* but half of the bytes are written */
} fail_write, fail_cut, fail_rename;

static size_t write_most; /* bytes that one write takes; 0: all */
static int writes;	  /* that were tried */

#define SHOULD_FAIL(how)                                                                           \
	((how).nth &&                                                                              \
	 (--(how).nth ? false : ((how).nth = --(how).times > 0 ? 1 : 0, errno = (how).err, true)))

/* Return a failure of each call from now on. */
static inline struct failing always(int err)
{
	return (struct failing) { .nth = 1, .times = INT_MAX, .err = err };
}

static inline void all_works(void)
{
	fail_write = fail_cut = fail_rename = (struct failing) { .nth = 0 };
	write_most = 0;
	writes = 0;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);
int __wrap_ftruncate(int fd, off_t len);
int __real_ftruncate(int fd, off_t len);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	writes++;
	if (!SHOULD_FAIL(fail_write))
		return __real_pwrite(fd, bytes, write_most && len > write_most ? write_most : len,
				     at);
	if (!fail_write.half || len < 2)
		return fail_write.err ? -1 : 0;
	/* The rest is tried next, and fails. */
	fail_write.half = false;
	fail_write.nth = 1;
	return __real_pwrite(fd, bytes, len / 2, at);
}

int __wrap_ftruncate(int fd, off_t len)
{
	return SHOULD_FAIL(fail_cut) ? -1 : __real_ftruncate(fd, len);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return SHOULD_FAIL(fail_rename) ? -1 : __real_renameat(from_fd, from, to_fd, to);
}
