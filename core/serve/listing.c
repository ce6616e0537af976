/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/folder.h"

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME  UINT64_C(0x100000001b3)

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * FNV_PRIME;
	return hash;
}

int d9__listing_init(struct d9__listing *listing, const char *path)
{
	struct stat st;
	char *slash;

	*listing = (struct d9__listing) { .root = realpath(path, NULL) };
	if (!listing->root)
		return -errno;
	if (stat(listing->root, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return d9__listing_refresh(listing);
	slash = strrchr(listing->root, '/');
	listing->one = strdup(slash + 1);
	if (!listing->one)
		return -ENOMEM;
	slash[slash == listing->root] = '\0';
	return d9__listing_refresh(listing);
}

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

static int stat_below(const char *root, const char *name, struct stat *st)
{
	int fd = open_below(root, name), err;

	if (fd < 0)
		return fd;
	err = fstat(fd, st) ? -errno : !S_ISREG(st->st_mode) ? -ENOENT : 0;
	close(fd);
	return err;
}

static void release_items(struct d9__listing *listing)
{
	for (size_t i = 0; i < listing->n; i++)
		free(listing->items[i].name);
	free(listing->items);
	listing->items = NULL;
	listing->n = 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), tail = strlen(end);

	return len >= tail && !strcmp(text + len - tail, end);
}

/* Add |name| if it is a file that is really there. */
static int add(struct d9__listing *listing, const char *name)
{
	struct d9__listed *item = &listing->items[listing->n];
	struct stat st;
	int err = stat_below(listing->root, name, &st);

	if (err == -ENOMEM)
		return err;
	if (err) {
		/* A link, or it was removed since. */
		listing->left_out = true;
		return 0;
	}
	item->name = strdup(name);
	if (!item->name)
		return -ENOMEM;
	item->bytes = (uint64_t)st.st_size;
	item->modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	item->active = ends_with(name, ".active");
	listing->n++;
	listing->identity = mix(listing->identity, name, strlen(name) + 1);
	listing->identity = mix(listing->identity, &item->bytes, sizeof(item->bytes));
	listing->identity = mix(listing->identity, &item->modified_ns, sizeof(item->modified_ns));
	return 0;
}

static int fill(struct d9__listing *listing, const struct d9__folder *folder)
{
	size_t skip = strlen(listing->root), n = listing->one ? 1 : folder->n;
	int err = 0;

	skip += listing->root[skip - 1] != '/';
	listing->items = calloc(n ? n : 1, sizeof(*listing->items));
	if (!listing->items)
		return -ENOMEM;
	if (listing->one)
		return add(listing, listing->one);
	for (size_t i = 0; i < n && !err; i++)
		if (d9__folder_is_segment_name(folder->paths[i]))
			err = add(listing, folder->paths[i] + skip);
	return err;
}

int d9__listing_refresh(struct d9__listing *listing)
{
	struct d9__folder folder = { 0 };
	int err = listing->one ? 0 : d9__folder_list(&folder, listing->root);

	release_items(listing);
	listing->left_out = false;
	listing->identity = FNV_OFFSET;
	if (!err)
		err = fill(listing, &folder);
	d9__folder_release(&folder);
	return err;
}

int d9__listing_open(const struct d9__listing *listing, const char *name, uint64_t *bytes)
{
	struct stat st;
	int fd = -ENOENT;

	for (size_t i = 0; i < listing->n && fd == -ENOENT; i++)
		if (!strcmp(listing->items[i].name, name))
			fd = open_below(listing->root, name);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	*bytes = (uint64_t)st.st_size;
	return fd;
}

void d9__listing_release(struct d9__listing *listing)
{
	release_items(listing);
	free(listing->root);
	free(listing->one);
}
