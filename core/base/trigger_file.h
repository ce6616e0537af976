/* SPDX-License-Identifier: Apache-2.0 */
/* Trigger file: a list of triggers that a text names with @FILE, in the recorder and for dial9. */

#pragma once

#include <limits.h>
#include <stddef.h>

#define D9__TRIGGER_FILE_MAX (64u << 10)

/* One text of a list, |len| bytes: if it is @FILE, the name of the file.  1, 0 if it is a trigger,
 * -ENAMETOOLONG. */
int d9__trigger_file_name(const char *one, size_t len, char path[PATH_MAX]);

/* The list in |path|, to be freed.  0, or -errno. */
int d9__trigger_file_read(const char *path, char **list);

/* Say by that -errno why the file cannot be used. */
const char *d9__trigger_file_fault(int err);
