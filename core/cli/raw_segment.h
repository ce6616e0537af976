/* SPDX-License-Identifier: Apache-2.0 */
/* Raw segment: the unpacked bytes of one segment, as whole frames. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/container.h"
#include "read/input.h"
#include "read/segment_reader.h"

struct d9__raw_segment {
	const char *path;  /* borrowed; "-" for standard input */
	size_t place;      /* among the segments as they were given; for the caller */
	uint64_t first_ns; /* time of its first event that has one; UINT64_MAX if none has */
	struct d9__input input;
	struct d9__container container;
	struct d9__segment_reader reader;
	struct d9__definitions schemas;
	bool opened, reading, has_events;
	bool keep_frames; /* set it before the first frame: |container| tells of zstd's, up to where it was read */
	/*
	 * Set after the last frame: the reason why it is the last.  |cut|: the segment ends inside
	 * of the next one, which is no error.
	 */
	int err;
	bool cut;
	char message[256]; /* if |err| or |cut|: the place and the fault, without the path */
};

/*
 * Open |path| and find |first_ns|.  0; -EBADMSG, -ENODATA or -EPROTONOSUPPORT if a pipe does not begin as a trace;
 * an error of open(2), -ENOMEM.  After an error |*why| is a line to print, owned by the caller, or NULL.
 */
int d9__raw_segment_open(struct d9__raw_segment *segment, const char *path, char **why);

/*
 * Get the next frame, from the first on.  1; 0 at the end or at damage (|err|); -ENOMEM, or an
 * error of read(2).
 */
int d9__raw_segment_next(struct d9__raw_segment *segment, struct d9__frame *frame);

/* Bytes used of the stored ones. */
uint64_t d9__raw_segment_stored(const struct d9__raw_segment *segment);

void d9__raw_segment_release(struct d9__raw_segment *segment);
