/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/record_dir.h"

static int make(const char *dir, struct d9__record_dir *out)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0777) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	out->made = !mkdir(path, 0700);
	if (!out->made && errno != EEXIST)
		return -errno;
	if (stat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	out->shared = st.st_mode & 022;
	out->foreign = st.st_uid != geteuid();
	if (out->shared)
		return -EPERM;
	return access(path, W_OK | X_OK) ? -errno : 0;
}

/* In a folder of everybody's the name may be somebody else's already, or lead elsewhere. */
static int make_own(const char *path, bool *made)
{
	struct stat st;

	*made = !mkdir(path, 0700);
	if (!*made && errno != EEXIST)
		return -errno;
	if (lstat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return access(path, W_OK | X_OK) ? -errno : 0;
}

static bool is_place_at_fault(int err)
{
	return err == -EROFS || err == -EACCES || err == -EPERM || err == -ENOSPC || err == -EDQUOT;
}

int d9__record_dir_make(const char *wanted, struct d9__record_dir *out)
{
	const char *tmp = getenv("TMPDIR");
	const char *const places[] = { tmp && *tmp == '/' ? tmp : "/tmp", "/tmp", "/dev/shm" };
	int err;

	*out = (struct d9__record_dir){ .why_not = 0 };
	err = make(wanted ? wanted : D9__RECORD_DIR, out);
	snprintf(out->path, sizeof(out->path), "%s", wanted ? wanted : D9__RECORD_DIR);
	if (!err || wanted || !is_place_at_fault(err))
		return err;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];

		/* Rings have the other name in /dev/shm. */
		snprintf(path, sizeof(path), "%s/dial9-traces-%u", places[i], (unsigned)geteuid());
		if (make_own(path, &out->made))
			continue;
		out->foreign = false;
		memcpy(out->path, path, sizeof(path));
		out->why_not = err;
		return 0;
	}
	return err;
}
