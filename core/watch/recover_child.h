/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recover child: rings and segments that others wrote are read for root by a child without rights.  It has the
 * ring's descriptor, and gets those of segments from us, one by one, in the one directory that we chose; or it has
 * nothing to write to but its answer.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct d9__dead_ring;
struct d9__namespace;
struct d9__recovered;
struct d9__ring_view;

/* The user whose rights the child takes.  For root it gives up all of them. */
struct d9__child_user {
	uid_t uid;
	gid_t gid;
};

/*
 * d9__rescue_into() by a child.  Called with all rights of root; files are opened with those of |owner|, whose
 * directory |ns| is.  |ring| may be NULL.
 */
bool d9__recover_child_rescue(const struct d9__child_user *user, const struct d9__child_user *owner,
		      const struct d9__namespace *ns, struct d9__dead_ring *ring, struct d9__recovered *out);

/* d9__dead_ring_is_empty() by a child; false if it could not tell. */
bool d9__recover_child_is_empty(const struct d9__child_user *user, struct d9__dead_ring *ring);

/*
 * Return the user whose rights suffice for the files that the ring |view| names: the owner of the
 * ring's file, or the user that the process has become since it began as root.  It is root only if
 * the process is root in every respect.
 */
struct d9__child_user d9__recover_child_user_of(const struct d9__ring_view *view);

/* |fill| the |len| bytes of |answer| in a child that has of us the descriptor |fd| alone.  False: it did not, in time. */
bool d9__recover_child_ask(const struct d9__child_user *user, int fd, void (*fill)(void *arg, void *answer), void *arg,
		   void *answer, size_t len);

/* Take the rights of |user|, of root none, and never have others again.  0 or -errno. */
int d9__rights_give_up(const struct d9__child_user *user);

/* Take the rights of |user| for a while, and root's back.  0 or -errno; for programs with one thread. */
int d9__rights_take(const struct d9__child_user *user);
void d9__rights_give_back(void);
