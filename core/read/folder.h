/* SPDX-License-Identifier: Apache-2.0 */
/* Folder: the files of a trace directory that may be segments, in their natural order. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

/* So many levels of folders below the one that is given are looked into, "host/boot" and more; and so many folders. */
#define D9__FOLDER_LEVELS 4
#define D9__FOLDER_MAX	  20000

struct d9__folder {
	char **paths; /* owned; segments of |path| itself first, then those of each of its folders */
	size_t n;
};

/*
 * List the regular files of |path| and of the folders in it, and of deeper folders the files with names of segments.
 * Links to folders are followed in |path| alone.  Of the forms in which one segment can exist side by side, while it is
 * being packed, one is listed.  0, -ENOMEM, -EFBIG for more folders than D9__FOLDER_MAX, or an error of opendir(3).
 */
int d9__folder_list(struct d9__folder *folder, const char *path);

/*
 * List everything that is no folder and has a name that is |wanted|: also links, and what cannot be read.  NULL: as
 * d9__folder_list().
 */
int d9__folder_list_named(struct d9__folder *folder, const char *path, bool (*wanted)(const char *name));

void d9__folder_release(struct d9__folder *folder);

/* strcmp() in which runs of digits compare as numbers: trace.9 before trace.10. */
int d9__folder_compare(const char *a, const char *b);

/* The name says that the file is a segment, whatever its content. */
bool d9__folder_is_segment_name(const char *path);

/*
 * Whether a process holds the lock of the directory |dir_fd|, which is a process's: its recorder does, for as long as it lives.
 * 1, 0, or -errno; -ENOENT: it has no lock, as copies have none.
 */
int d9__folder_is_held(int dir_fd);
