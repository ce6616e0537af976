/* SPDX-License-Identifier: Apache-2.0 */
/* Where the preload library of this very program is: beside it in a build tree, or installed. */

#pragma once

/*
 * Find it: $DIAL9_PRELOAD, the build tree this program lies in, the library folder that belongs
 * to the folder it is installed in, the configured one.  0 with an absolute path for the caller to
 * free, -ENOENT if there is none, -EINVAL if the loader would split its name (a space or colon).
 */
int d9__preload_path(char **out);

/*
 * The same of the library that samples allocations: in the folder of |preload|, which d9__preload_path() found, or one
 * up, where it is installed.  0 or -ENOENT.
 */
int d9__preload_memory_path(const char *preload, char **out);
