/* SPDX-License-Identifier: Apache-2.0 */
/* A small device of a role's own, and somebody who fills it. */

#ifndef D9_TESTS_RECORD_FULL_DEVICE_H
#define D9_TESTS_RECORD_FULL_DEVICE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "core/record/again.h"
#include "core/record/scratch.h"

static inline bool own_mounts(void)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
}

static inline const char *tmpfs_at(const char *name, const char *data)
{
	static char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%.3000s/%s", scratch_dir, name);
	MUST(!mkdir(dir, 0700) || errno == EEXIST);
	if (mount("tmpfs", dir, "tmpfs", MS_NOSUID, data))
		return NULL;
	MUST(!chmod(dir, 0700));
	return dir;
}

/* Fill the device by a file that is not the recorder's.  Its path, or NULL. */
static inline const char *fill(const char *dir)
{
	static char path[PATH_MAX], block[4096];
	int fd;

	snprintf(path, sizeof(path), "%.3000s/fill", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
	return path;
}

#endif /* D9_TESTS_RECORD_FULL_DEVICE_H */
