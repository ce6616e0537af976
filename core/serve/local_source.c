/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/folder.h"
#include "serve/source.h"

struct local {
	char *root; /* directory; owned */
	char *one;  /* the only name, where a file is served; owned, or NULL */
};

/* Open |name| below |root| without following a link in it; at most one folder deep. */
static int open_below(const char *root, const char *name)
{
	const char *slash = strchr(name, '/');
	int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), inner, fd, err;
	char *folder;

	if (dir < 0)
		return -errno;
	if (slash) {
		folder = strndup(name, (size_t)(slash - name));
		inner = folder ? openat(dir, folder,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			       : -1;
		err = folder ? -errno : -ENOMEM;
		free(folder);
		close(dir);
		if (inner < 0)
			return err;
		dir = inner;
		name = slash + 1;
	}
	/* Not to wait for a writer where the file has become a pipe. */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	err = -errno;
	close(dir);
	if (fd < 0)
		return err;
	return fd;
}

static int open_segment(void *context, const char *name)
{
	return open_below(((struct local *)context)->root, name);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), tail = strlen(end);

	return len >= tail && !strcmp(text + len - tail, end);
}

/* What is said of |name|; below 0 if it is no file that is really there: a link, or it was removed
 * since. */
static int stat_below(const char *root, const char *name, struct d9__source_segment *segment)
{
	int fd = open_below(root, name), err;
	struct stat st;

	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) ? -ENOENT : 0;
	close(fd);
	if (!err)
		*segment = (struct d9__source_segment) {
			.name = name,
			.bytes = (uint64_t)st.st_size,
			.modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
			.active = ends_with(name, ".active"),
		};
	return err;
}

static int list(void *context, int (*take)(void *listing, const struct d9__source_segment *segment),
		void *listing, bool *left_out)
{
	const struct local *local = context;
	struct d9__source_segment segment;
	struct d9__folder folder = { 0 };
	size_t skip = strlen(local->root);
	int err = local->one ? 0 : d9__folder_list(&folder, local->root);

	*left_out = false;
	skip += local->root[skip - 1] != '/';
	for (size_t i = 0; i < (local->one ? 1 : folder.n) && !err; i++) {
		const char *name = local->one ? local->one : folder.paths[i] + skip;

		if (!local->one && !d9__folder_is_segment_name(name))
			continue;
		err = stat_below(local->root, name, &segment);
		*left_out = *left_out || err;
		if (err != -ENOMEM)
			err = err ? 0 : take(listing, &segment);
	}
	d9__folder_release(&folder);
	return err;
}

static char *path_of(void *context, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", ((struct local *)context)->root, name) < 0 ? NULL : path;
}

static void free_local(void *context)
{
	struct local *local = context;

	free(local->root);
	free(local->one);
	free(local);
}

/* Split the file |local->root| into its directory and name. */
static int serve_one(struct local *local)
{
	char *slash = strrchr(local->root, '/');

	local->one = strdup(slash + 1);
	slash[slash == local->root] = '\0';
	return local->one ? 0 : -ENOMEM;
}

int d9__source_local(const char *path, struct d9__source *out, const char **name)
{
	struct local *local = calloc(1, sizeof(*local));
	struct stat st;
	int err = 0;

	if (!local)
		return -ENOMEM;
	local->root = realpath(path, NULL);
	if (!local->root || stat(local->root, &st))
		err = -errno;
	else if (!S_ISDIR(st.st_mode))
		err = serve_one(local);
	if (err) {
		free_local(local);
		return err;
	}
	*out = (struct d9__source) { .context = local,
				     .list = list,
				     .open = open_segment,
				     .path = path_of,
				     .free = free_local };
	*name = local->one ? local->one : strrchr(local->root, '/') + 1;
	return 0;
}
