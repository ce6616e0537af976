/* SPDX-License-Identifier: Apache-2.0 */
/* Own path: the folder of this program, from which its other files are found. */

#pragma once

#include <stddef.h>

/*
 * Put the folder of this program into |size| bytes.  0, or an error of readlink(2) if /proc is
 * missing.
 */
int d9__own_folder(char *folder, size_t size);

/* "../lib/dial9" for /usr/bin and /usr/lib/dial9: an installation may have moved as a whole. */
void d9__relative_path(const char *from, const char *to, char *out, size_t size);
