/* SPDX-License-Identifier: Apache-2.0 */
/* Known files: whether a segment is already part of the trace, by another name or the same. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/input.h"

struct d9__known_file {
	uint64_t dev, ino, base; /* |ino| 0: a free place */
};

/* All zero is empty. */
struct d9__known_files {
	struct d9__known_file *places;
	size_t n, capacity; /* a power of two, at most half of it taken */
	uint64_t secret;
};

/* Remember |input|, unless it is a pipe.  1, 0 if it is known already, -ENOMEM. */
int d9__known_files_add(struct d9__known_files *files, const struct d9__input *input);

void d9__known_files_release(struct d9__known_files *files);
