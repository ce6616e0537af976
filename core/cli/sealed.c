/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <dial9/error.h>

#include "analyze/kept_dump.h"
#include "base/array.h"
#include "base/artefact.h"
#include "cli/cmd.h"
#include "cli/sealed.h"
#include "tool/trace_input.h"

#define ACTIVE ".active"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_active(const char *path)
{
	size_t len = strlen(path);

	return len > strlen(ACTIVE) && !strcmp(path + len - strlen(ACTIVE), ACTIVE);
}

static int add(struct d9__sealed *sealed, const char *path)
{
	struct d9__folder *list = &sealed->files;
	char *own = strdup(path);

	if (!own || !d9__array_grow(list->paths, list->n)) {
		free(own);
		return -ENOMEM;
	}
	list->paths[list->n++] = own;
	return 0;
}

/* Add the sealed segments below |path| and ignore its other files. */
static int add_folder(struct d9__sealed *sealed, const char *path)
{
	struct d9__folder all = { 0 };
	int err = d9__folder_list(&all, path);
	uint64_t index;

	for (size_t i = 0; !err && i < all.n; i++) {
		sealed->n_active += is_active(all.paths[i]);
		if (d9__artefact_of(base_name(all.paths[i]), &index) == D9__ARTEFACT_SEGMENT)
			err = add(sealed, all.paths[i]);
	}
	d9__folder_release(&all);
	return err;
}

/* Add the sealed segments of the dump at |path|.  A missing one is told and skipped. */
static int add_dump(struct d9__sealed *sealed, const char *command, const char *path)
{
	struct d9__kept_dump dump;
	int status = d9__dump_open(command, path, &dump), err = 0;

	for (size_t i = 0; !status && !err && i < dump.n_segments; i++) {
		const struct d9__kept_segment *segment = &dump.segments[i];

		if (segment->missing) {
			d9__cmd_fail(command, "%s: %s, which it lists, is not there", path, segment->name);
			sealed->missing = true;
		} else if (is_active(segment->path)) {
			sealed->n_active++;
		} else {
			err = add(sealed, segment->path);
		}
	}
	if (!status)
		d9__kept_dump_release(&dump);
	return err ? d9__cmd_fail(command, "%s: %s", path, d9_strerror(err)) : status;
}

static int add_path(struct d9__sealed *sealed, const char *command, const char *path, const struct stat *st)
{
	int err;

	if (S_ISREG(st->st_mode) && d9__kept_dump_is(path))
		return add_dump(sealed, command, path);
	err = S_ISDIR(st->st_mode) ? add_folder(sealed, path) : add(sealed, path);
	return err ? d9__cmd_fail(command, "%s: %s", path, d9_strerror(err)) : 0;
}

int d9__sealed_add(struct d9__sealed *sealed, const char *command, const char *path)
{
	size_t before = sealed->files.n;
	struct stat st;
	int status;

	if (is_active(path))
		return d9__cmd_fail(command, "%s: it is still being written; dial9 rotate seals it", path);
	if (stat(path, &st))
		return d9__cmd_fail(command, "%s: %s", path, strerror(errno));
	status = add_path(sealed, command, path, &st);
	if (!status && sealed->files.n == before)
		return d9__cmd_fail(command, "%s: there is no sealed segment in it", path);
	return status;
}

void d9__sealed_release(struct d9__sealed *sealed)
{
	d9__folder_release(&sealed->files);
}
