/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What dead processes left, as this user may recover it.  For root that is everybody's; each user's is
 * recovered with no rights but that user's, so that it stays theirs and their files can lead nowhere else.
 */

#ifndef D9_CLI_RECOVER_USERS_H
#define D9_CLI_RECOVER_USERS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "record/recover.h"

#define D9__RECOVER_WHY_LEN (PATH_MAX + 128)

struct d9__recover_user {
	uid_t uid;
	gid_t gid;
};

struct d9__recover_users {
	struct d9__recover walk; /* of one user */
	bool walking;
	char dir[PATH_MAX]; /* without symbolic links; "": every ring's own */
	uid_t dir_uid;
	unsigned flags;
	struct d9__recover_user *list, own; /* |own| comes first and is not in the list */
	size_t n, next;
};

/* As d9__recover_begin(), and so are the others.  |users| has to stay where it is. */
int d9__recover_users_begin(struct d9__recover_users *users, const char *trace_dir, unsigned flags);

int d9__recover_users_next(struct d9__recover_users *users, struct d9__recovered *out);

void d9__recover_users_end(struct d9__recover_users *users);

/* "; and what to do about it" if |found| failed since the directory is another user's, or "". */
const char *d9__recover_why(char out[D9__RECOVER_WHY_LEN], const struct d9__recovered *found);

#endif /* D9_CLI_RECOVER_USERS_H */
