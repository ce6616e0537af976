/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/array.h"
#include "base/artefact.h"
#include "base/time.h"
#include "ship/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#define TOUCH_NS (60 * D9__SECOND_NS)

/* A descriptor with the lock, or -errno. */
static int lock(const char *dir)
{
	char *path;
	struct stat st;
	int fd, err;

	if (asprintf(&path, "%s/" D9__SHIP_FILE, dir) < 0)
		return -ENOMEM;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	err = fd < 0 || fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) || st.st_uid != geteuid() ? -EPERM : 0;
	/* Wait: a recorder that tests the lock holds it for a moment. */
	if (!err && flock(fd, LOCK_SH))
		err = -errno;
	free(path);
	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	futimens(fd, NULL);
	return fd;
}

/* The directory that |path| is in; for free(3), NULL: out of memory. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !slash ? strdup(".") : strndup(path, slash > path ? (size_t)(slash - path) : 1);
}

static struct d9__held_directory *find(const struct d9__ship_hold *hold, const char *path)
{
	for (size_t i = 0; i < hold->n; i++)
		if (!strcmp(hold->items[i].path, path))
			return &hold->items[i];
	return NULL;
}

/* Takes |path| over. */
static struct d9__held_directory *add(struct d9__ship_hold *hold, char *path)
{
	if (!d9__array_grow(hold->items, hold->n)) {
		free(path);
		return NULL;
	}
	hold->items[hold->n] = (struct d9__held_directory) { .path = path, .fd = -1 };
	return &hold->items[hold->n++];
}

static struct d9__held_directory *find_or_add(struct d9__ship_hold *hold, const char *process)
{
	char *path = parent_of(process);
	struct d9__held_directory *held = path ? find(hold, path) : NULL;

	if (held || !path) {
		free(path);
		return held;
	}
	return add(hold, path);
}

void d9__ship_hold_take(struct d9__ship_hold *hold, const struct d9__ship_tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		struct d9__held_directory *held = find_or_add(hold, tree->processes[i].path);
		char what[160];

		if (!held || held->fd >= 0)
			continue;
		held->fd = lock(held->path);
		if (held->fd >= 0 || held->told)
			continue;
		snprintf(what, sizeof(what), "recorders there do not know of this command: " D9__SHIP_FILE ": %s",
			 d9_strerror(held->fd));
		if (tree->tell)
			tree->tell(tree->context, held->path, what);
		held->told = true;
	}
}

/* One that was removed is made again by the next look. */
static void touch(struct d9__held_directory *held)
{
	struct stat st;

	if (held->fd < 0)
		return;
	if (!fstat(held->fd, &st) && st.st_nlink) {
		futimens(held->fd, NULL);
		return;
	}
	close(held->fd);
	held->fd = -1;
}

void d9__ship_hold_touch(struct d9__ship_hold *hold, uint64_t now_ns)
{
	if (hold->touched_ns && now_ns - hold->touched_ns < TOUCH_NS)
		return;
	hold->touched_ns = now_ns;
	for (size_t i = 0; i < hold->n; i++)
		touch(&hold->items[i]);
}

void d9__ship_hold_release(struct d9__ship_hold *hold)
{
	for (size_t i = 0; i < hold->n; i++) {
		if (hold->items[i].fd >= 0)
			close(hold->items[i].fd);
		free(hold->items[i].path);
	}
	free(hold->items);
	*hold = (struct d9__ship_hold) { 0 };
}
