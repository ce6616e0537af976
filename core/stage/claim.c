/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/directory.h"
#include "read/input.h"
#include "stage/claim.h"

#define COPY_BYTES (64 << 10)

/* ---- claiming ---- */

static int open_directory(struct d9__claim *claim, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + !(slash - path)) : strdup(".");

	if (!dir)
		return -ENOMEM;
	claim->path = path;
	claim->name = slash ? slash + 1 : path;
	claim->dir = d9__directory_open(dir, 0);
	free(dir);
	return claim->dir < 0 ? claim->dir : 0;
}

static int open_file(struct d9__claim *claim)
{
	/* O_NONBLOCK: a FIFO of that name is not waited for. */
	claim->fd = openat(claim->dir, claim->name,
			   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (claim->fd < 0)
		return -errno;
	if (fstat(claim->fd, &claim->st))
		return -errno;
	return S_ISREG(claim->st.st_mode) && claim->st.st_uid == geteuid() ? 0 : -EINVAL;
}

bool d9__claim_holds(const struct d9__claim *claim)
{
	struct stat st;

	return claim->copies ||
	       (!fstatat(claim->dir, claim->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == claim->st.st_dev &&
		st.st_ino == claim->st.st_ino);
}

int d9__claim_open(struct d9__claim *claim, const char *path)
{
	int err;

	*claim = (struct d9__claim) { .dir = -1, .fd = -1 };
	err = open_directory(claim, path);
	if (!err)
		err = open_file(claim);
	if (!err && flock(claim->fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (!err && !d9__claim_holds(claim))
		err = -EAGAIN;
	if (err)
		d9__claim_release(claim);
	return err;
}

int d9__claim_open_copy(struct d9__claim *claim, const char *path, int dir)
{
	const char *slash = strrchr(path, '/');
	int err = 0;

	*claim = (struct d9__claim) { .path = path, .name = slash ? slash + 1 : path, .copies = true };
	claim->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	claim->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (claim->dir < 0 || claim->fd < 0 || fstat(claim->fd, &claim->st))
		err = -errno;
	else if (!S_ISREG(claim->st.st_mode))
		err = -EINVAL;
	if (err)
		d9__claim_release(claim);
	return err;
}

void d9__claim_release(struct d9__claim *claim)
{
	if (claim->fd >= 0)
		close(claim->fd);
	if (claim->dir >= 0)
		close(claim->dir);
	claim->fd = claim->dir = -1;
}

/* ---- files without a name ---- */

/*
 * Make a dot name that only the claim's holder uses: a file with it was left by a killed process.
 */
static int name_hidden(const struct d9__claim *claim, char name[NAME_MAX + 1])
{
	if (snprintf(name, NAME_MAX + 1, ".%s.staged", claim->name) > NAME_MAX)
		return -ENAMETOOLONG;
	unlinkat(claim->dir, name, 0);
	return 0;
}

static int make_hidden(const struct d9__claim *claim, char name[NAME_MAX + 1])
{
	int err = name_hidden(claim, name);
	int fd = err ? -1
		     : openat(claim->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      0600);

	return fd < 0 && !err ? -errno : err ? err : fd;
}

int d9__claim_unnamed(const struct d9__claim *claim)
{
	char name[NAME_MAX + 1];
	int fd = openat(claim->dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
		return -errno;
	fd = make_hidden(claim, name);
	if (fd >= 0)
		unlinkat(claim->dir, name, 0);
	return fd;
}

/* ---- taking its place ---- */

static int copy(int from, int to)
{
	char *buf = malloc(COPY_BYTES);
	ssize_t n = 1;
	int err = buf ? 0 : -ENOMEM;

	for (off_t at = 0; !err && (n = pread(from, buf, COPY_BYTES, at)) > 0; at += n)
		err = d9__write_all(to, buf, (size_t)n);
	if (!err && n < 0)
		err = -errno;
	free(buf);
	return err;
}

/*
 * Copy owner, rights and times in an order that keeps them: chown(2) removes set-ID bits, and
 * writing changes times.
 */
static int dress(const struct d9__claim *claim, int fd)
{
	const struct timespec times[] = { claim->st.st_atim, claim->st.st_mtim };
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!claim->copies && (st.st_uid != claim->st.st_uid || st.st_gid != claim->st.st_gid) &&
	    fchown(fd, claim->st.st_uid, claim->st.st_gid))
		return -errno;
	if (fchmod(fd, claim->copies ? 0600 : claim->st.st_mode & 07777) || futimens(fd, times) || fsync(fd))
		return -errno;
	return 0;
}

/* Give the name to a copy, for filesystems where an unnamed file cannot get one. */
static int name_copy(const struct d9__claim *claim, int fd, char name[NAME_MAX + 1])
{
	int hidden = make_hidden(claim, name);
	int err = hidden < 0 ? hidden : copy(fd, hidden);

	if (!err)
		err = dress(claim, hidden);
	if (hidden >= 0)
		close(hidden);
	if (err && hidden >= 0)
		unlinkat(claim->dir, name, 0);
	return err;
}

static int name_it(const struct d9__claim *claim, int fd, char name[NAME_MAX + 1])
{
	char unnamed[64];
	int err = name_hidden(claim, name);

	if (err)
		return err;
	snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", fd);
	err = dress(claim, fd);
	if (err || !linkat(AT_FDCWD, unnamed, claim->dir, name, AT_SYMLINK_FOLLOW))
		return err;
	return name_copy(claim, fd, name);
}

int d9__claim_replace(const struct d9__claim *claim, int fd)
{
	char name[NAME_MAX + 1];
	int err = name_it(claim, fd, name);

	if (err)
		return err;
	if (!d9__claim_holds(claim))
		err = -EAGAIN;
	else if (renameat(claim->dir, name, claim->dir, claim->name))
		err = -errno;
	if (err)
		unlinkat(claim->dir, name, 0);
	else
		fsync(claim->dir);
	return err;
}

int d9__claim_put(const struct d9__claim *claim, int fd, const char *name)
{
	char hidden[NAME_MAX + 1];
	int err = fd == claim->fd ? name_copy(claim, fd, hidden) : name_it(claim, fd, hidden);

	if (err)
		return err;
	if (renameat(claim->dir, hidden, claim->dir, name)) {
		err = -errno;
		unlinkat(claim->dir, hidden, 0);
	}
	return err;
}

int d9__claim_remove(const struct d9__claim *claim)
{
	if (!d9__claim_holds(claim))
		return -EAGAIN;
	return unlinkat(claim->dir, claim->name, 0) ? -errno : 0;
}
