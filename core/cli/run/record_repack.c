/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "cli/cmd.h"
#include "cli/run/record_child.h"
#include "cli/run/record_repack.h"
#include "ship/tree.h"
#include "stage/repack.h"
#include "watch/recover_child.h"

static void repack_segment(const char *path)
{
	struct d9__claim claim;
	int err;

	if (d9__claim_open(&claim, path))
		return;
	err = d9__repack(&claim);
	if (err < 0 && err != -EAGAIN)
		d9__cmd_fail("record", "%s: %s; it stays uncompressed", path, d9_strerror(err));
	d9__claim_release(&claim);
}

static void repack_process(const char *path)
{
	struct d9__ship_tree tree = { 0 };

	if (!d9__ship_tree_add(&tree, path))
		for (size_t i = 0; i < tree.n; i++)
			for (size_t k = 0;
			     k < tree.processes[i].n_segments && !d9__record_child_is_to_end(); k++)
				repack_segment(tree.processes[i].segments[k].path);
	d9__ship_tree_release(&tree);
}

/* Root does it with the rights of the user whose directory it is. */
static void repack_for_owner(const char *path)
{
	struct stat st;
	bool take = !geteuid() && !lstat(path, &st) && st.st_uid;

	if (take && d9__rights_take(&(struct d9__child_user) { st.st_uid, st.st_gid }))
		return;
	repack_process(path);
	if (take)
		d9__rights_give_back();
}

void d9__record_repack(const char *dir, const struct d9__namespaces *before)
{
	struct d9__namespaces after = { 0 };
	int err = d9__namespaces_list(dir, &after);

	for (size_t i = 0; !err && i < after.n; i++) {
		char *path;

		if (d9__namespaces_hold(before, after.names[i]) ||
		    asprintf(&path, "%s/%s", dir, after.names[i]) < 0)
			continue;
		repack_for_owner(path);
		free(path);
	}
	d9__namespaces_release(&after);
}
