/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/kept_dump.h"
#include "read/folder.h"
#include "serve/local_source.h"
#include "serve/source.h"

struct local {
	char *root; /* directory; owned */
	char *one;  /* the only name, where a file is served; owned, or NULL */
	bool is_dump; /* |one| is the manifest of a dump, and its segments are served */
};

/* Open the folder of the first |len| bytes of |name| in |dir|, which is closed.  A descriptor or -errno. */
static int enter(int dir, const char *name, size_t len)
{
	char *folder = strndup(name, len);
	int inner = folder ? openat(dir, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	int err = folder ? -errno : -ENOMEM;

	free(folder);
	close(dir);
	return inner < 0 ? err : inner;
}

/* Open |name| below |root| without following a link in it. */
static int open_below(const char *root, const char *name)
{
	int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, err;
	const char *slash;

	if (dir < 0)
		return -errno;
	for (; (slash = strchr(name, '/')); name = slash + 1)
		if ((dir = enter(dir, name, (size_t)(slash - name))) < 0)
			return dir;
	/* Not to wait for a writer where the file has become a pipe. */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	err = -errno;
	close(dir);
	return fd < 0 ? err : fd;
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

/*
 * Fill |segment| with the facts of the file |name|.  Below 0 if it is not a regular file: a link,
 * or removed since.
 */
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

/* Pass the segment |name| to |take|.  A symbolic link, or a file that was removed, is left out. */
static int take_one(const struct local *local, const char *name,
		    int (*take)(void *listing, const struct d9__source_segment *segment), void *listing, bool *left_out)
{
	struct d9__source_segment segment;
	int err = stat_below(local->root, name, &segment);

	*left_out = *left_out || err;
	if (err == -ENOMEM)
		return err;
	return err ? 0 : take(listing, &segment);
}

/* The manifest is read again each time, because it lists more when its dump's window closes. */
static int list_dump(const struct local *local, int (*take)(void *listing, const struct d9__source_segment *segment),
		     void *listing, bool *left_out)
{
	struct d9__kept_dump dump;
	char *path, *why = NULL;
	int err;

	if (asprintf(&path, "%s/%s", local->root, local->one) < 0)
		return -ENOMEM;
	err = d9__kept_dump_load(&dump, path, false, &why);
	for (size_t i = 0; i < dump.n_segments && !err; i++)
		if (!dump.segments[i].missing)
			err = take_one(local, strrchr(dump.segments[i].path, '/') + 1, take, listing, left_out);
	d9__kept_dump_release(&dump);
	free(why);
	free(path);
	return err;
}

static int list(void *context, int (*take)(void *listing, const struct d9__source_segment *segment),
		void *listing, bool *left_out)
{
	const struct local *local = context;
	struct d9__folder folder = { 0 };
	size_t skip = strlen(local->root);
	int err;

	*left_out = false;
	if (local->is_dump)
		return list_dump(local, take, listing, left_out);
	err = local->one ? 0 : d9__folder_list(&folder, local->root);
	skip += local->root[skip - 1] != '/';
	for (size_t i = 0; i < (local->one ? 1 : folder.n) && !err; i++) {
		const char *name = local->one ? local->one : folder.paths[i] + skip;

		if (local->one || d9__folder_is_segment_name(name))
			err = take_one(local, name, take, listing, left_out);
	}
	d9__folder_release(&folder);
	return err;
}

static char *path_of(void *context, const char *name)
{
	const struct local *local = context;
	char *path;

	if (!*name && local->one)
		name = local->one;
	return asprintf(&path, "%s/%s", local->root, name) < 0 ? NULL : path;
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

int d9__local_source(const char *path, struct d9__segment_source *out, const char **name)
{
	struct local *local = calloc(1, sizeof(*local));
	struct stat st;
	int err = 0;

	if (!local)
		return -ENOMEM;
	local->root = realpath(path, NULL);
	if (!local->root || stat(local->root, &st))
		err = -errno;
	else if (!S_ISDIR(st.st_mode)) {
		local->is_dump = d9__kept_dump_is(local->root);
		err = serve_one(local);
	}
	if (err) {
		free_local(local);
		return err;
	}
	*out = (struct d9__segment_source) { .context = local,
				     .whole = local->is_dump,
				     .list = list,
				     .open = open_segment,
				     .path = path_of,
				     .free = free_local };
	*name = local->one ? local->one : strrchr(local->root, '/') + 1;
	return 0;
}
