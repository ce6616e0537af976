/* SPDX-License-Identifier: Apache-2.0 */
/* Recover: finds what dead processes left, in /dev/shm and below a trace directory. */

#ifndef D9_RECORD_RECOVER_H
#define D9_RECORD_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "record/rescue.h"

enum d9__recover_flags {
	D9__RECOVER_PRUNE = 1,	/* of the rings that belong elsewhere, keep the two newest of each service */
	D9__RECOVER_OTHERS = 2, /* tell of rings that nothing is done about: of another layout, or another user's */
	D9__RECOVER_RINGS = 4,	/* those in shared memory only; |trace_dir| is without symbolic links already */
};

/* How root gets the rights of a user, and its own back.  0 or -errno; for programs with one thread. */
struct d9__rights {
	int (*take)(uid_t uid, gid_t gid);
	void (*give_back)(void);
};

struct d9__recover {
	char trace_dir[PATH_MAX]; /* without symbolic links; "": every ring's own */
	unsigned flags;
	const struct d9__rights *rights; /* set by who has it, after the beginning; NULL: rings are recovered as we are */
	bool swept;
	char **rings;   /* paths of all rings of this user */
	size_t n_rings;
	char **dirs;    /* names below |trace_dir| */
	size_t n_dirs;
	size_t next;    /* in |rings|, then in |dirs| */
};

/*
 * Look for what belongs to |trace_dir|; NULL: for all rings in shared memory of this user.  At the end rings go
 * in which nothing is left, wherever they belong.  Those of another layout stay, for the version that knows it.
 * 0 or -errno.
 */
int d9__recover_begin(struct d9__recover *recover, const char *trace_dir, unsigned flags);

/*
 * Recover the next process.  1 and |*out| (may be NULL), also if that failed: see |out->err|; 0 when
 * nothing is left.
 */
int d9__recover_next(struct d9__recover *recover, struct d9__recovered *out);

void d9__recover_end(struct d9__recover *recover);

/* Of all rings in shared memory keep the two newest of each service.  The others go, written if they can be. */
void d9__recover_prune(void);

#endif /* D9_RECORD_RECOVER_H */
