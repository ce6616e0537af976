/* SPDX-License-Identifier: Apache-2.0 */
/* Zstd frame: the frames of a file, where they begin and end, told by the heads of their blocks,
 * without unpacking. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__zstd_frame {
	uint64_t begin, blocks, end; /* in the file; |blocks|: of the first block's head */
	uint64_t blocks_end;	     /* of the last block that is whole */
	bool whole;		     /* it has its last block; else |end| is where it begins */
	bool skippable;		     /* it holds something else: |blocks| is where that begins */
	bool raw;     /* each of its blocks, and there is one with content, is a copy of that */
	bool checked; /* a checksum follows its last block */
};

/*
 * Look at the frame that begins at |at| of the file |fd| of |size| bytes.  False if it is not
 * whole, or none; then what is whole of it ends at |out->blocks_end|.
 */
bool d9__zstd_frame_look(int fd, uint64_t size, uint64_t at, struct d9__zstd_frame *out);
