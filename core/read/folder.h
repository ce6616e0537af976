/* SPDX-License-Identifier: Apache-2.0 */
/* Folder: the files of a trace directory that may be segments, in their natural order. */

#ifndef D9_READ_FOLDER_H
#define D9_READ_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct d9__folder {
	char **paths; /* owned; segments of |path| itself first, then those of its folders */
	size_t n, capacity;
};

/*
 * List the regular files of |path| and of the folders in it, one level deep.  Of the forms in
 * which one segment can exist side by side, while it is being packed, one is listed.  0, -ENOMEM,
 * or an error of opendir(3).
 */
int d9__folder_list(struct d9__folder *folder, const char *path);

void d9__folder_release(struct d9__folder *folder);

/* strcmp() in which runs of digits compare as numbers: trace.9 before trace.10. */
int d9__folder_compare(const char *a, const char *b);

/* The name says that the file is a segment, whatever its content. */
bool d9__folder_is_segment_name(const char *path);

#endif /* D9_READ_FOLDER_H */
