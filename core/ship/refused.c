/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/refused.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/directory.h"
#include "record/retention.h"

#define FOLDER "refused"
#define MOST   16

struct found {
	char oldest[NAME_MAX + 1], latest[NAME_MAX + 1];
	uint64_t oldest_index, latest_index;
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
		if (!found->n || index > found->latest_index) {
			found->latest_index = index;
			snprintf(found->latest, sizeof(found->latest), "%s", entry->d_name);
		}
		found->n++;
	}
	closedir(dir);
	return 0;
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
		unlinkat(fd, found.oldest, 0);
	if (!err && !d9__claim_holds(claim))
		err = -EAGAIN;
	else if (!err && renameat(claim->dir, claim->name, fd, claim->name))
		err = -errno;
	close(fd);
	return err;
}

int d9__refused_return(int dir)
{
	struct found found;
	int fd = d9__directory_enter(dir, FOLDER, 0), err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = look(fd, &found);
	if (!err && found.n && renameat(fd, found.latest, dir, found.latest))
		err = -errno;
	close(fd);
	if (!err)
		unlinkat(dir, FOLDER, AT_REMOVEDIR);
	return err ? err : found.n > 0;
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
