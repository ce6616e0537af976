/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/unwritten.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/recorders.h"
#include "record/retention.h"

/* Has the process a segment, complete or not, below |dir|? */
static bool has_segment(const char *dir, const char *boot_id)
{
	char path[PATH_MAX];
	bool found = false;
	uint64_t index;
	DIR *folder;

	if (snprintf(path, sizeof(path), "%s/%s", dir, boot_id) >= (int)sizeof(path))
		return false;
	folder = opendir(path);
	for (struct dirent *e; !found && folder && (e = readdir(folder));)
		switch (d9__artefact_of(e->d_name, &index)) {
		case D9__ARTEFACT_SEGMENT:
		case D9__ARTEFACT_ACTIVE:
			found = true;
			break;
		default:
			break;
		}
	if (folder)
		closedir(folder);
	return found;
}

/* One that lives is about to write, unless it cannot; in flight mode it need not. */
static bool is_unwritten(struct d9__recorder_seen *seen)
{
	const struct d9__ring_header *header = &seen->view.header;

	return !d9__ring_view_look(&seen->view, &seen->look) && seen->look.waiting &&
	       (d9__ring_view_owner(&seen->view) == D9__OWNER_DEAD ||
		seen->look.health.state == D9__STATE_PAUSED) &&
	       !has_segment(header->trace_dir, header->boot_id);
}

static size_t unwritten_in(const char *dir)
{
	struct d9__recorders recorders;
	struct stat st;
	size_t n = 0;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return 0;
	d9__recorders_find(&recorders, NULL, 0, dir);
	for (size_t i = 0; i < recorders.n; i++)
		n += is_unwritten(&recorders.list[i]);
	d9__recorders_release(&recorders);
	return n;
}

size_t d9__unwritten(char *const *paths)
{
	size_t n = 0;

	for (; *paths; paths++)
		n += unwritten_in(*paths);
	return n;
}
