/* SPDX-License-Identifier: Apache-2.0 */
/* Recover: finds what dead processes left, in /dev/shm and below a trace directory. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "drain/rescue.h"

enum d9__recover_flags {
	D9__RECOVER_PRUNE = 1,	 /* of the rings that belong elsewhere, keep the two newest of each service */
	D9__RECOVER_OTHERS = 2,	 /* tell of rings that nothing is done about: of another layout, or another user's */
	D9__RECOVER_RINGS = 4,	 /* those in shared memory only; |trace_dir| is without symbolic links already */
	D9__RECOVER_DISCARD = 8, /* rings of the dead go as they are, of every layout; nothing else is done */
	D9__RECOVER_SPARE = 16,	 /* with PRUNE: older ones stay, too, as long as those of a service have no more
				    * than a ring may take of a limited memory, and 64 MiB */
	D9__RECOVER_WAIT = 32,	 /* for others that look at a ring which belongs to |trace_dir|: up to 5 seconds each */
};

/*
 * Functions that read rings and write segments in our place; NULL: we do.  Called with |arg|.  For root, which
 * reads nothing by itself that others wrote: the program dial9 has a child for it, and the recorder of a
 * process leaves it.
 */
struct d9__recover_hands {
	/* As d9__rescue() does, into a directory that they choose; the ring stays, and goes if |out->err| is 0. */
	bool (*rescue)(void *arg, const char *boot_id, struct d9__dead_ring *ring, struct d9__recovered *out);
	bool (*is_empty)(void *arg, struct d9__dead_ring *ring);
	void *arg;
};

struct d9__recover {
	char trace_dir[PATH_MAX]; /* what belongs there is recovered; without symbolic links; "": all */
	char into[PATH_MAX];      /* where to: at first |trace_dir|; "": where each ring says, if that is ours */
	unsigned flags;
	const struct d9__recover_hands *hands; /* set by who has them, after the beginning */
	bool swept;
	unsigned pruned; /* rings that went with what was in them */
	char **rings;   /* paths of all rings of this user */
	size_t n_rings;
	char **dirs;    /* names below |trace_dir| */
	size_t n_dirs;
	size_t next;    /* in |rings|, then in |dirs| */
};

/*
 * Look for what belongs to |trace_dir|; NULL: for all rings in shared memory of this user.  At the end rings go
 * in which nothing is left, wherever they belong.  Those of another layout stay, for the version that knows it.
 *
 * A ring is believed in what it holds, and in nothing that would lead us: whose it is says its file's owner, which
 * process it was its file's name.  Where it says that it belongs is where a user's rings may be written, in
 * directories of that user's alone; root writes where it was told to.
 * 0 or -errno.
 */
int d9__recover_begin(struct d9__recover *recover, const char *trace_dir, unsigned flags);

/*
 * Recover the next process.  1 and |*out| (may be NULL), also if that failed: see |out->err|; 0 when
 * nothing is left.
 */
int d9__recover_next(struct d9__recover *recover, struct d9__recovered *out);

void d9__recover_end(struct d9__recover *recover);

/*
 * Of all rings in shared memory keep the two newest of each service.  The others go, written if they may be.
 * |hands|, or NULL: as above.
 */
void d9__recover_prune(const struct d9__recover_hands *hands);
