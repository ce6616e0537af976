/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "watch/left_rings.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/artefact.h"
#include "watch/recorders.h"

/* The segments of a process below |dir|. */
static struct segments {
	bool any, open;
} segments_of(const char *dir, const char *boot_id)
{
	struct segments found = { false, false };
	char path[PATH_MAX];
	uint64_t index;
	DIR *folder;

	if (snprintf(path, sizeof(path), "%s/%s", dir, boot_id) >= (int)sizeof(path))
		return found;
	folder = opendir(path);
	for (struct dirent *e; folder && (e = readdir(folder));) {
		enum d9__artefact what = d9__artefact_of(e->d_name, &index);

		found.open |= what == D9__ARTEFACT_ACTIVE;
		found.any |= what == D9__ARTEFACT_ACTIVE || what == D9__ARTEFACT_SEGMENT;
	}
	if (folder)
		closedir(folder);
	return found;
}

/* One that lives is about to write, unless it cannot; in flight mode it need not. */
static bool keeps_events(struct d9__recorder_seen *seen)
{
	return !d9__ring_view_look(&seen->view, &seen->look) && seen->look.waiting &&
	       (d9__ring_view_owner(&seen->view) == D9__OWNER_DEAD ||
		seen->look.health.state == D9__STATE_PAUSED);
}

static void look_in(const char *dir, struct d9__left_rings *out)
{
	struct d9__recorders recorders;
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return;
	d9__recorders_find(&recorders, NULL, 0, dir);
	for (size_t i = 0; i < recorders.n; i++) {
		const struct d9__ring_header *header = &recorders.list[i].view.header;
		struct segments its = segments_of(header->trace_dir, header->boot_id);

		if (its.open)
			continue;
		if (keeps_events(&recorders.list[i]))
			*(its.any ? &out->ends : &out->all) += 1;
		else if (!its.any && d9__ring_view_owner(&recorders.list[i].view) != D9__OWNER_DEAD)
			out->living++;
	}
	d9__recorders_release(&recorders);
}

struct d9__left_rings d9__left_rings(char *const *paths)
{
	struct d9__left_rings found = { 0 };

	for (; *paths; paths++)
		look_in(*paths, &found);
	return found;
}
