/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/dead.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/artefact.h"
#include "base/directory.h"
#include "ship/hour.h"
#include "ship/shipped.h"
#include "stage/claim.h"

/* The lock of the process in |dir|, taken; -1: it lives, or is none of a recorder. */
static int take_lock(int dir)
{
	int fd = openat(dir, ".lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool is_free(const char *path)
{
	int dir = d9__directory_open(path, 0), lock = dir < 0 ? -1 : take_lock(dir);

	if (lock >= 0)
		close(lock);
	if (dir >= 0)
		close(dir);
	return lock >= 0;
}

/* ---- who is dead ---- */

static struct d9__dead_process *find(const struct d9__ship_dead *dead, const char *path)
{
	for (size_t i = 0; i < dead->n; i++)
		if (!strcmp(dead->items[i].path, path))
			return &dead->items[i];
	return NULL;
}

static struct d9__dead_process *add(struct d9__ship_dead *dead, const char *path, uint64_t now_ns)
{
	char *copy = strdup(path);

	if (!copy || !d9__array_grow(dead->items, dead->n)) {
		free(copy);
		return NULL;
	}
	dead->items[dead->n] = (struct d9__dead_process) { .path = copy, .since_ns = now_ns };
	return &dead->items[dead->n++];
}

/* Forget namespaces that were not seen, because they are gone, or live. */
static void forget_others(struct d9__ship_dead *dead)
{
	size_t n = 0;

	for (size_t i = 0; i < dead->n; i++)
		if (dead->items[i].seen)
			dead->items[n++] = dead->items[i];
		else
			free(dead->items[i].path);
	dead->n = n;
}

bool d9__ship_dead_look(struct d9__ship_dead *dead, const struct d9__ship_tree *tree, uint64_t now_ns, uint64_t gap_ns)
{
	bool news = false;

	for (size_t i = 0; i < dead->n; i++)
		dead->items[i].seen = false;
	for (size_t i = 0; i < tree->n; i++) {
		const char *path = tree->processes[i].path;
		struct d9__dead_process *process;

		if (!is_free(path))
			continue;
		process = find(dead, path);
		if (!process && !(process = add(dead, path, now_ns)))
			continue;
		process->seen = true;
		if (!process->dead && process->since_ns + gap_ns <= now_ns && process->since_ns < now_ns)
			news = process->dead = true;
	}
	forget_others(dead);
	return news;
}

static bool is_dead(const struct d9__ship_dead *dead, const char *path)
{
	const struct d9__dead_process *process = find(dead, path);

	return process && process->dead;
}

/* ---- room ---- */

struct left {
	const struct d9__ship_segment *segment;
	struct timespec at; /* sealed */
	uint64_t bytes;
};

static int by_age(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	if (x->at.tv_sec != y->at.tv_sec)
		return x->at.tv_sec < y->at.tv_sec ? -1 : 1;
	if (x->at.tv_nsec != y->at.tv_nsec)
		return x->at.tv_nsec < y->at.tv_nsec ? -1 : 1;
	return x->segment->index < y->segment->index ? -1 : x->segment->index > y->segment->index;
}

/* All of the dead; NULL: there is none, or no memory. */
static struct left *list(const struct d9__ship_dead *dead, const struct d9__ship_tree *tree, size_t *n, uint64_t *bytes)
{
	struct left *left = NULL;

	*n = 0;
	*bytes = 0;
	for (size_t p = 0; p < tree->n; p++)
		for (size_t s = 0;
		     is_dead(dead, tree->processes[p].path) && s < tree->processes[p].n_segments;
		     s++) {
			const struct d9__ship_segment *segment = &tree->processes[p].segments[s];
			struct stat st;

			if (!d9__array_grow(left, *n))
				return left;
			if (lstat(segment->path, &st))
				continue;
			left[(*n)++] = (struct left) { segment, st.st_mtim, (uint64_t)st.st_size };
			*bytes += (uint64_t)st.st_size;
		}
	return left;
}

/* Remove |left|, unsent, once its gap is written down. */
static bool evict(const struct left *left)
{
	struct d9__claim claim;
	bool gone;

	if (d9__claim_open(&claim, left->segment->path))
		return false;
	gone = !d9__hour_lose(claim.dir, left->segment->index, (uint64_t)left->at.tv_sec) && !d9__claim_remove(&claim);
	d9__claim_release(&claim);
	return gone;
}

size_t d9__ship_dead_make_room(struct d9__ship_dead *dead, const struct d9__ship_tree *tree, uint64_t max_bytes)
{
	uint64_t bytes;
	size_t n, gone = 0;
	struct left *left = list(dead, tree, &n, &bytes);

	if (left && bytes > max_bytes)
		qsort(left, n, sizeof(*left), by_age);
	for (size_t i = 0; i < n && bytes > max_bytes; i++) {
		if (!evict(&left[i]))
			continue;
		bytes -= left[i].bytes;
		dead->evicted++;
		dead->evicted_bytes += left[i].bytes;
		gone++;
	}
	free(left);
	return gone;
}

/* ---- and what is empty ---- */

/* True if |name| holds no data any more.  An hour does until it is stored. */
static bool is_nothing(const char *name)
{
	size_t len = strlen(name);
	uint64_t index;

	if (!strncmp(name, D9__HOUR_NAME, strlen(D9__HOUR_NAME)))
		return len > strlen(D9__HOUR_TOLD) && !strcmp(name + len - strlen(D9__HOUR_TOLD), D9__HOUR_TOLD);
	switch (d9__artefact_of(name, &index)) {
	case D9__ARTEFACT_LOCK:
	case D9__ARTEFACT_JIT_MAP:
	case D9__ARTEFACT_SHIPPED:
		return true;
	default:
		return !strcmp(name, ".") || !strcmp(name, "..");
	}
}

/* True if |dir| holds no data: is_nothing() is true for all its names. */
static bool is_empty(DIR *dir)
{
	struct dirent *entry;

	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL)
		if (!is_nothing(entry->d_name))
			return false;
	return true;
}

/* True if stored markers tell every gap of the list in |dir|; otherwise the list is the only place that does. */
static bool is_told(int dir)
{
	struct d9__shipped shipped;
	bool told = !d9__shipped_read(&shipped, dir);

	for (size_t i = 0; i < shipped.n_gaps && told; i++)
		told = d9__hour_is_told(dir, shipped.gaps[i].epoch_s);
	d9__shipped_release(&shipped);
	return told;
}

/*
 * Remove the names that is_nothing() knows; new ones may have come since.  The lock goes last,
 * because it keeps other processes out.
 */
static void clear(DIR *dir)
{
	struct dirent *entry;

	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL)
		if (is_nothing(entry->d_name) && strcmp(entry->d_name, ".lock") != 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	unlinkat(dirfd(dir), ".lock", 0);
}

static void remove_empty(const char *path)
{
	int fd = d9__directory_open(path, 0), lock;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	lock = take_lock(fd);
	if (lock >= 0 && is_empty(dir) && is_told(fd)) {
		clear(dir);
		rmdir(path);
	}
	if (lock >= 0)
		close(lock);
	closedir(dir);
}

void d9__ship_dead_remove_empty(struct d9__ship_dead *dead, const struct d9__ship_tree *tree)
{
	for (size_t i = 0; i < tree->n; i++)
		if (is_dead(dead, tree->processes[i].path))
			remove_empty(tree->processes[i].path);
}

void d9__ship_dead_release(struct d9__ship_dead *dead)
{
	for (size_t i = 0; i < dead->n; i++)
		free(dead->items[i].path);
	free(dead->items);
	*dead = (struct d9__ship_dead) { 0 };
}
