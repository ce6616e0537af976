/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/refused.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/artefact.h"
#include "base/directory.h"
#include "ship/hour.h"

#define FOLDER "refused"
#define MOST   16

struct found {
	char oldest[NAME_MAX + 1];
	uint64_t oldest_index;
	size_t n;
};

static int look(int fd, struct found *found)
{
	int own = dup(fd);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	struct dirent *entry;

	*found = (struct found) { 0 };
	if (!dir) {
		if (own >= 0)
			close(own);
		return -ENOMEM;
	}
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL) {
		uint64_t index;

		if (d9__artefact_of(entry->d_name, &index) != D9__ARTEFACT_SEGMENT)
			continue;
		if (!found->n || index < found->oldest_index) {
			found->oldest_index = index;
			snprintf(found->oldest, sizeof(found->oldest), "%s", entry->d_name);
		}
		found->n++;
	}
	closedir(dir);
	return 0;
}

/* Remove the oldest segment of the folder |fd|, once its gap is written down in |dir|. */
static int make_room(int dir, int fd, const struct found *found)
{
	struct stat st;
	int err;

	if (fstatat(fd, found->oldest, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	err = d9__hour_lose(dir, found->oldest_index, (uint64_t)st.st_mtim.tv_sec);
	return err ? err : unlinkat(fd, found->oldest, 0) ? -errno : 0;
}

int d9__refused_take(const struct d9__claim *claim)
{
	struct found found;
	int fd, err;

	if (mkdirat(claim->dir, FOLDER, 0700) && errno != EEXIST)
		return -errno;
	fd = d9__directory_enter(claim->dir, FOLDER, 0);
	if (fd < 0)
		return fd;
	err = look(fd, &found);
	if (!err && found.n >= MOST)
		err = make_room(claim->dir, fd, &found);
	if (!err && !d9__claim_holds(claim))
		err = -EAGAIN;
	else if (!err && renameat(claim->dir, claim->name, fd, claim->name))
		err = -errno;
	close(fd);
	return err;
}

/* Move |name| out of the folder in |dir|.  1 or -errno. */
static int move_back(int dir, const char *name)
{
	int fd = d9__directory_enter(dir, FOLDER, 0), err;

	if (fd < 0)
		return fd;
	err = renameat(fd, name, dir, name) ? -errno : 1;
	close(fd);
	unlinkat(dir, FOLDER, AT_REMOVEDIR);
	return err;
}

int d9__refused_return(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *above = slash ? strndup(path, (size_t)(slash - path) + !(slash - path)) : strdup(".");
	int dir = above ? d9__directory_open(above, 0) : -ENOMEM, err = dir;

	if (dir >= 0) {
		err = move_back(dir, slash ? slash + 1 : path);
		close(dir);
	}
	free(above);
	return err == -ENOENT ? 0 : err;
}

size_t d9__refused_count(int dir)
{
	struct found found = { 0 };
	int fd = d9__directory_enter(dir, FOLDER, 0);

	if (fd < 0)
		return 0;
	look(fd, &found);
	close(fd);
	return found.n;
}
