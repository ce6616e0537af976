/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/directory.h"

#define LINKS_MAX 40 /* as the kernel's */

struct walk {
	char rest[PATH_MAX]; /* what is still ahead */
	int at;
	unsigned flags, links;
};

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* Nobody but its owner, root or us can take our names away in it. */
static bool keeps_names(const struct stat *st)
{
	return !(st->st_mode & 022) || st->st_mode & S_ISVTX;
}

bool d9__directory_is_fit(const struct stat *st, unsigned flags)
{
	if (flags & D9__DIRECTORY_ANY)
		return true;
	if (flags & D9__DIRECTORY_SHARED)
		return keeps_names(st);
	if (flags & D9__DIRECTORY_STICKY && st->st_mode & S_ISVTX && is_trusted(st->st_uid))
		return true;
	return st->st_uid == geteuid() && !(st->st_mode & (flags & D9__DIRECTORY_PRIVATE ? 077 : 022));
}

/* |at| as a descriptor to list and lock by, if it is fit. */
static int finish(int at, unsigned flags)
{
	struct stat st;
	int fd = d9__descriptor_place(openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && d9__directory_is_fit(&st, flags))
		return fd;
	close(fd);
	return -EPERM;
}

/* One that is there, or made.  Of other kinds -ENOTDIR. */
static int enter(int at, const char *name, unsigned flags)
{
	int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT || !(flags & D9__DIRECTORY_MAKE))
		return fd < 0 ? -errno : fd;
	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool may_follow(int at, const struct stat *link)
{
	struct stat dir;

	return !fstat(at, &dir) && is_trusted(dir.st_uid) && is_trusted(link->st_uid) &&
	       (!(dir.st_mode & S_IWOTH) || dir.st_mode & S_ISVTX);
}

/* In proc a link's text is not where it leads. */
static bool is_of_proc(int at)
{
	struct statfs fs;

	return !fstatfs(at, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* |walk->at| is now |fd|. */
static int move(struct walk *walk, int fd)
{
	if (fd < 0)
		return fd;
	close(walk->at);
	walk->at = fd;
	return 0;
}

/* Put the target of the link |fd| before the rest of the path. */
static int put_before(struct walk *walk, int fd)
{
	char target[PATH_MAX];
	size_t len, rest = strlen(walk->rest);
	ssize_t n = readlinkat(fd, "", target, sizeof(target));

	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	len = (size_t)n;
	if (len + rest + 2 > sizeof(walk->rest))
		return -ENAMETOOLONG;
	memmove(walk->rest + len + 1, walk->rest, rest + 1);
	memcpy(walk->rest, target, len);
	walk->rest[len] = '/';
	return target[0] == '/' ? move(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* |name| is no directory: perhaps a link to one. */
static int follow(struct walk *walk, const char *name)
{
	int fd = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err = -ENOTDIR;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISLNK(st.st_mode))
		err = may_follow(walk->at, &st) && ++walk->links <= LINKS_MAX ? 0 : -ELOOP;
	if (!err && is_of_proc(walk->at)) {
		int there = openat(walk->at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

		err = there < 0 ? -errno : move(walk, there);
	} else if (!err) {
		err = put_before(walk, fd);
	}
	close(fd);
	return err;
}

/* Take the next name off the rest and enter it.  1, 0 if there is none, or -errno. */
static int step(struct walk *walk)
{
	char name[NAME_MAX + 1];
	size_t slashes = strspn(walk->rest, "/"), len = strcspn(walk->rest + slashes, "/");
	int err;

	if (!len)
		return 0;
	if (len >= sizeof(name))
		return -ENAMETOOLONG;
	memcpy(name, walk->rest + slashes, len);
	name[len] = '\0';
	memmove(walk->rest, walk->rest + slashes + len, strlen(walk->rest + slashes + len) + 1);
	err = move(walk, enter(walk->at, name, walk->flags));
	if (err == -ENOTDIR)
		err = follow(walk, name);
	return err ? err : 1;
}

int d9__directory_open(const char *path, unsigned flags)
{
	struct walk walk = { .flags = flags };
	int got = 1;

	if (!path[0])
		return -ENOENT;
	if (strlen(path) >= sizeof(walk.rest))
		return -ENAMETOOLONG;
	strcpy(walk.rest, path);
	walk.at = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (walk.at < 0)
		return -errno;
	while (got == 1)
		got = step(&walk);
	if (!got)
		got = finish(walk.at, flags);
	close(walk.at);
	return got;
}

int d9__directory_enter(int at, const char *name, unsigned flags)
{
	int dir = enter(at, name, flags), fd = dir;

	if (dir >= 0) {
		fd = finish(dir, flags);
		close(dir);
	}
	return fd;
}
