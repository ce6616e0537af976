/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repack: compress the raw frames of a sealed zstd segment, which a recorder wrote so because its
 * program wanted the CPUs.  Each becomes one frame with the same content; the others are copied.  A
 * seek table is written anew.
 */

#pragma once

#include <stdbool.h>

#include "stage/claim.h"

/*
 * Write the segment |from|, which is |claim|'s, or was made of that, to a file without a name.  1
 * and its descriptor; 0: there is nothing to compress, or nothing is gained; else -errno.
 */
int d9__repack_copy(const struct d9__claim *claim, int from, int *fd);

/*
 * Let that take the place of the claimed segment, and claim it.  1: done; 0 as above; -EAGAIN: it
 * is another process's by now, or gone; else -errno.  After an error |claim| holds what it held,
 * after -EAGAIN nothing.
 */
int d9__repack(struct d9__claim *claim);
