/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/dir.h"
#include "base/directory.h"
#include "base/heap.h"
#include "base/memory_limit.h"
#include "base/sort.h"
#include "drain/recover.h"

#define KEPT_PER_SERVICE 2
#define SPARED_BYTES     (UINT64_C(64) << 20) /* of one service, at most */
#define YOUNG_SECONDS    60 /* may not be complete yet */
#define PATIENCE_TRIES   100 /* of 50 ms */

/* ---- lists ---- */

static int add_name(char ***names, size_t *n, char *name)
{
	if (!name || !d9__array_grow(*names, *n)) {
		d9__free(name);
		return -ENOMEM;
	}
	(*names)[(*n)++] = name;
	return 0;
}

static void free_names(char ***names, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		d9__free((*names)[i]);
	d9__free(*names);
	*names = NULL;
	*n = 0;
}

#define SHM_DIR "/dev/shm"

static void user_dir(char *buf, size_t size, uid_t uid)
{
	snprintf(buf, size, "dial9-%u", (unsigned)uid);
}

/* Open the directory of this user's rings: it is no other user's, and no link. */
static int open_own(const char *name)
{
	int shm = d9__directory_open(SHM_DIR, D9__DIRECTORY_ANY);
	int fd = shm < 0 ? shm : d9__directory_enter(shm, name, 0);

	if (shm >= 0)
		close(shm);
	return fd;
}

/* Every ring in shared memory. */
static int list_shm(struct d9__recover *r)
{
	const char *name;
	struct d9__dir dir;
	char top[32];
	int err = 0, fd;

	user_dir(top, sizeof(top), geteuid());
	fd = open_own(top);
	if (fd < 0)
		return 0;
	d9__dir_of(&dir, fd);
	while (!err && (name = d9__dir_next(&dir)))
		if (d9__boot_id_valid(name))
			err = add_name(&r->rings, &r->n_rings, d9__text_of(SHM_DIR "/%s/%s/ring", top, name));
	d9__dir_close(&dir);
	return err;
}

static bool is_disk_ring(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, ".ring");
}

/* Directories of processes, and rings, in the trace directory. */
static int list_traces(struct d9__recover *r)
{
	struct d9__dir dir;
	int err = d9__dir_open(&dir, r->trace_dir);
	const char *name;

	if (err)
		return err == -ENOENT ? 0 : err;
	while (!err && (name = d9__dir_next(&dir))) {
		if (d9__boot_id_valid(name))
			err = add_name(&r->dirs, &r->n_dirs, d9__strdup(name));
		else if (is_disk_ring(name))
			err = add_name(&r->rings, &r->n_rings, d9__text_of("%s/%s", r->trace_dir, name));
	}
	d9__dir_close(&dir);
	return err;
}

int d9__recover_begin(struct d9__recover *r, const char *trace_dir, unsigned flags)
{
	int err;

	*r = (struct d9__recover){ .flags = flags };
	if (trace_dir && flags & D9__RECOVER_RINGS)
		snprintf(r->trace_dir, sizeof(r->trace_dir), "%s", trace_dir);
	else if (trace_dir && !realpath(trace_dir, r->trace_dir))
		return -errno;
	memcpy(r->into, r->trace_dir, sizeof(r->into));
	err = list_shm(r);
	if (!err && trace_dir && !(flags & D9__RECOVER_RINGS))
		err = list_traces(r);
	if (err)
		d9__recover_end(r);
	return err;
}

void d9__recover_end(struct d9__recover *r)
{
	free_names(&r->rings, &r->n_rings);
	free_names(&r->dirs, &r->n_dirs);
	r->swept = true;
}

/* ---- one process ---- */

static bool is_same_dir(const char *a, const char *b)
{
	struct stat x, y;

	return !strcmp(a, b) ||
	       (a[0] == '/' && !fstatat(AT_FDCWD, a, &x, AT_NO_AUTOMOUNT) && !stat(b, &y) &&
		x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static bool is_ours(const struct d9__dead_ring *ring)
{
	return d9__ring_layout_is_known(ring->header.layout);
}

/* True: |out| tells why nothing was done. */
static bool refuse(const struct d9__dead_ring *ring, int err, struct d9__recovered *out)
{
	*out = (struct d9__recovered){ .uid = geteuid(), .ring = true, .err = err, .op = "read the ring" };
	snprintf(out->dir, sizeof(out->dir), "%s", ring->path);
	out->pid = ring->header.pid;
	memcpy(out->service, ring->header.service, sizeof(out->service));
	return true;
}

/* The process's name among its peers: that of its file, which who wrote into the ring could not give it. */
static bool name_of(const struct d9__dead_ring *ring, char name[D9__BOOT_ID_MAX])
{
	const char *end = is_disk_ring(ring->path) ? ring->path + strlen(ring->path) - strlen(".ring") :
						     strrchr(ring->path, '/');
	const char *begin = end;

	while (begin > ring->path && begin[-1] != '/')
		begin--;
	if (end - begin >= D9__BOOT_ID_MAX)
		return false;
	memcpy(name, begin, (size_t)(end - begin));
	name[end - begin] = '\0';
	return d9__boot_id_valid(name);
}

static bool is_empty(const struct d9__recover *r, struct d9__dead_ring *ring)
{
	return r->hands ? r->hands->is_empty(r->hands->arg, ring) : d9__dead_ring_is_empty(ring);
}

static bool rescue(const struct d9__recover *r, struct d9__dead_ring *ring, const char *dir, struct d9__recovered *out)
{
	char name[D9__BOOT_ID_MAX];
	bool found;

	if (!name_of(ring, name))
		return refuse(ring, -EINVAL, out);
	if (!r->hands)
		return d9__rescue(dir, name, ring, out);
	found = r->hands->rescue(r->hands->arg, name, ring, out);
	if (!out->err)
		d9__dead_ring_unlink(ring);
	return found;
}

/* The memory that the ring takes: parts of it that were never used take none. */
static uint64_t taken_by(const struct d9__dead_ring *ring)
{
	struct stat st;

	return fstat(ring->fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

/* Whatever it holds. */
static bool discard(struct d9__dead_ring *ring, struct d9__recovered *out)
{
	refuse(ring, 0, out);
	out->bytes = taken_by(ring);
	d9__dead_ring_unlink(ring);
	if (!access(ring->path, F_OK))
		return refuse(ring, -EACCES, out);
	return true;
}

/* Whether there was something to do for it. */
static bool recover_opened(struct d9__recover *r, struct d9__dead_ring *ring, struct d9__recovered *out)
{
	const char *own = ring->header.trace_dir, *dir = r->into[0] ? r->into : own;

	if (r->trace_dir[0] && !is_same_dir(own, r->trace_dir))
		return false;
	if (r->flags & D9__RECOVER_DISCARD)
		return discard(ring, out);
	if (!is_ours(ring))
		return r->flags & D9__RECOVER_OTHERS && refuse(ring, -EPROTONOSUPPORT, out);
	/* Empty ones are swept up, directory or not. */
	if (dir[0] != '/')
		return !is_empty(r, ring) && refuse(ring, -ENOENT, out);
	if (!rescue(r, ring, dir, out))
		return false;
	if (out->err != -EPERM || !is_empty(r, ring))
		return true;
	/* The process became another user, to whom its directory was given: that has all of it. */
	d9__dead_ring_unlink(ring);
	return false;
}

/*
 * Every dial9 and every recorder that starts looks at all rings of the user, and on a busy machine that may take it a
 * while.  A process that was asked to recover a ring cannot leave it to them, because they leave rings of other
 * directories, too.
 */
static int open_ring(const struct d9__recover *r, struct d9__dead_ring *ring, const char *path)
{
	int err = d9__dead_ring_open(ring, path);

	for (int tries = 1; err == -EAGAIN && tries < PATIENCE_TRIES && r->flags & D9__RECOVER_WAIT && r->trace_dir[0] &&
	     is_same_dir(ring->header.trace_dir, r->trace_dir); tries++)
		err = d9__dead_ring_open(ring, path);
	return err;
}

static bool recover_ring(struct d9__recover *r, const char *path, struct d9__recovered *out)
{
	struct d9__dead_ring ring;
	bool found;
	int err = open_ring(r, &ring, path);

	/* A file that another user put into the trace directory. */
	if ((err == -EPERM || err == -EACCES) && is_disk_ring(path) && r->flags & D9__RECOVER_OTHERS)
		return refuse(&ring, err, out);
	if (err)
		return false;
	found = recover_opened(r, &ring, out);
	d9__dead_ring_close(&ring);
	return found;
}

static bool has_active(const struct d9__recover *r, const char *name)
{
	char path[PATH_MAX + D9__BOOT_ID_MAX];
	bool found = false;
	struct d9__dir dir;
	const char *entry;
	uint64_t index;

	snprintf(path, sizeof(path), "%s/%s", r->trace_dir, name);
	if (d9__dir_open(&dir, path))
		return false;
	while (!found && (entry = d9__dir_next(&dir)))
		found = d9__artefact_of(entry, &index) == D9__ARTEFACT_ACTIVE;
	d9__dir_close(&dir);
	return found;
}

static bool has_ring_of(const char *name, uid_t uid)
{
	char path[64 + D9__BOOT_ID_MAX], top[32];

	user_dir(top, sizeof(top), uid);
	snprintf(path, sizeof(path), SHM_DIR "/%s/%s/ring", top, name);
	return !access(path, F_OK);
}

/* True if its ring exists: then another process recovers it, or it cannot be. */
static bool has_ring(const struct d9__recover *r, const char *name)
{
	char path[PATH_MAX + D9__BOOT_ID_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", r->trace_dir, name);
	return has_ring_of(name, geteuid()) || has_ring_of(name, getuid()) ||
	       (!lstat(path, &st) && has_ring_of(name, st.st_uid));
}

static bool recover_dir(struct d9__recover *r, const char *name, struct d9__recovered *out)
{
	if (r->flags & D9__RECOVER_DISCARD || !has_active(r, name) || has_ring(r, name))
		return false;
	return r->hands ? r->hands->rescue(r->hands->arg, name, NULL, out) :
			  d9__rescue(r->trace_dir, name, NULL, out);
}

/* ---- rings that belong elsewhere ---- */

struct candidate {
	char service[256];
	uint64_t started_ns, bytes;
	const char *path;
	bool empty;
};

static int newest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = strcmp(x->service, y->service);

	if (x->empty != y->empty)
		return x->empty ? -1 : 1;
	if (order)
		return order;
	return x->started_ns > y->started_ns ? -1 : x->started_ns < y->started_ns;
}

/*
 * Into the trace directory that it names, if that is there and this user's, then away with it.  Root writes to
 * none that a ring names: some process that was root once may have written it.
 */
static void remove_ring(struct d9__recover *r, const struct candidate *gone)
{
	struct d9__dead_ring ring;
	struct d9__recovered out = { 0 };
	char name[D9__BOOT_ID_MAX];

	if (d9__dead_ring_open(&ring, gone->path))
		return;
	if (!r->hands && geteuid() && getuid() && ring.header.trace_dir[0] == '/' && name_of(&ring, name))
		d9__rescue(ring.header.trace_dir, name, &ring, &out);
	/* Busy: another process recovers it. */
	if (!out.ring || (out.err && out.err != -EBUSY)) {
		r->pruned += !gone->empty;
		d9__dead_ring_unlink(&ring);
	}
	d9__dead_ring_close(&ring);
}

static bool is_old(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && st.st_mtime + YOUNG_SECONDS < time(NULL);
}

/* A directory without a ring, or a ring without a header: a start that came to nothing. */
static void remove_stillborn(const char *ring_path)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", ring_path);
	*strrchr(dir, '/') = '\0';
	if (is_old(ring_path))
		unlink(ring_path);
	if (is_old(dir))
		rmdir(dir);
}

/* List the rings of dead processes; rings of another layout are left out, because we cannot read them. */
static size_t list_dead(const struct d9__recover *r, struct candidate *list)
{
	struct d9__dead_ring ring;
	size_t n = 0;

	for (size_t i = 0; i < r->n_rings; i++) {
		struct candidate *c = &list[n];

		if (is_disk_ring(r->rings[i]))
			continue;
		switch (d9__dead_ring_open(&ring, r->rings[i])) {
		case 0:
			memcpy(c->service, ring.header.service, sizeof(c->service));
			c->started_ns = ring.header.anchor.real_ns;
			c->bytes = taken_by(&ring);
			c->path = r->rings[i];
			c->empty = is_ours(&ring) && is_empty(r, &ring);
			n += is_ours(&ring);
			d9__dead_ring_close(&ring);
			break;
		case -ENOENT:
		case -EBADMSG:
			remove_stillborn(r->rings[i]);
			break;
		}
	}
	return n;
}

/* Return how many bytes the rings of a service that others are to read may take from recorders. */
static uint64_t spared_bytes(void)
{
	uint64_t limit = d9__memory_limit().bytes;

	return limit < SPARED_BYTES ? limit : SPARED_BYTES;
}

/* Remove the rings that are not worth their memory. */
static void sweep(struct d9__recover *r)
{
	struct candidate *list = d9__calloc(r->n_rings + 1, sizeof(*list));
	size_t n = list ? list_dead(r, list) : 0, same = 0;
	uint64_t spared = r->flags & D9__RECOVER_SPARE ? spared_bytes() : 0, bytes = 0;

	if (n)
		d9__sort(list, n, sizeof(*list), newest_first);
	for (size_t i = 0; i < n; i++) {
		bool first = !i || list[i - 1].empty || strcmp(list[i].service, list[i - 1].service);

		same = first ? 0 : same + 1;
		bytes = first ? list[i].bytes : bytes + list[i].bytes;
		if (list[i].empty || (r->flags & D9__RECOVER_PRUNE && same >= KEPT_PER_SERVICE && bytes > spared))
			remove_ring(r, &list[i]);
	}
	d9__free(list);
}

int d9__recover_next(struct d9__recover *r, struct d9__recovered *out)
{
	struct d9__recovered unused;

	if (!out)
		out = &unused;
	while (r->next < r->n_rings + r->n_dirs) {
		size_t i = r->next++;

		if (i < r->n_rings ? recover_ring(r, r->rings[i], out) :
				     recover_dir(r, r->dirs[i - r->n_rings], out))
			return 1;
	}
	if (!r->swept && !(r->flags & D9__RECOVER_DISCARD))
		sweep(r);
	r->swept = true;
	return 0;
}

void d9__recover_prune(const struct d9__recover_hands *hands)
{
	struct d9__recover walk;

	if (d9__recover_begin(&walk, NULL, D9__RECOVER_PRUNE))
		return;
	walk.hands = hands;
	sweep(&walk);
	d9__recover_end(&walk);
}
