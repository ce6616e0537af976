/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/recover_users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM_DIR "/dev/shm"
#define PREFIX  "dial9-"

/* ---- rights ---- */

static gid_t own_groups[1024];
static int n_own_groups;

static void give_back(void)
{
	if (seteuid(getuid()) || setegid(getgid()) || setgroups((size_t)n_own_groups, own_groups))
		/* With rights that nobody reckons with, nothing may go on. */
		abort();
}

static int take(uid_t uid, gid_t gid)
{
	int err;

	n_own_groups = getgroups((int)(sizeof(own_groups) / sizeof(own_groups[0])), own_groups);
	if (n_own_groups < 0 || setgroups(0, NULL))
		return -errno;
	if (!setegid(gid) && !seteuid(uid))
		return 0;
	err = -errno;
	give_back();
	return err;
}

static const struct d9__rights rights = { take, give_back };

static bool is_own(const struct d9__recover_users *users)
{
	return !users->next;
}

static const struct d9__recover_user *current(const struct d9__recover_users *users)
{
	return is_own(users) ? &users->own : &users->list[users->next - 1];
}

/* ---- the users ---- */

static int add(struct d9__recover_users *users, uid_t uid, gid_t gid)
{
	struct d9__recover_user *grown;

	if (uid == users->own.uid)
		return 0;
	for (size_t i = 0; i < users->n; i++)
		if (users->list[i].uid == uid)
			return 0;
	grown = reallocarray(users->list, users->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	users->list = grown;
	grown[users->n++] = (struct d9__recover_user){ uid, gid };
	return 0;
}

/* Whoever has a directory of rings by the name that is theirs. */
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

/* ---- one after the other ---- */

/* What stands in the trace directory is its owner's to recover, or nobody's. */
static int begin_walk(struct d9__recover_users *users)
{
	unsigned flags = users->flags;
	int err;

	if (current(users)->uid != users->dir_uid)
		flags |= D9__RECOVER_RINGS;
	err = d9__recover_begin(&users->walk, users->dir[0] ? users->dir : NULL, flags);
	users->walking = !err;
	if (!err && is_own(users) && !users->own.uid)
		users->walk.rights = &rights;
	return err;
}

int d9__recover_users_begin(struct d9__recover_users *users, const char *trace_dir, unsigned flags)
{
	struct stat st = { 0 };
	int err = 0;

	*users = (struct d9__recover_users){ .flags = flags, .own = { geteuid(), getegid() } };
	if (trace_dir && (!realpath(trace_dir, users->dir) || stat(users->dir, &st)))
		return -errno;
	users->dir_uid = trace_dir ? st.st_uid : users->own.uid;
	if (!geteuid() && !getuid()) {
		if (trace_dir)
			err = add(users, st.st_uid, st.st_gid);
		if (!err)
			err = add_those_with_rings(users);
	} else {
		users->dir_uid = users->own.uid;
	}
	if (!err)
		err = begin_walk(users);
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

/* Whether it is worth telling that nothing of this user's can be recovered: few have rings that belong to |dir|. */
static bool is_missed(const struct d9__recover_users *users, int err, struct d9__recovered *out)
{
	const struct d9__recover_user *user = current(users);

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
		const struct d9__recover_user *user = current(users);
		int got = is_own(users) ? 0 : take(user->uid, user->gid);

		if (!got) {
			got = next_of_current(users, out);
			if (!is_own(users))
				give_back();
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
