/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/assets.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const char *type_of(const char *name)
{
	static const char *const types[][2] = {
		{ ".html", "text/html; charset=utf-8" },
		{ ".js", "text/javascript; charset=utf-8" },
		{ ".css", "text/css; charset=utf-8" },
		{ ".svg", "image/svg+xml" },
		{ ".md", "text/markdown; charset=utf-8" },
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(dot, types[i][0]))
			return types[i][1];
	return NULL;
}

/* All of |path|, into |asset|. */
static int read_file(struct d9__asset *asset, const char *path)
{
	FILE *in = fopen(path, "re");
	char *data = NULL;
	size_t size = 0;
	ssize_t len;
	int err;

	if (!in)
		return -errno;
	errno = 0;
	len = getdelim(&data, &size, EOF, in);
	err = ferror(in) ? -errno : 0;
	fclose(in);
	if (err || len < 0) {
		free(data);
		return err ? err : -ENODATA;
	}
	asset->data = data;
	asset->len = (size_t)len;
	return 0;
}

static int add(struct d9__assets *assets, const char *dir, const char *folder, const char *file)
{
	char path[PATH_MAX];
	struct d9__asset *asset;

	if (!type_of(file))
		return 0;
	if (!d9__array_grow(assets->items, assets->n))
		return -ENOMEM;
	asset = &assets->items[assets->n];
	*asset = (struct d9__asset) { .type = type_of(file) };
	if (asprintf(&asset->name, "%s/%s", folder, file) < 0)
		return -ENOMEM;
	assets->n++;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, asset->name) >= sizeof(path))
		return -ENAMETOOLONG;
	return read_file(asset, path);
}

static int load_folder(struct d9__assets *assets, const char *dir, const char *folder)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *stream;
	int err = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, folder) >= sizeof(path))
		return -ENAMETOOLONG;
	stream = opendir(path);
	if (!stream)
		return -errno;
	while (!err && (entry = readdir(stream)))
		err = add(assets, dir, folder, entry->d_name);
	closedir(stream);
	return err;
}

int d9__assets_load(struct d9__assets *assets, const char *dir)
{
	int err = load_folder(assets, dir, "viewer");

	if (!err)
		err = load_folder(assets, dir, "toolkit");
	return err ? err : add(assets, dir, "doc", "ANALYSIS.md");
}

const struct d9__asset *d9__assets_find(const struct d9__assets *assets, const char *name)
{
	for (size_t i = 0; i < assets->n; i++)
		if (!strcmp(assets->items[i].name, name))
			return &assets->items[i];
	return NULL;
}

void d9__assets_release(struct d9__assets *assets)
{
	for (size_t i = 0; i < assets->n; i++) {
		free(assets->items[i].name);
		free(assets->items[i].data);
	}
	free(assets->items);
}
