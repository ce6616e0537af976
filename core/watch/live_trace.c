/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "watch/live_trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/fail.h"
#include "watch/recorders.h"
#include "watch/recover_child.h"

/* 0 with |*path|, or -errno; |recorder| is one that writes to a directory. */
static int find_directory(const struct d9__recorder_seen *recorder, char **path)
{
	const struct d9__ring_header *header = &recorder->view.header;
	struct d9__child_user user = d9__recover_child_user_of(&recorder->view);
	int err = geteuid() || !user.uid ? 0 : d9__rights_give_up(&user);
	struct stat st;

	if (!err && asprintf(path, "%s/%s", header->trace_dir, header->boot_id) < 0) {
		*path = NULL;
		err = -ENOMEM;
	}
	if (!err && stat(*path, &st))
		err = -errno;
	return err;
}

/* A line, if |recorder| has nothing on disk that could be followed. */
static bool writes_nothing(const char *command, struct d9__recorder_seen *recorder)
{
	int pid = (int)recorder->view.pid;

	if (d9__ring_view_owner(&recorder->view) == D9__OWNER_DEAD ||
	    d9__ring_view_look(&recorder->view, &recorder->look)) {
		d9__cmd_fail(command, "process %d has ended; dial9 recover saves what it left", pid);
		return true;
	}
	if (!recorder->look.flight)
		return false;
	d9__cmd_fail(command,
		     "process %d keeps its events in memory (flight mode), so nothing is on disk to follow; "
		     "dial9 top %d shows them, dial9 dump %d writes them",
		     pid, pid, pid);
	return true;
}

char *d9__live_trace(const char *command, pid_t pid)
{
	struct d9__recorders recorders;
	char *path = NULL;
	int err = d9__recorders_find(&recorders, command, pid, NULL);

	if (!err && !recorders.n && !recorders.failed)
		d9__cmd_fail(command, "process %d has no recorder of this version", (int)pid);
	if (!err && recorders.n && !writes_nothing(command, &recorders.list[0])) {
		err = find_directory(&recorders.list[0], &path);
		if (err)
			d9__cmd_fail(command, "process %d: %s: %s", (int)pid,
				     path ? path : "its trace", strerror(-err));
	} else if (err) {
		d9__cmd_fail(command, "%s", strerror(-err));
	}
	d9__recorders_release(&recorders);
	if (err) {
		free(path);
		path = NULL;
	}
	return path;
}
