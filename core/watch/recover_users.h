/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings and files of dead processes that this user may recover.  Root recovers every user's
 * into the directory that it names: each ring is found and opened with its user's rights, read by a
 * child without any, and written with the rights of the owner of the process's directory there.
 */

#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "drain/recover.h"
#include "watch/recover_child.h"

#define D9__RECOVER_WHY_LEN (PATH_MAX + 128)

struct d9__recover_users {
	struct d9__recover walk; /* of one user */
	bool walking;
	bool root;
	char dir[PATH_MAX];  /* what belongs there, without symbolic links; "": all */
	char into[PATH_MAX]; /* where to, the same; "": every ring's own */
	uid_t dir_uid;
	unsigned flags;
	struct d9__recover_hands hands;
	struct d9__child_user *list, own; /* |own| comes first and is not in the list */
	size_t n, next;
};

/*
 * Begin with what belongs to |trace_dir|, NULL: with all; to be written to |into|, NULL: to |trace_dir|, or where
 * each ring says, which root cannot have: -EINVAL.  |flags| are d9__recover_begin()'s.  |users| has to stay where
 * it is.  0 or -errno.
 */
int d9__recover_users_begin(struct d9__recover_users *users, const char *trace_dir, const char *into, unsigned flags);

int d9__recover_users_next(struct d9__recover_users *users, struct d9__recovered *out);

void d9__recover_users_end(struct d9__recover_users *users);

/* "; and what to do about it" if |found| failed since the directory is another user's, or "". */
const char *d9__recover_why(char out[D9__RECOVER_WHY_LEN], const struct d9__recovered *found);
