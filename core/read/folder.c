/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
	if (folder->n == folder->capacity) {
		size_t capacity = folder->capacity ? folder->capacity * 2 : 32;
		char **paths = realloc(folder->paths, capacity * sizeof(*paths));

		if (!paths)
			return -ENOMEM;
		folder->paths = paths;
		folder->capacity = capacity;
	}
	folder->paths[folder->n++] = path;
	return 0;
}

/* The same segment in a worse form stands beside a better one: "x.bin.gz" is being written. */
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

/* Sort |name| of |dir| into |files| or |folders|. */
static int sort_entry(const char *dir, const char *name, struct d9__folder *files,
		      struct d9__folder *folders)
{
	struct stat st;
	char *path;
	int err = 0;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	path = join(dir, name);
	if (!path)
		return -ENOMEM;
	if (stat(path, &st) == 0) {
		if (S_ISREG(st.st_mode))
			err = append(files, path);
		else if (S_ISDIR(st.st_mode) && folders)
			err = append(folders, path);
		else
			free(path);
	} else {
		free(path);
	}
	return err;
}

static int list_one(struct d9__folder *files, struct d9__folder *folders, const char *dir)
{
	size_t from = files->n;
	struct dirent *entry;
	DIR *stream = opendir(dir);
	int err = 0;

	if (!stream)
		return -errno;
	while (!err && (entry = readdir(stream)) != NULL)
		err = sort_entry(dir, entry->d_name, files, folders);
	closedir(stream);
	if (files->n > from)
		qsort(files->paths + from, files->n - from, sizeof(*files->paths), compare_paths);
	drop_duplicates(files, from);
	return err;
}

int d9__folder_list(struct d9__folder *folder, const char *path)
{
	struct d9__folder inner = { 0 };
	int err = list_one(folder, &inner, path);

	if (!err && inner.n > 1)
		qsort(inner.paths, inner.n, sizeof(*inner.paths), compare_paths);
	for (size_t i = 0; i < inner.n && !err; i++) {
		err = list_one(folder, NULL, inner.paths[i]);
		/* A folder that vanished or is private hides its own segments only. */
		if (err != -ENOMEM)
			err = 0;
	}
	d9__folder_release(&inner);
	return err;
}

void d9__folder_release(struct d9__folder *folder)
{
	for (size_t i = 0; i < folder->n; i++)
		free(folder->paths[i]);
	free(folder->paths);
	*folder = (struct d9__folder) { 0 };
}
