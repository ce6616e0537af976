/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/array.h"
#include "base/artefact.h"
#include "base/directory.h"

#define LEVELS 2 /* above the directories of processes */

static char *join(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void tell(const struct d9__ship_tree *tree, const char *path, const char *what)
{
	if (tree->tell)
		tree->tell(tree->context, path, what);
}

/* ---- one process ---- */

static int add_segment(struct d9__ship_process *process, const char *dir, const char *name, uint64_t index, size_t of)
{
	if (!d9__array_grow(process->segments, process->n_segments))
		return -ENOMEM;
	process->segments[process->n_segments] =
		(struct d9__ship_segment) { .path = join(dir, name), .index = index, .of = of };
	return process->segments[process->n_segments++].path ? 0 : -ENOMEM;
}

/* Add a dump, unless its window is still open. */
static int add_dump(struct d9__ship_tree *tree, struct d9__ship_process *process, const char *name)
{
	char *path = join(process->path, name), *why = NULL;
	struct d9__kept_dump *dump;
	int err;

	if (!path || !d9__array_grow(process->dumps, process->n_dumps)) {
		free(path);
		return -ENOMEM;
	}
	dump = &process->dumps[process->n_dumps];
	err = d9__kept_dump_load(dump, path, false, &why);
	if (err && err != -ENOMEM && err != -ENOENT)
		tell(tree, path, why ? why : d9_strerror(err));
	free(why);
	free(path);
	if (err || dump->state == D9__KEPT_OPEN)
		d9__kept_dump_release(dump);
	else
		process->n_dumps++;
	return err == -ENOMEM ? err : 0;
}

static int list_in_dumps(struct d9__ship_process *process)
{
	for (size_t d = 0; d < process->n_dumps; d++)
		for (size_t s = 0; s < process->dumps[d].n_segments; s++)
			for (size_t i = 0; i < process->n_segments; i++) {
				struct d9__ship_segment *segment = &process->segments[i];
				char *ids;

				if (strcmp(base_name(segment->path), process->dumps[d].segments[s].name))
					continue;
				if (asprintf(&ids, "%s%s%s", segment->dumps ? segment->dumps : "", segment->dumps ? "," : "",
					     process->dumps[d].id) < 0)
					return -ENOMEM;
				free(segment->dumps);
				segment->dumps = ids;
			}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	const struct d9__ship_segment *left = a, *right = b;

	return left->index < right->index ? -1 : left->index > right->index;
}

static int by_id(const void *a, const void *b)
{
	const struct d9__kept_dump *left = a, *right = b;

	return strcmp(left->id, right->id);
}

static int list_process(struct d9__ship_tree *tree, struct d9__ship_process *process, DIR *dir)
{
	struct dirent *entry;
	int err = 0;

	while (!err && (entry = readdir(dir)) != NULL) {
		uint64_t index;
		enum d9__artefact what = d9__artefact_of(entry->d_name, &index);

		if (what == D9__ARTEFACT_SEGMENT)
			err = add_segment(process, process->path, entry->d_name, index, tree->n - 1);
		else if (what == D9__ARTEFACT_MANIFEST)
			err = add_dump(tree, process, entry->d_name);
	}
	if (process->n_segments)
		qsort(process->segments, process->n_segments, sizeof(*process->segments), by_index);
	if (process->n_dumps)
		qsort(process->dumps, process->n_dumps, sizeof(*process->dumps), by_id);
	return err ? err : list_in_dumps(process);
}

static struct d9__ship_process *new_process(struct d9__ship_tree *tree, const char *path)
{
	struct d9__ship_process *own;
	char *copy = strdup(path);

	if (!copy || !d9__array_grow(tree->processes, tree->n)) {
		free(copy);
		return NULL;
	}
	own = &tree->processes[tree->n++];
	*own = (struct d9__ship_process) { .path = copy };
	snprintf(own->boot_id, sizeof(own->boot_id), "%.31s", base_name(path));
	return own;
}

static int add_process(struct d9__ship_tree *tree, const char *path)
{
	struct d9__ship_process *process;
	int fd = d9__directory_open(path, 0), err;
	DIR *dir;

	if (fd < 0) {
		tree->n_refused += fd != -ENOENT;
		if (fd != -ENOENT)
			tell(tree, path, fd == -EPERM ? "it is not this user's alone; run dial9 ship as the user that records" :
				  d9_strerror(fd));
		return 0;
	}
	dir = fdopendir(fd);
	process = dir ? new_process(tree, path) : NULL;
	err = process ? list_process(tree, process, dir) : -ENOMEM;
	if (dir)
		closedir(dir);
	else
		close(fd);
	return err;
}

/* ---- and what holds them ---- */

static bool is_directory(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode);
}

static int add_directory(struct d9__ship_tree *tree, const char *path, unsigned level)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)) != NULL) {
		char *below = entry->d_name[0] == '.' ? NULL : join(path, entry->d_name);

		if (below && is_directory(below)) {
			if (d9__boot_id_valid(entry->d_name))
				err = add_process(tree, below);
			else if (level + 1 < LEVELS && (err = add_directory(tree, below, level + 1)) != -ENOMEM && err) {
				tree->n_refused++;
				tell(tree, below, d9_strerror(err));
				err = 0;
			}
		}
		free(below);
	}
	closedir(dir);
	return err;
}

static int add_file(struct d9__ship_tree *tree, const char *path)
{
	const char *name = base_name(path);
	size_t len = (size_t)(name - path);
	char *dir = len ? strndup(path, len > 1 ? len - 1 : 1) : strdup(".");
	struct d9__ship_process *process = dir ? new_process(tree, dir) : NULL;
	uint64_t index = 0;

	free(dir);
	d9__artefact_of(name, &index);
	return process ? add_segment(process, process->path, name, index, tree->n - 1) : -ENOMEM;
}

int d9__ship_tree_add(struct d9__ship_tree *tree, const char *path)
{
	struct stat st;
	char *plain;
	size_t len;
	int err;

	if (stat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return add_file(tree, path);
	plain = strdup(path);
	if (!plain)
		return -ENOMEM;
	for (len = strlen(plain); len > 1 && plain[len - 1] == '/'; len--)
		plain[len - 1] = '\0';
	err = d9__boot_id_valid(base_name(plain)) ? add_process(tree, plain) : add_directory(tree, plain, 0);
	free(plain);
	return err;
}

void d9__ship_tree_release(struct d9__ship_tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		struct d9__ship_process *process = &tree->processes[i];

		for (size_t k = 0; k < process->n_segments; k++) {
			free(process->segments[k].path);
			free(process->segments[k].dumps);
		}
		for (size_t k = 0; k < process->n_dumps; k++)
			d9__kept_dump_release(&process->dumps[k]);
		free(process->segments);
		free(process->dumps);
		free(process->path);
	}
	free(tree->processes);
	*tree = (struct d9__ship_tree) { 0 };
}
