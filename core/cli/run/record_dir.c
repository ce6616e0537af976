/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "cli/run/record_dir.h"

#define N_PLACES 3

/* Open the directory |path|, or make it.  Returns its descriptor or -errno. */
static int open_or_make(const char *path, unsigned flags, bool *made)
{
	int fd = d9__directory_open(path, flags);

	*made = fd == -ENOENT;
	return *made ? d9__directory_open(path, flags | D9__DIRECTORY_MAKE) : fd;
}

static int judge(int fd, bool wanted, struct d9__record_dir *out)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	out->shared = st.st_mode & 022 && !d9__directory_is_fit(&st, D9__DIRECTORY_STICKY);
	out->foreign = st.st_uid != geteuid();
	/*
	 * A foreign directory is fine only if root named it, because CMD may become its user.  A
	 * shared one is never fine.
	 */
	if (out->shared || (out->foreign && !wanted))
		return -EPERM;
	return faccessat(fd, ".", W_OK | X_OK, 0) ? -errno : 0;
}

static int make(const char *path, bool wanted, struct d9__record_dir *out)
{
	int fd = open_or_make(path, D9__DIRECTORY_ANY, &out->made), err = fd;

	if (fd >= 0) {
		err = judge(fd, wanted, out);
		close(fd);
	}
	return err;
}

/*
 * Make the directory for this user alone, because another user may own the name in a shared folder,
 * or have put a symbolic link there.
 */
static int make_own(const char *path, bool *made)
{
	int fd = open_or_make(path, D9__DIRECTORY_PRIVATE, made), err = fd;

	if (fd >= 0) {
		err = faccessat(fd, ".", W_OK | X_OK, 0) ? -errno : 0;
		close(fd);
	}
	return err;
}

const char *d9__record_dir_fault(const struct d9__record_dir *dir, int err)
{
	if (err == -ELOOP)
		return "a symbolic link of another user's leads there";
	if (err == -EPERM && dir->shared)
		return "others may write to it";
	if (err == -EPERM && dir->foreign)
		return "it is another user's";
	return strerror(-err);
}

int d9__record_dir_make(const char *wanted, struct d9__record_dir *out)
{
	const char *tmp = getenv("TMPDIR"), *state = getenv("STATE_DIRECTORY");
	const char *const places[N_PLACES] = { tmp && *tmp == '/' ? tmp : "/tmp", "/tmp", "/dev/shm" };
	int err;

	*out = (struct d9__record_dir){ .why_not = NULL };
	if (wanted)
		snprintf(out->path, sizeof(out->path), "%s", wanted);
	else if (state && *state == '/')
		snprintf(out->path, sizeof(out->path), "%.*s/dial9-traces", (int)strcspn(state, ":"), state);
	else
		snprintf(out->path, sizeof(out->path), D9__RECORD_DIR);
	err = make(out->path, wanted, out);
	if (!err || wanted)
		return err;
	for (size_t i = 0; i < 2 * N_PLACES; i++) {
		char path[PATH_MAX];

		/*
		 * The prefix differs from that of rings in /dev/shm.  If all names are taken, use
		 * one with a random suffix.
		 */
		snprintf(path, sizeof(path), "%s/dial9-traces-%u%s", places[i % N_PLACES], (unsigned)geteuid(),
			 i < N_PLACES ? "" : "-XXXXXX");
		if (i < N_PLACES ? make_own(path, &out->made) != 0 : !mkdtemp(path))
			continue;
		out->made |= i >= N_PLACES;
		out->why_not = d9__record_dir_fault(out, err);
		out->foreign = out->shared = false;
		memcpy(out->path, path, sizeof(path));
		return 0;
	}
	return err;
}

bool d9__record_dir_is_gone(const struct d9__record_dir *dir, const struct stat *st)
{
	struct stat now;

	return stat(dir->path, &now) || now.st_dev != st->st_dev || now.st_ino != st->st_ino;
}
