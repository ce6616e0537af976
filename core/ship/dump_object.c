/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/dump_object.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/artefact.h"
#include "base/directory.h"
#include "ship/shipped.h"

/* Beside the segments that are here there may be some in other forms: packed meanwhile. */
static int add_segments(int dir, const struct d9__kept_dump *dump, struct json_object *keys, struct json_object *missing)
{
	struct d9__shipped shipped;
	int err = d9__shipped_read(&shipped, dir);

	for (size_t i = 0; !err && i < dump->n_segments; i++) {
		const char *name = dump->segments[i].name, *key = NULL;
		uint64_t index;
		struct stat st;

		if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW)) {
			err = -EAGAIN;
			break;
		}
		if (d9__artefact_of(name, &index) == D9__ARTEFACT_SEGMENT)
			key = d9__shipped_key(&shipped, index);
		json_object_array_add(key ? keys : missing, json_object_new_string(key ? key : name));
	}
	d9__shipped_release(&shipped);
	return err;
}

int d9__dump_object_make(const char *dir, const struct d9__kept_dump *dump, char **text)
{
	struct json_object *keys = json_object_new_array(), *missing = json_object_new_array(), *all = NULL;
	int fd = d9__directory_open(dir, 0), err = fd < 0 ? fd : add_segments(fd, dump, keys, missing);

	if (fd >= 0)
		close(fd);
	if (!err && json_object_deep_copy(dump->json, &all, NULL))
		err = -ENOMEM;
	if (err) {
		json_object_put(keys);
		json_object_put(missing);
		return err;
	}
	json_object_object_add(all, "keys", keys);
	json_object_object_add(all, "missing", missing);
	*text = strdup(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(all);
	return *text ? 0 : -ENOMEM;
}

int d9__dump_object_done(const char *dir, const char *id)
{
	char from[NAME_MAX + 1], to[NAME_MAX + 1];
	int fd = d9__directory_open(dir, 0), err = 0;

	if (fd < 0)
		return fd;
	snprintf(from, sizeof(from), "dump.%s.json", id);
	snprintf(to, sizeof(to), "dump.%s.done", id);
	if (renameat(fd, from, fd, to) && errno != ENOENT)
		err = -errno;
	if (!err && fsync(fd))
		err = -errno;
	close(fd);
	return err;
}
