/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Compare the numbers at |*a| and |*b| and move behind them. */
static int compare_numbers(const char **a, const char **b)
{
	size_t len_a, len_b;
	int order;

	*a += strspn(*a, "0");
	*b += strspn(*b, "0");
	len_a = strspn(*a, "0123456789");
	len_b = strspn(*b, "0123456789");
	if (len_a != len_b)
		return len_a < len_b ? -1 : 1;
	order = strncmp(*a, *b, len_a);
	*a += len_a;
	*b += len_b;
	return order;
}

int d9__folder_compare(const char *a, const char *b)
{
	const char *whole_a = a, *whole_b = b;

	while (*a && *b) {
		if (is_digit(*a) && is_digit(*b)) {
			int order = compare_numbers(&a, &b);

			if (order)
				return order;
		} else if (*a != *b) {
			break;
		} else {
			a++, b++;
		}
	}
	if (*a != *b)
		return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
	return strcmp(whole_a, whole_b);
}

static int compare_paths(const void *a, const void *b)
{
	return d9__folder_compare(*(char *const *)a, *(char *const *)b);
}

/* Where ".bin", ".bin.gz", ".bin.zst" and their ".active" begin, and how good the form is. */
static const char *form_of(const char *path, int *rank)
{
	static const char *const forms[] = { ".bin",        ".bin.zst",        ".bin.gz",
					     ".bin.active", ".bin.zst.active", ".bin.gz.active" };
	size_t len = strlen(path);

	for (int i = 0; i < (int)(sizeof(forms) / sizeof(forms[0])); i++) {
		size_t suffix = strlen(forms[i]);

		if (len > suffix && strcmp(path + len - suffix, forms[i]) == 0) {
			*rank = i;
			return path + len - suffix;
		}
	}
	return NULL;
}

bool d9__folder_is_segment_name(const char *path)
{
	int rank;

	return form_of(path, &rank) != NULL;
}

static int append(struct d9__folder *folder, char *path)
{
	if (!d9__array_grow(folder->paths, folder->n))
		return -ENOMEM;
	folder->paths[folder->n++] = path;
	return 0;
}

/*
 * True if |a| and |b| are forms of one segment: while "x.bin.gz" is written it stands beside
 * "x.bin".
 */
static bool same_segment(const char *a, const char *b)
{
	int rank_a, rank_b;
	const char *form_a = form_of(a, &rank_a), *form_b = form_of(b, &rank_b);

	return form_a && form_b && form_a - a == form_b - b &&
	       strncmp(a, b, (size_t)(form_a - a)) == 0;
}

static bool better(const char *a, const char *b)
{
	int rank_a = 0, rank_b = 0;

	form_of(a, &rank_a);
	form_of(b, &rank_b);
	return rank_a < rank_b;
}

/* Neighbours after sorting: forms of one segment differ in what follows its number only. */
static void drop_duplicates(struct d9__folder *folder, size_t from)
{
	size_t n = from;

	for (size_t i = from; i < folder->n; i++) {
		char *path = folder->paths[i];

		if (n == from || !same_segment(folder->paths[n - 1], path)) {
			folder->paths[n++] = path;
			continue;
		}
		if (better(path, folder->paths[n - 1])) {
			free(folder->paths[n - 1]);
			folder->paths[n - 1] = path;
		} else {
			free(path);
		}
	}
	folder->n = n;
}

static char *join(const char *dir, const char *name)
{
	size_t len = strlen(dir);
	char *path;

	if (asprintf(&path, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", name) < 0)
		return NULL;
	return path;
}

/* |wanted|: all that are called so; NULL: what may be a segment.  |left|: into how many more folders one may look. */
struct search {
	bool (*wanted)(const char *name);
	unsigned left;
};

/*
 * Whether |name| in |dir|, at |level|, is listed as the file (S_IFREG) or folder (S_IFDIR) that it
 * is, else 0.  Below the first folders only segments' names are, because a tree may hold anything;
 * and links to folders are followed at the top alone, because a tree with links need not end.  The
 * caller that opens a wanted name finds out whether it is a file.
 */
static mode_t type_at(const struct search *search, DIR *dir, const char *name, unsigned level)
{
	struct stat st;
	bool is_link;

	if (!strcmp(name, ".") || !strcmp(name, "..") || fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	is_link = S_ISLNK(st.st_mode);
	if (search->wanted && !S_ISDIR(st.st_mode) && search->wanted(name))
		return S_IFREG;
	if (is_link && fstatat(dirfd(dir), name, &st, 0))
		return 0;
	if (!search->wanted && S_ISREG(st.st_mode) && (level <= 1 || d9__folder_is_segment_name(name)))
		return S_IFREG;
	return S_ISDIR(st.st_mode) && (!is_link || level == 0) ? S_IFDIR : 0;
}

/* List the folder |dir| itself, which is |level| levels below the one that was given. */
static int list_one(const struct search *search, struct d9__folder *files, struct d9__folder *folders, const char *dir,
		    unsigned level)
{
	size_t from = files->n;
	struct dirent *entry;
	DIR *stream = opendir(dir);
	int err = 0;

	if (!stream)
		return -errno;
	while (!err && (entry = readdir(stream)) != NULL) {
		mode_t type = type_at(search, stream, entry->d_name, level);
		char *path = type ? join(dir, entry->d_name) : NULL;

		if (type)
			err = path ? append(type == S_IFREG ? files : folders, path) : -ENOMEM;
	}
	closedir(stream);
	if (files->n > from)
		qsort(files->paths + from, files->n - from, sizeof(*files->paths), compare_paths);
	drop_duplicates(files, from);
	if (folders->n)
		qsort(folders->paths, folders->n, sizeof(*folders->paths), compare_paths);
	return err;
}

static int list_tree(struct search *search, struct d9__folder *files, const char *dir, unsigned level)
{
	struct d9__folder folders = { 0 };
	int err = list_one(search, files, &folders, dir, level);

	for (size_t i = 0; level < D9__FOLDER_LEVELS && i < folders.n && !err; i++) {
		err = search->left ? --search->left, list_tree(search, files, folders.paths[i], level + 1) : -EFBIG;
		/* A folder that vanished or is private hides its own segments only. */
		if (err != -ENOMEM && err != -EFBIG)
			err = 0;
	}
	d9__folder_release(&folders);
	return err;
}

int d9__folder_list(struct d9__folder *folder, const char *path)
{
	return d9__folder_list_named(folder, path, NULL);
}

int d9__folder_list_named(struct d9__folder *folder, const char *path, bool (*wanted)(const char *name))
{
	struct search search = { wanted, D9__FOLDER_MAX };

	return list_tree(&search, folder, path, 0);
}

void d9__folder_release(struct d9__folder *folder)
{
	for (size_t i = 0; i < folder->n; i++)
		free(folder->paths[i]);
	free(folder->paths);
	*folder = (struct d9__folder) { 0 };
}

int d9__folder_is_held(int dir_fd)
{
	int fd = openat(dir_fd, ".lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), held;

	if (fd < 0)
		return -errno;
	held = flock(fd, LOCK_SH | LOCK_NB) != 0;
	close(fd);
	return held;
}
