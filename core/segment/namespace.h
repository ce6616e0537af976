/* SPDX-License-Identifier: Apache-2.0 */
/* Namespace: the directory of this process below the trace directory, and those of dead peers. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>

#include "base/artefact.h"
#include "segment/retention.h"

/* Whether a shipper cares for the segments that dead processes have left. */
enum d9__shipping {
	D9__SHIPPING_NONE,
	D9__SHIPPING_PAUSED, /* a shipper was there within a day, and will be again */
	D9__SHIPPING_NOW,
};

/* Owned by the flush thread; its descriptors live in that thread's table. */
struct d9__namespace {
	char trace_dir[PATH_MAX]; /* absolute */
	char boot_id[D9__BOOT_ID_MAX];
	int parent_fd; /* the trace directory */
	int dir_fd;    /* parent_fd/boot_id */
	int lock_fd;   /* .lock in it, held with flock() for the life of the recorder */

	/* Dead peers with segments, by family.peer - 1. */
	char (*peers)[D9__BOOT_ID_MAX];
	uint32_t n_peers;
};

/*
 * Make |trace_dir| and a directory of our own in it, and lock that.  Directories get mode 0700;
 * one that belongs to another user or that others may write to is refused with -EPERM, links as
 * base/directory.h has it.  |ns->boot_id| is the wish; if that name is taken, another one is
 * chosen.  0 or -errno, then nothing stays open.
 */
int d9__namespace_open(struct d9__namespace *ns, const char *trace_dir, uint64_t clock);

/*
 * Go on in |dir_fd|, which was given to us with its lock |lock_fd|, held, and has the name |ns->boot_id|; in
 * what is open already, if that is the same.  Takes both descriptors over.  There is no parent then: we
 * may not change what is in that.
 */
void d9__namespace_take(struct d9__namespace *ns, const char *trace_dir, int dir_fd, int lock_fd);

/* Our directory was removed: make it again.  0 or -errno. */
int d9__namespace_renew(struct d9__namespace *ns);

/*
 * Enter the directory of a dead peer called |boot_id|, made if it is missing, as if it were ours.
 * 0, -EBUSY: its owner lives; -EINVAL: no such name; or -errno.
 */
int d9__namespace_inherit(struct d9__namespace *ns, const char *trace_dir, const char *boot_id);

/*
 * Lock the directory |dir_fd| of the dead peer |boot_id| in |parent_fd|, and own both descriptors.  The caller has
 * seen to it that it may be entered.  0, -EBUSY or -errno, then they are closed.
 */
int d9__namespace_adopt(struct d9__namespace *ns, int parent_fd, int dir_fd, const char *boot_id);

/*
 * Enter our own directory below |dir|, which may be anybody's that others cannot tamper with, as
 * /tmp is; both are made if they are missing.  0, -EBUSY, -EINVAL, -EPERM or -errno.
 */
int d9__namespace_visit(struct d9__namespace *ns, const char *dir, const char *boot_id);

/* Be in the directory of |with|, which stays open, and under its lock.  0 or -errno. */
int d9__namespace_share(struct d9__namespace *ns, const struct d9__namespace *with);

/* Close everything; a directory without segments goes. */
void d9__namespace_close(struct d9__namespace *ns);

/* Account the segments that are in our own directory already, and remove stale active files. */
int d9__namespace_scan(struct d9__namespace *ns, struct d9__retention *ret);

/*
 * Look at the directories of dead peers.  Only those whose lock is free and in which every name is
 * one of ours are touched.  Without a segment, sealed or active, a directory is removed; else it
 * stays, and what is sealed in it enters |ret|, so that restarting does not escape the budget.
 *
 * While a shipper is expected nothing is removed: it does that, when all is sent.
 *
 * The original removes such a directory at once, with its segments.  Those are the very ones
 * that tell why the process died, so here they stay until the budget needs their room.
 */
void d9__namespace_collect(struct d9__namespace *ns, struct d9__retention *ret);

/* Return whether a shipper sends what is in the trace directory. */
enum d9__shipping d9__namespace_shipping(const struct d9__namespace *ns);

/* Whether a file of |family|, which is ours, has a second name, as dumps give it. */
bool d9__namespace_is_linked(const struct d9__namespace *ns, const struct d9__family *family);

/* Delete the manifest of the dump |id|, ours or a dead peer's. */
void d9__namespace_evict_manifest(struct d9__namespace *ns, uint32_t peer, const char *id);

/*
 * Delete all files of |family|, ours or a dead peer's; a peer's only under that peer's lock.  0, also
 * if it was gone already, or -errno.
 */
int d9__namespace_evict(struct d9__namespace *ns, const struct d9__family *family);
