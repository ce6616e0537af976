/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target in a ring is kept after the ring is gone, for as long as its directory has something
 * to send.  Each target gets a process of its own, which sends what is there and ends: none runs
 * while nothing is sealed.
 */
#include "config.h"

#include "cli/ship/ship_rings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/cmd.h"
#include "ship/ring_target.h"
#include "ship/tree.h"
#include "watch/recorders.h"
#include "watch/recover_dir.h"

#define STEP_NS	     UINT64_C(100000000) /* between two looks for a signal */
#define PAUSE_MAX_NS UINT64_C(300000000000)
#define LOOKS_AT_DEAD 3 /* one that died a moment ago may count as alive for the first of them */

struct rings {
	const struct d9__ship_rings *how;
	struct d9__ring_targets targets;
	uint64_t begun_ns;
	int status;
};

/* 0: none is left; UINT64_MAX: there is no limit. */
static uint64_t time_left(const struct rings *rings)
{
	uint64_t used = d9__mono_ns() - rings->begun_ns;

	if (!rings->how->deadline_ns)
		return UINT64_MAX;
	return used < rings->how->deadline_ns ? rings->how->deadline_ns - used : 0;
}

/* ---- rings ---- */

static bool is_below(const char *path, const char *dir)
{
	char top[PATH_MAX], place[PATH_MAX];
	size_t len;

	if (!realpath(dir, top) || !realpath(path, place))
		return false;
	len = strlen(top);
	return !strncmp(place, top, len) && (top[len - 1] == '/' || !place[len] || place[len] == '/');
}

static bool is_wanted(const struct d9__ship_rings *how, const char *trace_dir)
{
	bool wanted = !how->dirs[0];

	for (char *const *dir = how->dirs; *dir && !wanted; dir++)
		wanted = is_below(trace_dir, *dir);
	return wanted;
}

/* Recover the ring of a killed process, so that its events become a segment. */
static void save_dead(struct rings *rings, struct d9__ring_target *target, const struct d9__ring_view *view)
{
	if (rings->how->dry_run || target->looked >= LOOKS_AT_DEAD || d9__ring_view_owner(view) != D9__OWNER_DEAD)
		return;
	target->looked++;
	d9__recover_dir("ship", target->trace_dir);
}

static int take_ring(struct rings *rings, const struct d9__recorder_seen *recorder)
{
	struct d9__ring_target target, *kept;
	struct stat st;
	int err = fstat(recorder->view.fd, &st) ? -errno : d9__ring_target_take(&target, &recorder->view.header, st.st_uid);
	size_t before = rings->targets.n;

	if (err == -EINVAL)
		d9__cmd_fail("ship", "%s: its texts name no bucket, prefix or directory; nothing is sent for process %d",
			     recorder->ring, (int)recorder->view.pid);
	if (err || !is_wanted(rings->how, target.trace_dir))
		return 0;
	kept = d9__ring_targets_put(&rings->targets, &target);
	if (!kept)
		return -ENOMEM;
	if (rings->targets.n > before && access(target.trace_dir, F_OK))
		d9__cmd_fail("ship", "%s, where process %d records: %s", target.trace_dir, (int)recorder->view.pid, strerror(errno));
	save_dead(rings, kept, &recorder->view);
	return 0;
}

static int find_rings(struct rings *rings)
{
	struct d9__recorders recorders;
	int err = d9__recorders_find(&recorders, NULL, 0, NULL);

	for (size_t i = 0; i < rings->targets.n; i++)
		rings->targets.list[i].seen = false;
	for (size_t i = 0; i < recorders.n && !err; i++)
		err = take_ring(rings, &recorders.list[i]);
	d9__recorders_release(&recorders);
	return err;
}

/* ---- what is to be sent ---- */

static bool has_something(const char *path)
{
	struct d9__ship_tree tree = { 0 };
	bool found = !d9__ship_tree_add(&tree, path) && tree.n && (tree.processes[0].n_segments || tree.processes[0].n_dumps);

	found |= tree.n_refused != 0; /* the shipper tells why */
	d9__ship_tree_release(&tree);
	return found;
}

/* Directories of processes with something to send to |to|, NULL-ended; their texts and the list are to be freed. */
static char **list_paths(const struct rings *rings, const char *to)
{
	char **paths = calloc(rings->targets.n + 1, sizeof(*paths));
	size_t n = 0;

	for (size_t i = 0; paths && i < rings->targets.n; i++) {
		const struct d9__ring_target *target = &rings->targets.list[i];

		if (strcmp(target->to, to) != 0)
			continue;
		if (asprintf(&paths[n], "%s/%s", target->trace_dir, target->boot_id) < 0)
			paths[n] = NULL;
		else if (has_something(paths[n]))
			n++;
		else
			free(paths[n]);
		paths[n] = NULL;
	}
	return paths;
}

static int run_child(const struct rings *rings, const char *to, char **paths)
{
	uint64_t left = time_left(rings);
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(rings->how->ship(rings->how->context, to, paths, left == UINT64_MAX ? 0 : left));
	if (pid < 0)
		return d9__cmd_fail("ship", "%s: %s", to, strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return D9__EXIT_USAGE;
		else if (*rings->how->stop)
			kill(pid, SIGTERM);
	return WIFEXITED(status) ? WEXITSTATUS(status) : D9__EXIT_FINDING;
}

static void ship_target(struct rings *rings, const char *to)
{
	char **paths = list_paths(rings, to);
	int status = !paths ? D9__EXIT_USAGE : paths[0] ? run_child(rings, to, paths) : D9__EXIT_OK;

	if (status > rings->status)
		rings->status = status;
	for (size_t i = 0; paths && paths[i]; i++)
		free(paths[i]);
	free(paths);
}

/* Each once, in the order of its first process. */
static void ship_all(struct rings *rings)
{
	for (size_t i = 0; i < rings->targets.n && !*rings->how->stop && time_left(rings); i++) {
		size_t first = 0;

		while (strcmp(rings->targets.list[first].to, rings->targets.list[i].to) != 0)
			first++;
		if (first == i)
			ship_target(rings, rings->targets.list[i].to);
	}
}

/* Drop the targets that have no ring any more and nothing to send. */
static void forget(struct rings *rings)
{
	for (size_t i = rings->targets.n; i-- > 0;) {
		const struct d9__ring_target *target = &rings->targets.list[i];
		char *path;

		if (target->seen || asprintf(&path, "%s/%s", target->trace_dir, target->boot_id) < 0)
			continue;
		if (!has_something(path))
			d9__ring_targets_drop(&rings->targets, i);
		free(path);
	}
}

/* ---- rounds ---- */

static int look(struct rings *rings)
{
	int err = find_rings(rings);

	rings->status = err ? d9__cmd_fail("ship", "%s", strerror(-err)) : D9__EXIT_OK;
	if (!err)
		ship_all(rings);
	forget(rings);
	return rings->status;
}

static void pause_for(const struct d9__ship_rings *how, uint64_t ns)
{
	for (uint64_t slept = 0; !*how->stop && slept < ns; slept += STEP_NS)
		nanosleep(&(struct timespec){ .tv_nsec = (long)STEP_NS }, NULL);
}

/* A store that fails is left alone for longer each time. */
static uint64_t next_pause(const struct d9__ship_rings *how, int status, uint64_t last_ns)
{
	uint64_t longest = how->every_ns > PAUSE_MAX_NS ? how->every_ns : PAUSE_MAX_NS;

	if (status == D9__EXIT_OK)
		return how->every_ns;
	return last_ns < longest / 2 ? last_ns * 2 : longest;
}

int d9__ship_rings(const struct d9__ship_rings *how)
{
	struct rings rings = { .how = how, .begun_ns = d9__mono_ns() };
	uint64_t pause_ns = how->every_ns ? how->every_ns : STEP_NS;
	int status = look(&rings);

	if (how->once && !rings.targets.n && status == D9__EXIT_OK)
		puts("nothing to send: no recorder of this user names a bucket");
	while (!how->once && !*how->stop) {
		pause_ns = next_pause(how, status, pause_ns);
		pause_for(how, pause_ns);
		status = *how->stop ? D9__EXIT_OK : look(&rings);
	}
	d9__ring_targets_release(&rings.targets);
	return how->once ? status : D9__EXIT_OK;
}
