/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claim: a sealed segment that no other process changes meanwhile.  The lock is flock(2) on the
 * file itself, so it dies with its holder.  The recorder may remove the name at any time, so the
 * claim checks that the name still leads to the claimed file before it does anything to it.
 */

#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct d9__claim {
	int dir;	  /* no other user can change names in it */
	int fd;		  /* of the file, for reading */
	const char *path; /* borrowed */
	const char *name; /* inside |path| */
	bool copies;	  /* the file stays, and may be anybody's: what is made of it gets a name in |dir| */
	struct stat st;
};

/*
 * Claim |path|.  0; -EAGAIN: another process has it, or it is gone; -EINVAL: no regular file of
 * this user's; -EPERM: its directory is not this user's alone; -ELOOP: a link; else an error of
 * open(2).  After an error there is nothing to release.
 */
int d9__claim_open(struct d9__claim *claim, const char *path);

/*
 * Open |path| for copies in the directory |dir|, which stays the caller's.  0; -EINVAL: no regular file; else an error of
 * open(2).  After an error there is nothing to release.
 */
int d9__claim_open_copy(struct d9__claim *claim, const char *path, int dir);

/* True if the name still leads to the claimed file. */
bool d9__claim_holds(const struct d9__claim *claim);

/* Open a file without a name in the same directory.  A descriptor or -errno. */
int d9__claim_unnamed(const struct d9__claim *claim);

/*
 * Let |fd|, which d9__claim_unnamed() made, take the place of the claimed file, with its rights,
 * owner and times.  0; -EAGAIN: the name is gone, and stays so; else -errno, and the file is as it
 * was.
 */
int d9__claim_replace(const struct d9__claim *claim, int fd);

/*
 * Give |fd|, which d9__claim_unnamed() made, or a copy of the file itself the name |name| in the directory for copies, for this
 * user alone, with the file's time.  0 or -errno.
 */
int d9__claim_put(const struct d9__claim *claim, int fd, const char *name);

/* Remove the claimed file.  As d9__claim_replace(). */
int d9__claim_remove(const struct d9__claim *claim);

void d9__claim_release(struct d9__claim *claim);
