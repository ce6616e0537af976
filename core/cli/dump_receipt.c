/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/dump_receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/array.h"
#include "base/artefact.h"
#include "base/dir.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "ring/directory.h"
#include "ship/shipped.h"
#include "text/text.h"

#define PAUSE_NS 200000000L /* between two looks */

static int print_key(const char *key)
{
	static struct d9__text_out out;

	d9__text_init(&out, STDOUT_FILENO);
	d9__text_escaped(&out, key, strlen(key));
	d9__text_char(&out, '\n');
	return d9__text_finish(&out, "dump");
}

/* ---- segments that are waited for ---- */

/* In one folder. */
struct wanted {
	char *folder;
	uint64_t *indexes;
	size_t n;
};

static int add(struct wanted *wanted, uint64_t index)
{
	if (!d9__array_grow(wanted->indexes, wanted->n))
		return -ENOMEM;
	wanted->indexes[wanted->n++] = index;
	return 0;
}

/* The command waits for each segment that is sealed in the folder now. */
static int add_all(struct wanted *wanted)
{
	struct d9__dir dir;
	const char *name;
	uint64_t index;
	int err = d9__dir_open(&dir, wanted->folder);

	if (err)
		return err;
	while (!err && (name = d9__dir_next(&dir)))
		if (d9__artefact_of(name, &index) == D9__ARTEFACT_SEGMENT)
			err = add(wanted, index);
	d9__dir_close(&dir);
	return err;
}

/* The dump at |path| is a segment, or in continuous mode the folder of its segments. */
static int want(struct wanted *wanted, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	uint64_t index;
	bool all = !stat(path, &st) && S_ISDIR(st.st_mode);

	if (!all && (!slash || d9__artefact_of(slash + 1, &index) != D9__ARTEFACT_SEGMENT))
		return -EINVAL;
	wanted->folder = all ? strdup(path) : strndup(path, (size_t)(slash - path));
	if (!wanted->folder)
		return -ENOMEM;
	return all ? add_all(wanted) : add(wanted, index);
}

static bool is_there(int dir, uint64_t index)
{
	struct d9__dir names;
	bool found = false;
	const char *name;
	uint64_t other;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return false;
	d9__dir_of(&names, fd);
	while (!found && (name = d9__dir_next(&names)))
		found = d9__artefact_of(name, &other) == D9__ARTEFACT_SEGMENT && other == index;
	d9__dir_close(&names);
	return found;
}

/*
 * Print the keys of the segments that the shipper has stored, and wait for these no longer.  0; -EAGAIN: it has not stored all
 * of them yet; or an exit status.
 */
static int take_stored(struct wanted *wanted, int dir, const struct d9__shipped *shipped)
{
	size_t left = 0;

	for (size_t i = 0; i < wanted->n; i++) {
		const char *key = d9__shipped_key(shipped, wanted->indexes[i]);

		if (!key && !is_there(dir, wanted->indexes[i])) {
			d9__cmd_fail("dump", "%s: segment %" PRIu64 " was removed before it was stored", wanted->folder,
				     wanted->indexes[i]);
			return D9__EXIT_FINDING;
		}
		if (!key)
			wanted->indexes[left++] = wanted->indexes[i];
		else if (print_key(key))
			return D9__EXIT_USAGE;
	}
	wanted->n = left;
	return left ? -EAGAIN : 0;
}

static int look(struct wanted *wanted)
{
	struct d9__shipped shipped = { 0 };
	int dir = d9__directory_open(wanted->folder, D9__DIRECTORY_ANY), err = dir < 0 ? dir : 0, status;

	if (!err)
		err = d9__shipped_read(&shipped, dir);
	status = err ? d9__cmd_fail("dump", "%s: %s", wanted->folder, d9_strerror(err)) : take_stored(wanted, dir, &shipped);
	d9__shipped_release(&shipped);
	if (dir >= 0)
		close(dir);
	return status;
}

int d9__dump_receipt(const char *path, uint64_t timeout_ns)
{
	uint64_t until_ns = d9__mono_ns() + timeout_ns;
	struct wanted wanted = { .n = 0 };
	int status = want(&wanted, path);

	if (status)
		status = d9__cmd_fail("dump", "%s: %s", path, d9_strerror(status));
	else
		while ((status = look(&wanted)) == -EAGAIN && d9__mono_ns() < until_ns)
			nanosleep(&(struct timespec) { .tv_nsec = PAUSE_NS }, NULL);
	if (status == -EAGAIN) {
		d9__cmd_fail("dump", "%s: no shipper has stored it in that time; it stays; see dial9 help ship", path);
		status = D9__EXIT_FINDING;
	}
	free(wanted.folder);
	free(wanted.indexes);
	return status;
}
