/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/descriptors.h"
#include "base/dir.h"
#include "base/directory.h"
#include "base/heap.h"
#include "base/time.h"
#include "ring/clock.h"
#include "ring/note.h"
#include "segment/manifest.h"
#include "segment/namespace.h"
#include "segment/shipped_next.h"

#define LETTERS 456976 /* 26 to the fourth */
#define SHIP_PAUSE_S 86400 /* that a shipper may be away */
#define COLLECTED_TRIES 1000 /* a peer is done with a directory within microseconds */

static int lock_file(int dir_fd, int flags)
{
	int fd = openat(dir_fd, ".lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600), err;

	if (fd < 0)
		return -errno;
	fd = d9__descriptor_place(fd);
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Our own directory, which exists: descriptor and lock. */
static int enter(struct d9__namespace *ns)
{
	ns->dir_fd = d9__directory_enter(ns->parent_fd, ns->boot_id, 0);
	if (ns->dir_fd < 0)
		return ns->dir_fd;
	ns->lock_fd = lock_file(ns->dir_fd, O_CREAT);
	if (ns->lock_fd >= 0)
		return 0;
	close(ns->dir_fd);
	ns->dir_fd = -1;
	return ns->lock_fd;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool is_still_there(const struct d9__namespace *ns)
{
	struct stat dir, named, lock;

	return !fstat(ns->dir_fd, &dir) && !fstat(ns->lock_fd, &lock) && lock.st_nlink &&
	       !fstatat(ns->parent_fd, ns->boot_id, &named, AT_SYMLINK_NOFOLLOW) &&
	       dir.st_ino == named.st_ino && dir.st_dev == named.st_dev;
}

/*
 * Our own directory, just made.  Until its lock is held, a peer that collects what dead processes
 * left can take it for such and remove it: then it is made again.
 */
static int enter_new(struct d9__namespace *ns)
{
	for (int tries = 0;; tries++) {
		int err = enter(ns);

		if (!err && is_still_there(ns))
			return 0;
		if (!err) {
			close_fd(&ns->lock_fd);
			close_fd(&ns->dir_fd);
			err = -ENOENT;
		}
		if ((err != -EWOULDBLOCK && err != -ENOENT) || tries == COLLECTED_TRIES)
			return err;
		sched_yield();
		if (mkdirat(ns->parent_fd, ns->boot_id, 0700) && errno != EEXIST)
			return -errno;
	}
}

/* Remove a directory that could be made but not used, because each try would make another one. */
static void unmake(const struct d9__namespace *ns)
{
	int fd = d9__directory_enter(ns->parent_fd, ns->boot_id, 0);

	if (fd < 0)
		return;
	unlinkat(fd, ".lock", 0);
	close(fd);
	unlinkat(ns->parent_fd, ns->boot_id, AT_REMOVEDIR);
}

int d9__namespace_open(struct d9__namespace *ns, const char *trace_dir, uint64_t clock)
{
	int err;

	ns->dir_fd = ns->lock_fd = -1;
	ns->peers = NULL;
	ns->n_peers = 0;
	snprintf(ns->trace_dir, sizeof(ns->trace_dir), "%s", trace_dir);
	ns->parent_fd = d9__directory_open(trace_dir, D9__DIRECTORY_MAKE | D9__DIRECTORY_STICKY);
	if (ns->parent_fd < 0)
		return ns->parent_fd;
	for (int i = 0; i < LETTERS; i++) {
		if (!mkdirat(ns->parent_fd, ns->boot_id, 0700))
			break;
		err = -errno;
		if (err != -EEXIST)
			goto fail;
		d9__boot_id_make(ns->boot_id, ++clock, (long)getpid());
	}
	err = enter_new(ns);
	if (!err)
		return 0;
	if (err != -EWOULDBLOCK)
		unmake(ns);
fail:
	close_fd(&ns->parent_fd);
	return err;
}

static bool is_same(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void d9__namespace_take(struct d9__namespace *ns, const char *trace_dir, int dir_fd, int lock_fd)
{
	close_fd(&ns->parent_fd);
	if (trace_dir != ns->trace_dir)
		snprintf(ns->trace_dir, sizeof(ns->trace_dir), "%s", trace_dir);
	if (is_same(dir_fd, ns->dir_fd)) {
		close(dir_fd);
		close(lock_fd); /* ours holds the lock */
		return;
	}
	close_fd(&ns->lock_fd);
	close_fd(&ns->dir_fd);
	ns->dir_fd = dir_fd;
	ns->lock_fd = lock_fd;
}

static int begin(struct d9__namespace *ns, const char *dir, const char *boot_id)
{
	*ns = (struct d9__namespace){ .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 };
	if (!d9__boot_id_valid(boot_id) || strlen(dir) >= sizeof(ns->trace_dir))
		return -EINVAL;
	strcpy(ns->trace_dir, dir);
	strcpy(ns->boot_id, boot_id);
	return 0;
}

/* |ns->parent_fd| is open, or -errno. */
static int enter_below(struct d9__namespace *ns)
{
	int err;

	if (ns->parent_fd < 0)
		return ns->parent_fd;
	err = mkdirat(ns->parent_fd, ns->boot_id, 0700) && errno != EEXIST ? -errno : enter(ns);
	if (err)
		close_fd(&ns->parent_fd);
	return err == -EWOULDBLOCK ? -EBUSY : err;
}

int d9__namespace_inherit(struct d9__namespace *ns, const char *trace_dir, const char *boot_id)
{
	int err = begin(ns, trace_dir, boot_id);

	if (err)
		return err;
	ns->parent_fd = d9__directory_open(trace_dir, D9__DIRECTORY_STICKY);
	return enter_below(ns);
}

int d9__namespace_adopt(struct d9__namespace *ns, int parent_fd, int dir_fd, const char *boot_id)
{
	*ns = (struct d9__namespace){ .parent_fd = parent_fd, .dir_fd = dir_fd };
	snprintf(ns->boot_id, sizeof(ns->boot_id), "%s", boot_id);
	ns->lock_fd = lock_file(dir_fd, O_CREAT);
	if (ns->lock_fd >= 0)
		return 0;
	close_fd(&ns->dir_fd);
	close_fd(&ns->parent_fd);
	return ns->lock_fd == -EWOULDBLOCK ? -EBUSY : ns->lock_fd;
}

int d9__namespace_visit(struct d9__namespace *ns, const char *dir, const char *boot_id)
{
	int err = begin(ns, dir, boot_id);

	if (err)
		return err;
	ns->parent_fd = d9__directory_open(dir, D9__DIRECTORY_MAKE | D9__DIRECTORY_SHARED);
	return enter_below(ns);
}

/* True if our directory is there, made if it was not.  Otherwise errno tells why not. */
static bool make_own(const struct d9__namespace *ns)
{
	bool made = !mkdirat(ns->parent_fd, ns->boot_id, 0700);

	if (made)
		d9__note(D9_LOG_WARNING, "the directory of segments was gone and is made again");
	return made || errno == EEXIST;
}

int d9__namespace_renew(struct d9__namespace *ns)
{
	struct stat st;

	if (ns->parent_fd < 0 && ns->dir_fd >= 0)
		return fstat(ns->dir_fd, &st) ? -errno : st.st_nlink ? 0 : -ENOENT;
	close_fd(&ns->lock_fd);
	close_fd(&ns->dir_fd);
	if (!make_own(ns)) {
		/* The trace directory itself may be gone. */
		close_fd(&ns->parent_fd);
		ns->parent_fd = d9__directory_open(ns->trace_dir, D9__DIRECTORY_MAKE | D9__DIRECTORY_STICKY);
		if (ns->parent_fd < 0)
			return ns->parent_fd;
		if (!make_own(ns))
			return -errno;
	}
	return enter(ns);
}

static int copy_fd(int fd)
{
	int copy = d9__descriptor_place(fcntl(fd, F_DUPFD_CLOEXEC, 0));

	return copy < 0 ? -errno : copy;
}

int d9__namespace_share(struct d9__namespace *ns, const struct d9__namespace *with)
{
	int err = begin(ns, with->trace_dir, with->boot_id);

	if (err)
		return err;
	ns->parent_fd = copy_fd(with->parent_fd);
	ns->dir_fd = copy_fd(with->dir_fd);
	ns->lock_fd = copy_fd(with->lock_fd);
	err = ns->parent_fd < 0 ? ns->parent_fd : ns->dir_fd < 0 ? ns->dir_fd : ns->lock_fd < 0 ? ns->lock_fd : 0;
	if (err) {
		close_fd(&ns->lock_fd);
		close_fd(&ns->dir_fd);
		close_fd(&ns->parent_fd);
	}
	return err;
}

void d9__namespace_close(struct d9__namespace *ns)
{
	if (ns->dir_fd >= 0) {
		/* Fails, as it should, unless .lock is all there is. */
		int fd = dup(ns->dir_fd), n = 0;
		struct d9__dir dir;

		if (fd >= 0) {
			d9__dir_of(&dir, fd);
			while (d9__dir_next(&dir))
				n++;
			d9__dir_close(&dir);
			if (n <= 1) {
				unlinkat(ns->dir_fd, ".lock", 0);
				unlinkat(ns->parent_fd, ns->boot_id, AT_REMOVEDIR);
			}
		}
	}
	close_fd(&ns->lock_fd);
	close_fd(&ns->dir_fd);
	close_fd(&ns->parent_fd);
	d9__free(ns->peers);
	ns->peers = NULL;
	ns->n_peers = 0;
}

/* ---- walking a directory of segments ---- */

/* Called with every entry but . and ..; false ends the walk. */
typedef bool (*entry_fn)(void *arg, int dir_fd, const char *name);

/* 1 if every entry was visited, 0 if |fn| ended the walk, -errno. */
static int walk(int dir_fd, entry_fn fn, void *arg)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct d9__dir dir;
	const char *name;
	int all = 1;

	if (fd < 0)
		return -errno;
	d9__dir_of(&dir, fd);
	while (all == 1 && (name = d9__dir_next(&dir)))
		all = fn(arg, dir_fd, name);
	d9__dir_close(&dir);
	return all;
}

struct account {
	struct d9__retention *ret;
	uint32_t peer;
	bool remove_active;
	unsigned segments;
	int err;
};

/* A manifest of ours or of a dead peer's: what it lists is a dump's, and in flight mode no part of the trace. */
static bool account_dump(void *arg, int dir_fd, const char *name)
{
	struct account *acc = arg;
	uint64_t index, *segments;
	bool flight;
	char id[27];
	int n;

	if (d9__artefact_of(name, &index) != D9__ARTEFACT_MANIFEST)
		return true;
	segments = d9__calloc(D9__MANIFEST_SEGMENTS, sizeof(*segments));
	n = segments ? d9__manifest_read(dir_fd, name, segments, &flight) : -ENOMEM;
	snprintf(id, sizeof(id), "%s", name + 5);
	for (int i = 0; i < n && flight; i++)
		d9__retention_leave(acc->ret, acc->peer, segments[i]);
	if (n >= 0)
		acc->err = d9__retention_add_dump(acc->ret, acc->peer, id, segments, (size_t)n);
	d9__free(segments);
	return !acc->err;
}

static bool account_entry(void *arg, int dir_fd, const char *name)
{
	struct account *acc = arg;
	uint64_t index = 0;
	struct stat st;
	enum d9__artefact what = d9__artefact_of(name, &index);

	if (what == D9__ARTEFACT_ACTIVE && acc->remove_active) {
		unlinkat(dir_fd, name, 0);
		return true;
	}
	if ((what != D9__ARTEFACT_SEGMENT && what != D9__ARTEFACT_ACTIVE) ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return true;
	acc->segments++;
	if (what == D9__ARTEFACT_SEGMENT || acc->peer)
		acc->err = d9__retention_add(acc->ret, acc->peer, index, (uint64_t)st.st_size, d9__timespec_ns(&st.st_mtim));

	return !acc->err;
}

int d9__namespace_scan(struct d9__namespace *ns, struct d9__retention *ret)
{
	struct account acc = { .ret = ret, .remove_active = true };
	int all = walk(ns->dir_fd, account_entry, &acc);
	uint64_t next = d9__shipped_next(ns->dir_fd);

	if (ret->next_index < next)
		ret->next_index = next;
	if (all >= 0 && !acc.err)
		all = walk(ns->dir_fd, account_dump, &acc);
	return all < 0 ? all : acc.err;
}

/* ---- peers ---- */

static bool is_artefact(void *arg, int dir_fd, const char *name)
{
	uint64_t index;
	struct stat st;

	(void)arg;
	return d9__artefact_of(name, &index) != D9__ARTEFACT_UNKNOWN &&
	       !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

static bool is_empty_entry(void *arg, int dir_fd, const char *name)
{
	uint64_t index;
	struct stat st;
	enum d9__artefact what = d9__artefact_of(name, &index);

	(void)arg;
	/* An active file of nothing tells nothing. */
	return what == D9__ARTEFACT_LOCK || what == D9__ARTEFACT_JIT_MAP || what == D9__ARTEFACT_MANIFEST ||
	       what == D9__ARTEFACT_SHIPPED ||
	       (what == D9__ARTEFACT_ACTIVE &&
		!fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && !st.st_size);
}

static bool remove_entry(void *arg, int dir_fd, const char *name)
{
	(void)arg;
	return !unlinkat(dir_fd, name, 0);
}

/* The directory of a dead peer, locked; -EBUSY if it lives, -ENOTSUP if it holds foreign files. */
static int enter_peer(int parent_fd, const char *name, int *lock_fd)
{
	int fd = d9__directory_enter(parent_fd, name, 0);

	if (fd < 0)
		return fd;
	*lock_fd = lock_file(fd, 0);
	if (*lock_fd < 0) {
		close(fd);
		return -EBUSY;
	}
	if (walk(fd, is_artefact, NULL) == 1)
		return fd;
	close(*lock_fd);
	close(fd);
	return -ENOTSUP;
}

static uint32_t add_peer(struct d9__namespace *ns, const char *name)
{
	if (!d9__array_grow(ns->peers, ns->n_peers))
		return 0;
	snprintf(ns->peers[ns->n_peers], sizeof(*ns->peers), "%.*s", D9__BOOT_ID_MAX - 1, name);
	return ++ns->n_peers;
}

enum d9__shipping d9__namespace_shipping(const struct d9__namespace *ns)
{
	int fd = openat(ns->parent_fd, D9__SHIP_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int64_t now = (int64_t)(d9__clock_real_ns() / D9__SECOND_NS);
	enum d9__shipping found = D9__SHIPPING_NONE;
	struct stat st;

	if (fd < 0)
		return found;
	fd = d9__descriptor_place(fd);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid()) {
		if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
			found = D9__SHIPPING_NOW;
		else if (st.st_mtim.tv_sec > now - SHIP_PAUSE_S && st.st_mtim.tv_sec < now + SHIP_PAUSE_S)
			found = D9__SHIPPING_PAUSED;
	}
	close(fd);
	return found;
}

struct collection {
	struct d9__namespace *ns;
	struct d9__retention *ret;
	bool removes;
};

static bool collect_peer(void *arg, int parent_fd, const char *name)
{
	struct collection *col = arg;
	struct account acc = { .ret = col->ret };
	int lock_fd, fd;

	if (!d9__boot_id_valid(name) || !strcmp(name, col->ns->boot_id))
		return true;
	fd = enter_peer(parent_fd, name, &lock_fd);
	if (fd < 0)
		return true;
	if (walk(fd, is_empty_entry, NULL) == 1) {
		if (col->removes) {
			walk(fd, remove_entry, NULL);
			unlinkat(parent_fd, name, AT_REMOVEDIR);
		}
	} else if ((acc.peer = add_peer(col->ns, name))) {
		walk(fd, account_entry, &acc);
		walk(fd, account_dump, &acc);
	}
	close(fd);
	close(lock_fd);
	return true;
}

void d9__namespace_collect(struct d9__namespace *ns, struct d9__retention *ret)
{
	struct collection col = { ns, ret, d9__namespace_shipping(ns) == D9__SHIPPING_NONE };

	walk(ns->parent_fd, collect_peer, &col);
}

/* ---- eviction ---- */

static bool remove_family_entry(void *arg, int dir_fd, const char *name)
{
	const struct d9__family *family = arg;
	uint64_t index = 0;
	enum d9__artefact what = d9__artefact_of(name, &index);

	if (index == family->index &&
	    (what == D9__ARTEFACT_SEGMENT || (family->peer && what == D9__ARTEFACT_ACTIVE)))
		unlinkat(dir_fd, name, 0);
	return true;
}

static int evict_peer(struct d9__namespace *ns, struct d9__family *family)
{
	const char *name = ns->peers[family->peer - 1];
	int lock_fd, fd = enter_peer(ns->parent_fd, name, &lock_fd);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	walk(fd, remove_family_entry, family);
	if (walk(fd, is_empty_entry, NULL) == 1) {
		walk(fd, remove_entry, NULL);
		unlinkat(ns->parent_fd, name, AT_REMOVEDIR);
	}
	close(fd);
	close(lock_fd);
	return 0;
}

struct links {
	uint64_t index;
	bool several;
};

static bool look_at_links(void *arg, int dir_fd, const char *name)
{
	struct links *links = arg;
	uint64_t index = 0;
	struct stat st;

	if (d9__artefact_of(name, &index) == D9__ARTEFACT_SEGMENT && index == links->index &&
	    !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		links->several |= st.st_nlink > 1;
	return true;
}

bool d9__namespace_is_linked(const struct d9__namespace *ns, const struct d9__family *family)
{
	struct links links = { family->index, false };

	walk(ns->dir_fd, look_at_links, &links);
	return links.several;
}

void d9__namespace_evict_manifest(struct d9__namespace *ns, uint32_t peer, const char *id)
{
	int lock_fd = -1, fd = peer ? enter_peer(ns->parent_fd, ns->peers[peer - 1], &lock_fd) : ns->dir_fd;
	char name[48];

	snprintf(name, sizeof(name), "dump.%s.json", id);
	if (fd >= 0)
		unlinkat(fd, name, 0);
	if (peer && fd >= 0) {
		close(fd);
		close(lock_fd);
	}
}

int d9__namespace_evict(struct d9__namespace *ns, const struct d9__family *family)
{
	struct d9__family copy = *family;
	int all;

	if (copy.peer)
		return evict_peer(ns, &copy);
	all = walk(ns->dir_fd, remove_family_entry, &copy);
	return all < 0 ? all : 0;
}
