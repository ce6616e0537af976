/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: those of a segment that is open as a descriptor, from its beginning to its proper end. */

#pragma once

#include <stdint.h>

#include "format/decoder.h"
#include "read/container.h"
#include "read/input.h"
#include "read/segment_reader.h"

struct d9__frames_in {
	struct d9__input input;
	struct d9__container container;
	struct d9__segment_reader reader;
	struct d9__definitions schemas;
	char message[256]; /* after -EBADMSG: where and why */
};

/* |fd| stays the caller's, and is not moved.  0, -ENODATA: it is empty, -ENOMEM, or an error of
 * reading.  Release in any case. */
int d9__frames_open(struct d9__frames_in *in, int fd);

/*
 * Get the next frame.  1; 0 behind the last, if all were whole; -EBADMSG for damage, a cut, or a
 * file that is no trace; -ENOMEM, or an error of reading.
 */
int d9__frames_next(struct d9__frames_in *in, struct d9__frame *frame);

void d9__frames_release(struct d9__frames_in *in);
