/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/artefact.h"
#include "cli/cmd.h"
#include "cli/run/record_child.h"
#include "cli/run/record_repack.h"
#include "stage/repack.h"
#include "watch/recover_child.h"

static void repack_segment(const char *dir, const char *name)
{
	struct d9__claim claim;
	int err = d9__claim_open(&claim, name);

	if (err)
		return;
	err = d9__repack(&claim);
	if (err < 0 && err != -EAGAIN)
		d9__cmd_fail("record", "%s/%s: %s; it stays uncompressed", dir, name,
			     d9_strerror(err));
	d9__claim_release(&claim);
}

/* In the current directory, |path|. */
static void repack_all(const char *path)
{
	DIR *here = opendir(".");
	struct dirent *entry;
	uint64_t index;

	while (here && !d9__record_child_is_to_end() && (entry = readdir(here)))
		if (d9__artefact_of(entry->d_name, &index) == D9__ARTEFACT_SEGMENT)
			repack_segment(path, entry->d_name);
	if (here)
		closedir(here);
}

/* Root does it with the rights of the user whose directory it is, who need not have any on the way
 * there. */
static void repack_process(const char *path, int back)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool root = !geteuid();

	if (dir < 0)
		return;
	if (!fstat(dir, &st) && !fchdir(dir)) {
		if (!root || !d9__rights_take(&(struct d9__child_user) { st.st_uid, st.st_gid })) {
			repack_all(path);
			if (root)
				d9__rights_give_back();
		}
		if (fchdir(back))
			d9__cmd_fail("record", "cannot go back: %s", strerror(errno));
	}
	close(dir);
}

void d9__record_repack(const char *dir, const struct d9__namespaces *before)
{
	struct d9__namespaces after = { 0 };
	int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = back < 0 ? -errno : d9__namespaces_list(dir, &after);

	for (size_t i = 0; !err && i < after.n; i++) {
		char *path;

		if (d9__namespaces_hold(before, after.names[i]) ||
		    asprintf(&path, "%s/%s", dir, after.names[i]) < 0)
			continue;
		repack_process(path, back);
		free(path);
	}
	d9__namespaces_release(&after);
	if (back >= 0)
		close(back);
}
