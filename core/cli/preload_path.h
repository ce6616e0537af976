/* SPDX-License-Identifier: Apache-2.0 */
/* Preload path: the preload library of this program, in its build tree or installed. */

#pragma once

/*
 * Find the preload library: $DIAL9_PRELOAD, in the build tree or beside the installation that this
 * program lies in, or the configured one.  0 with an absolute path for the caller to free, -ENOENT
 * if there is none, -EINVAL if the loader would split its name (a space or colon).
 */
int d9__preload_path(char **out);

/*
 * Find the library that samples allocations: in the folder of |preload|, which d9__preload_path()
 * found, or one above, where it is installed.  0 or -ENOENT.
 */
int d9__preload_memory_path(const char *preload, char **out);
