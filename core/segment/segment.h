/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment: one trace file.  Written as NAME.active, renamed to NAME when it is sealed; or the same in
 * memory.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/artefact.h"
#include "segment/packer.h"

/* Where segments are kept. */
struct d9__segment_place {
	int dir_fd;
	bool memory;
	enum d9_compress compress;
};

/* The content of a segment. */
struct d9__segment_content {
	uint64_t first_ns, last_ns; /* of its real events */
	uint64_t events;            /* of the program and its loops */
	bool real;                  /* more than clock, metadata and health */
};

/* Flush thread only. */
struct d9__segment {
	bool open;
	bool unfinished; /* given up, and not cut or not renamed yet: |fd| is open */
	bool memory;
	int fd; /* -1 in memory */
	int dir_fd;
	dev_t device;
	ino_t inode; /* what |fd| must still be: the program may close descriptors that are not its own */
	char name[D9__SEGMENT_NAME_MAX]; /* sealed */
	uint64_t index;
	uint64_t opened_ns;
	struct d9__segment_content has; /* what was added */
	struct d9__segment_content committed; /* what is in the file */
	uint64_t bytes;               /* in the file */
	bool ended;                   /* nothing can follow them */
	bool complete;                /* no event was lost while it was open */
	struct d9__packer packer;

	/* In memory. */
	uint8_t *data;
	size_t capacity;

	const char *failed_op; /* of the last error: "open", "write", ... */
};

/* Begin segment |index|.  0 or -errno. */
int d9__segment_open(struct d9__segment *seg, const struct d9__segment_place *place, uint64_t index,
		     uint64_t now_ns);

/*
 * Add a batch with |events| events that count; it reaches the file with d9__segment_write().
 * |real|: it is worth keeping the segment for.  0, -ENOMEM, -EIO.
 */
int d9__segment_add(struct d9__segment *seg, const void *batch, size_t len, uint64_t first_ns,
		    uint64_t last_ns, uint32_t events, bool real, uint64_t now_ns);

/* Write what was added; then it can be read in the file.  0 or -errno; then d9__segment_cut(). */
int d9__segment_write(struct d9__segment *seg, uint64_t now_ns);

/*
 * Complete and rename; a segment without real events is removed instead.  |*kept| says which.
 * 0 or -errno; if it is still open then, d9__segment_cut() has to follow; else it is |unfinished|.
 */
int d9__segment_seal(struct d9__segment *seg, uint64_t now_ns, bool *kept);

/*
 * After an error: cut the file back to the last d9__segment_write() that succeeded, which is not lost by a later one
 * that fails, and seal that as well as it goes.  What cannot be done now leaves it |unfinished|.
 */
void d9__segment_cut(struct d9__segment *seg, bool *kept);

/*
 * Do what is left of that for one that is |unfinished|; its directory may be another by now.  0, or -errno: it still
 * is, for want of room or rights; other errors are put up with, and readers stop where it was to end.
 */
int d9__segment_finish(struct d9__segment *seg, int dir_fd, bool *kept);

void d9__segment_release(struct d9__segment *seg);
