/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring view: another process's ring, read only and believed in nothing.  Reads by pread(2), so that
 * a file which is cut short under us is an error and not a signal.  Uses no state of this process.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "ring/chunk.h"
#include "ring/ring_file.h"
#include "ring/slot.h"

/* The state of the process that a ring belongs to. */
enum d9__ring_owner {
	D9__OWNER_ALIVE,
	D9__OWNER_SUSPENDED, /* alive, but stopped by a signal or a debugger */
	D9__OWNER_DEAD,
};

struct d9__ring_view {
	int fd;        /* of the file, or of /proc/PID/mem; the view's own */
	uint64_t at;   /* where the ring begins in |fd|: not 0 in another's memory only */
	uint64_t size; /* bytes that can be read from there, as last looked up */
	pid_t pid;     /* of the owner as this process sees it; from the header unless told */
	/* A copy, checked: texts end, sizes are those of this layout, the chunks lie within |size|. */
	struct d9__ring_header header;
};

#define D9__VIEW_WORKERS_MAX D9__SLOT_COUNT

/* A thread that runs loops, as its slot tells. */
struct d9__ring_worker {
	uint32_t id, tid;
	enum d9__worker_state state; /* one of its values, whatever the slot says */
	uint64_t last_ns;            /* of its newest event */
	uint32_t slot;
};

/* Header and counters as they were at one time. */
struct d9__ring_look {
	uint64_t mono_ns;              /* of our clock */
	struct d9__ring_health health; /* texts end */
	bool torn;                     /* |health| never stood still: its writer was killed in it */
	bool flight;                   /* only the newest events are kept, and written on demand */
	uint64_t recorded;             /* events: written, in the ring, or recycled */
	uint64_t waiting;              /* of them, those in the ring */
	uint64_t lost[D9__LOSS_CAUSES];
	uint32_t chunks, chunks_in_use, slots_in_use;
	struct d9__ring_worker workers[D9__VIEW_WORKERS_MAX]; /* by id */
	uint32_t n_workers;
};

/*
 * Open the ring at |path| below |dir_fd| (or AT_FDCWD); it must be a plain file.  0, any error of
 * openat(2), -EBADMSG (not a ring, or a damaged one), -EPROTONOSUPPORT (of another layout),
 * -ENODATA (shorter than its header says), -EAGAIN (it is just being made).
 */
int d9__ring_view_open(struct d9__ring_view *view, int dir_fd, const char *path);

/*
 * Open a ring of another layout: its header can be read up to |trace_dir|.  -EBADMSG also if it has our
 * layout.
 */
int d9__ring_view_open_other(struct d9__ring_view *view, int dir_fd, const char *path);

/* d9__ring_view_open() for an open descriptor, which the view takes over, also on failure. */
int d9__ring_view_adopt(struct d9__ring_view *view, int fd);

/*
 * The ring of the living process |pid|, whatever kind it is.  Errors as above; -ENOENT if the
 * process has none, -ESRCH if there is no such process, -EACCES if we may not look.
 */
int d9__ring_view_of_process(struct d9__ring_view *view, pid_t pid);

/*
 * Find it in at most |*steps| looks at candidates, which are taken off.  -E2BIG if they do not suffice,
 * because a process may have names and memory by the thousand that look like a ring.
 */
#define D9__RING_VIEW_STEPS 100000
int d9__ring_view_find(struct d9__ring_view *view, pid_t pid, uint64_t *steps);

/* Idempotent after a successful opening. */
void d9__ring_view_close(struct d9__ring_view *view);

/* The memory that the ring takes: parts of it that were never used take none. */
uint64_t d9__ring_view_taken(const struct d9__ring_view *view);

/* Exactly |len| bytes at |offset| of the ring.  0, -ENODATA, or an error of pread(2). */
int d9__ring_view_read(const struct d9__ring_view *view, uint64_t offset, void *buf, size_t len);

/*
 * Return whether the program lives that wrote the ring: the ring's lock is held, or its process maps it.  For
 * memory without a name: the process is there.
 */
enum d9__ring_owner d9__ring_view_owner(const struct d9__ring_view *view);

/* True if process |pid| maps the file of |st|, or if /proc does not show that. */
bool d9__ring_view_is_mapped(uint32_t pid, const struct stat *st);

/* Whether its process is there still, as another program: by exec(), which never knew of the ring. */
bool d9__ring_view_replaced(const struct d9__ring_view *view);

/* Read health and counters.  0 or an error of d9__ring_view_read(). */
int d9__ring_view_look(const struct d9__ring_view *view, struct d9__ring_look *look);

/* The state that |worker|, of an earlier look, is in now; unknown if it cannot be read. */
enum d9__worker_state d9__ring_view_state(const struct d9__ring_view *view,
					  const struct d9__ring_worker *worker);

/* One line for an error of the functions above: "not a ring", or strerror(3). */
const char *d9__ring_view_strerror(int err);
