/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/fetched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define NAME_BYTES 20 /* of the sum */
#define UNFINISHED "new."

struct d9__fetched {
	char *path; /* owned */
	int dir;
	uint64_t bytes_max;
	unsigned serial;
};

struct d9__fetched *d9__fetched_new(int dir, const char *path, uint64_t bytes_max)
{
	struct d9__fetched *fetched = calloc(1, sizeof(*fetched));

	if (fetched) {
		*fetched = (struct d9__fetched) { .path = strdup(path), .dir = dir, .bytes_max = bytes_max };
		if (fetched->path)
			return fetched;
	}
	free(fetched);
	close(dir);
	return NULL;
}

void d9__fetched_name(const char *what, const char *ending, char name[D9__FETCHED_NAME])
{
	unsigned char digest[EVP_MAX_MD_SIZE] = { 0 };

	EVP_Digest(what, strlen(what), digest, NULL, EVP_sha256(), NULL);
	for (size_t i = 0; i < NAME_BYTES; i++)
		snprintf(name + 2 * i, 3, "%02x", digest[i]);
	snprintf(name + (size_t)2 * NAME_BYTES, D9__FETCHED_NAME - 2 * NAME_BYTES, "%s", ending);
}

static bool is_own_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

int d9__fetched_open(struct d9__fetched *fetched, const char *name)
{
	int fd = openat(fetched->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!is_own_file(fd)) {
		close(fd);
		return -ENOENT;
	}
	/* Which were used longest ago is told by their times. */
	futimens(fd, NULL);
	return fd;
}

char *d9__fetched_path(const struct d9__fetched *fetched, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", fetched->path, name) < 0 ? NULL : path;
}

int d9__fetched_begin(struct d9__fetched *fetched, char name[D9__FETCHED_NAME])
{
	int fd;

	do {
		snprintf(name, D9__FETCHED_NAME, UNFINISHED "%ld.%u", (long)getpid(), fetched->serial++);
		fd = openat(fetched->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EEXIST);
	return fd < 0 ? -errno : fd;
}

/* ---- room ---- */

struct file {
	char name[D9__FETCHED_NAME];
	uint64_t bytes;
	struct timespec used;
};

static int compare_uses(const void *left, const void *right)
{
	const struct file *a = left, *b = right;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* List our files in |dir|, in new memory. */
static struct file *list_files(DIR *dir, size_t *n, uint64_t *bytes)
{
	struct file *files = NULL;

	for (const struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;

		if (strlen(entry->d_name) >= D9__FETCHED_NAME || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (!d9__array_grow(files, *n))
			break;
		files[*n] = (struct file) { .bytes = (uint64_t)st.st_size, .used = st.st_mtim };
		snprintf(files[(*n)++].name, D9__FETCHED_NAME, "%s", entry->d_name);
		*bytes += (uint64_t)st.st_size;
	}
	return files;
}

/* Remove the files that were used longest ago until the rest fits; |kept| stays. */
static void make_room(struct d9__fetched *fetched, const char *kept)
{
	int fd = openat(fetched->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t bytes = 0;
	size_t n = 0;
	struct file *files;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	files = list_files(dir, &n, &bytes);
	if (n)
		qsort(files, n, sizeof(*files), compare_uses);
	for (size_t i = 0; i < n && bytes > fetched->bytes_max; i++)
		if (strcmp(files[i].name, kept) && !unlinkat(fetched->dir, files[i].name, 0))
			bytes -= files[i].bytes;
	free(files);
	closedir(dir);
}

int d9__fetched_keep(struct d9__fetched *fetched, const char *unfinished, const char *name)
{
	if (renameat(fetched->dir, unfinished, fetched->dir, name))
		return -errno;
	make_room(fetched, name);
	return 0;
}

void d9__fetched_drop(struct d9__fetched *fetched, const char *unfinished)
{
	unlinkat(fetched->dir, unfinished, 0);
}

void d9__fetched_free(struct d9__fetched *fetched)
{
	if (!fetched)
		return;
	close(fetched->dir);
	free(fetched->path);
	free(fetched);
}
