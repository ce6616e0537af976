/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "watch/recover_users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/directory.h"

#define SHM_DIR "/dev/shm"
#define PREFIX  "dial9-"

static bool is_own(const struct d9__recover_users *users)
{
	return !users->next;
}

static const struct d9__child_user *current(const struct d9__recover_users *users)
{
	return is_own(users) ? &users->own : &users->list[users->next - 1];
}

/* ---- the users ---- */

static int add(struct d9__recover_users *users, uid_t uid, gid_t gid)
{
	if (uid == users->own.uid)
		return 0;
	for (size_t i = 0; i < users->n; i++)
		if (users->list[i].uid == uid)
			return 0;
	if (!d9__array_grow(users->list, users->n))
		return -ENOMEM;
	users->list[users->n++] = (struct d9__child_user) { uid, gid };
	return 0;
}

/* Add each user that owns a directory of rings under the user's own name. */
static int add_those_with_rings(struct d9__recover_users *users)
{
	DIR *shm = opendir(SHM_DIR);
	int err = 0;

	for (struct dirent *e; !err && shm && (e = readdir(shm));) {
		char name[32];
		struct stat st;

		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0 ||
		    fstatat(dirfd(shm), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
			continue;
		snprintf(name, sizeof(name), PREFIX "%u", (unsigned)st.st_uid);
		if (!strcmp(e->d_name, name))
			err = add(users, st.st_uid, st.st_gid);
	}
	if (shm)
		closedir(shm);
	return err;
}

/* ---- root's hands ---- */

/*
 * True if a ring of user |ring| (-1: there is none) may be written to |its|, the directory of a
 * process in |top|.  A user's directory takes that user's rings and root's.  Root's own takes also
 * those of a user to whom |its| was given.
 */
static bool may_write(const struct stat *top, const struct stat *its, uid_t ring)
{
	bool open_to_others = top->st_mode & 022;

	if (its->st_mode & 022)
		return false;
	if (top->st_uid)
		return its->st_uid == top->st_uid && (!ring || ring == top->st_uid || ring == (uid_t)-1);
	return its->st_uid == ring || ring == (uid_t)-1 || (!ring && !open_to_others);
}

/* |name| is missing in |top_fd|: made by who owns that, and for |user| if that is root. */
static int make_its(int top_fd, const struct stat *top, const char *name, const struct d9__child_user *user)
{
	const struct d9__child_user owner = { top->st_uid, top->st_gid };
	int fd, err;

	if (top->st_uid && user->uid && user->uid != top->st_uid)
		return -EPERM;
	err = d9__rights_take(&owner);
	if (err)
		return err;
	fd = d9__directory_enter(top_fd, name, D9__DIRECTORY_MAKE | D9__DIRECTORY_PRIVATE);
	d9__rights_give_back();
	if (fd >= 0 && !top->st_uid && user->uid && fchown(fd, user->uid, user->gid)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* The directory of process |name| in |top_fd|, which left a ring of |user|'s (NULL: none), and whose that is. */
static int open_its(int top_fd, const char *name, const struct d9__child_user *user, struct d9__child_user *owner)
{
	struct stat top, its = { 0 };
	int fd = fstat(top_fd, &top) ? -errno : d9__directory_enter(top_fd, name, D9__DIRECTORY_ANY);

	if (fd == -ENOENT && user)
		fd = make_its(top_fd, &top, name, user);
	if (fd >= 0 && (fstat(fd, &its) || !may_write(&top, &its, user ? user->uid : (uid_t)-1))) {
		close(fd);
		fd = -EPERM;
	}
	*owner = (struct d9__child_user){ its.st_uid, its.st_gid };
	return fd;
}

/* Enter and lock it. */
static int enter_its(const char *dir, const char *name, const struct d9__child_user *user,
		     struct d9__child_user *owner, struct d9__namespace *ns)
{
	int top_fd = d9__directory_open(dir, D9__DIRECTORY_MAKE | D9__DIRECTORY_SHARED), fd, err;

	if (top_fd < 0)
		return top_fd;
	fd = open_its(top_fd, name, user, owner);
	err = fd < 0 ? fd : d9__rights_take(owner);
	if (!err) {
		err = d9__namespace_adopt(ns, top_fd, fd, name);
		d9__rights_give_back();
		return err;
	}
	if (fd >= 0)
		close(fd);
	close(top_fd);
	return err;
}

/* With all rights of root. */
static bool rescue_as_root(struct d9__recover_users *users, const char *name, struct d9__dead_ring *ring,
			   struct d9__recovered *out)
{
	const struct d9__child_user *user = ring ? current(users) : NULL;
	struct d9__child_user owner = { 0, 0 };
	struct d9__namespace ns;
	bool found;

	d9__rescue_describe(users->into, name, ring, out);
	out->op = "open";
	out->err = enter_its(users->into, name, user, &owner, &ns);
	out->uid = user ? user->uid : owner.uid;
	if (out->err)
		return out->err != -EBUSY;
	found = d9__recover_child_rescue(user ? user : &owner, &owner, &ns, ring, out);
	d9__namespace_close(&ns);
	return found;
}

/* The walk goes on with the rights of its user. */
static void walk_on(const struct d9__recover_users *users)
{
	if (d9__rights_take(current(users)))
		abort();
}

static bool rescue(void *arg, const char *name, struct d9__dead_ring *ring, struct d9__recovered *out)
{
	struct d9__recover_users *users = arg;
	bool found;

	d9__rights_give_back();
	found = rescue_as_root(users, name, ring, out);
	walk_on(users);
	return found;
}

static bool is_empty(void *arg, struct d9__dead_ring *ring)
{
	struct d9__recover_users *users = arg;
	bool empty;

	d9__rights_give_back();
	empty = d9__recover_child_is_empty(current(users), ring);
	walk_on(users);
	return empty;
}

/* ---- one after the other ---- */

/* A trace directory is recovered with its owner's rights or not at all. */
static int begin_walk(struct d9__recover_users *users)
{
	unsigned flags = users->flags | D9__RECOVER_WAIT;
	int err;

	if (current(users)->uid != users->dir_uid)
		flags |= D9__RECOVER_RINGS;
	err = d9__recover_begin(&users->walk, users->dir[0] ? users->dir : NULL, flags);
	users->walking = !err;
	if (err)
		return err;
	memcpy(users->walk.into, users->into, sizeof(users->into));
	if (users->root)
		users->walk.hands = &users->hands;
	return 0;
}

/* The name without symbolic links of the directory |path|, and what it is; of strangers' links none is followed. */
static int look_up(const char *path, unsigned flags, char name[PATH_MAX], struct stat *st)
{
	char link[32];
	int fd = d9__directory_open(path, flags), err;
	ssize_t n;

	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, PATH_MAX - 1);
	err = n < 0 || fstat(fd, st) ? -errno : 0;
	name[n < 0 ? 0 : n] = '\0';
	close(fd);
	return err;
}

static int take_places(struct d9__recover_users *users, const char *trace_dir, const char *into, struct stat *st)
{
	struct stat unused;
	int err = trace_dir ? look_up(trace_dir, D9__DIRECTORY_ANY, users->dir, st) : 0;

	if (err)
		return err;
	if (into)
		return look_up(into, D9__DIRECTORY_MAKE | D9__DIRECTORY_SHARED, users->into, &unused);
	memcpy(users->into, users->dir, sizeof(users->into));
	return users->root && !trace_dir && !(users->flags & D9__RECOVER_DISCARD) ? -EINVAL : 0;
}

int d9__recover_users_begin(struct d9__recover_users *users, const char *trace_dir, const char *into, unsigned flags)
{
	struct stat st = { 0 };
	bool others;
	int err;

	*users = (struct d9__recover_users){ .flags = flags, .own = { geteuid(), getegid() },
					     .root = !geteuid(),
					     .hands = { rescue, is_empty, users } };
	err = take_places(users, trace_dir, into, &st);
	users->dir_uid = trace_dir && users->root ? st.st_uid : users->own.uid;
	/*
	 * With --discard, root removes its own rings in a given directory; with --all every user's.
	 */
	others = users->root && !(trace_dir && flags & D9__RECOVER_DISCARD);
	if (!err && others && trace_dir)
		err = add(users, st.st_uid, st.st_gid);
	if (!err && others)
		err = add_those_with_rings(users);
	if (err)
		d9__recover_users_end(users);
	return err;
}

void d9__recover_users_end(struct d9__recover_users *users)
{
	if (users->walking)
		d9__recover_end(&users->walk);
	users->walking = false;
	free(users->list);
	users->list = NULL;
	users->n = users->next = 0;
}

static int next_of_current(struct d9__recover_users *users, struct d9__recovered *out)
{
	int got = users->walking ? 0 : begin_walk(users);

	if (!got)
		got = d9__recover_next(&users->walk, out);
	if (got <= 0 && users->walking) {
		d9__recover_end(&users->walk);
		users->walking = false;
	}
	return got;
}

/* True if it is worth telling that nothing of this user's can be recovered: few have rings that
 * belong to |dir|. */
static bool is_missed(const struct d9__recover_users *users, int err, struct d9__recovered *out)
{
	const struct d9__child_user *user = current(users);

	if (!(users->flags & D9__RECOVER_OTHERS) || (users->dir[0] && user->uid != users->dir_uid))
		return false;
	*out = (struct d9__recovered){ .uid = user->uid, .err = err, .op = "recover" };
	if (users->dir[0])
		memcpy(out->dir, users->dir, sizeof(users->dir));
	else
		snprintf(out->dir, sizeof(out->dir), SHM_DIR "/" PREFIX "%u", (unsigned)user->uid);
	return true;
}

int d9__recover_users_next(struct d9__recover_users *users, struct d9__recovered *out)
{
	for (; users->next <= users->n; users->next++) {
		int got = users->root ? d9__rights_take(current(users)) : 0;

		if (!got) {
			got = next_of_current(users, out);
			if (users->root)
				d9__rights_give_back();
		}
		if (got > 0)
			return 1;
		if (got < 0 && is_missed(users, got, out)) {
			users->next++;
			return 1;
		}
	}
	return 0;
}

/* ---- telling ---- */

const char *d9__recover_why(char out[D9__RECOVER_WHY_LEN], const struct d9__recovered *found)
{
	char dir[sizeof(found->dir)], *slash;
	struct stat st;

	out[0] = '\0';
	memcpy(dir, found->dir, sizeof(dir));
	slash = strrchr(dir, '/');
	if (!slash || slash == dir || !found->ring || (found->err != -EPERM && found->err != -EACCES))
		return out;
	*slash = '\0';
	if (!stat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid != found->uid)
		snprintf(out, D9__RECOVER_WHY_LEN,
			 "; that is of user %u, and %.*s belongs to user %u: give it to the former, and recover again",
			 (unsigned)found->uid, PATH_MAX, dir, (unsigned)st.st_uid);
	return out;
}
