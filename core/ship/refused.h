/* SPDX-License-Identifier: Apache-2.0 */
/* Refused: the folder BOOT_ID/refused for segments that the store will not have, at most 16 of them, for people to look at. */

#pragma once

#include <stddef.h>

#include "stage/claim.h"

/* Move the claimed file there; the oldest one makes room, and its gap is written down (shipped.h).  0 or -errno. */
int d9__refused_take(const struct d9__claim *claim);

/*
 * Move the refused segment back to |path|, because it was not at fault.  1, 0: it is not there, or
 * -errno.
 */
int d9__refused_return(const char *path);

/* How many are there. */
size_t d9__refused_count(int dir);
