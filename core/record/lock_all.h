/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock all: mlockall() under a limit that the program alone keeps within.
 *
 * The kernel holds everything that is mapped against RLIMIT_MEMLOCK, used or not, and of ours that is 100 MiB of addresses:
 * the ring's, our tables', those that malloc() keeps free for the recorder's thread.  None of them has to be in memory.
 */

#pragma once

#include <dial9/export.h>

/*
 * Call |real|, the C library's mlockall(), with |flags|.  Where it finds the limit too small, lock what is not ours, mapping by
 * mapping, if that is within the limit.  As mlockall() returns; errno likewise.
 */
D9_API int d9__lock_all(int flags, int (*real)(int flags));
