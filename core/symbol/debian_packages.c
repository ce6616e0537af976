/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/texts.h"
#include "symbol/debian_packages.h"

struct search {
	struct d9__texts wanted; /* without the /usr that may or may not stand before them */
	char **by_wanted;	 /* packages, by number in |wanted| */
};

static const char *without_usr(const char *path)
{
	return !strncmp(path, "/usr/", 5) ? path + 4 : path;
}

/* "libc6:amd64.list" -> "libc6-dbg": that one alone has a package of the older kind. */
static char *debug_package(const char *list)
{
	size_t len = strcspn(list, ":");
	const char *dot = strrchr(list, '.');
	char *package;

	if (!list[len] && dot)
		len = (size_t)(dot - list);
	return asprintf(&package, "%.*s%s", (int)len, list,
			len == 5 && !strncmp(list, "libc6", len) ? "-dbg" : "-dbgsym") < 0 ? NULL : package;
}

/* |list| has a file a line. */
static int look_through(struct search *search, FILE *file, const char *list)
{
	char *line = NULL;
	size_t size = 0;
	uint32_t number;
	ssize_t len;
	int err = 0;

	while (!err && (len = getline(&line, &size, file)) > 0) {
		const char *path = without_usr(line);

		len -= path - line + (line[len - 1] == '\n');
		if (len <= 0 || !d9__texts_find(&search->wanted, path, (size_t)len, &number) ||
		    search->by_wanted[number])
			continue;
		search->by_wanted[number] = debug_package(list);
		err = search->by_wanted[number] ? 0 : -ENOMEM;
	}
	free(line);
	return err;
}

static int look_at(struct search *search, DIR *dir, const char *name)
{
	const char *dot = strrchr(name, '.');
	int fd = dot && !strcmp(dot, ".list") ? openat(dirfd(dir), name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	int err;

	if (!file)
		return 0;
	err = look_through(search, file, name);
	fclose(file);
	return err;
}

static int want(struct search *search, const char *const *files, size_t n)
{
	uint32_t number;
	int err = 0;

	search->by_wanted = calloc(n + 1, sizeof(*search->by_wanted));
	if (!search->by_wanted)
		return -ENOMEM;
	for (size_t i = 0; !err && i < n; i++)
		err = d9__texts_number(&search->wanted, without_usr(files[i]), strlen(without_usr(files[i])), &number);
	return err;
}

/* Hand out what was found.  Several files may be one but for their /usr. */
static int answer(const struct search *search, const char *const *files, size_t n, char **packages)
{
	uint32_t number;

	for (size_t i = 0; i < n; i++) {
		const char *path = without_usr(files[i]);

		packages[i] = NULL;
		if (!d9__texts_find(&search->wanted, path, strlen(path), &number) || !search->by_wanted[number])
			continue;
		packages[i] = strdup(search->by_wanted[number]);
		if (!packages[i])
			return -ENOMEM;
	}
	return 0;
}

int d9__debian_debug_packages(const char *info, const char *const *files, size_t n, char **packages)
{
	struct search search = { 0 };
	DIR *dir = n ? opendir(info) : NULL;
	const struct dirent *entry;
	int err = want(&search, files, n);

	memset(packages, 0, n * sizeof(*packages));
	while (!err && dir && (entry = readdir(dir)))
		err = look_at(&search, dir, entry->d_name);
	if (!err)
		err = answer(&search, files, n, packages);
	if (dir)
		closedir(dir);
	for (size_t i = 0; search.by_wanted && i < search.wanted.n; i++)
		free(search.by_wanted[i]);
	free(search.by_wanted);
	d9__texts_release(&search.wanted);
	return err;
}
