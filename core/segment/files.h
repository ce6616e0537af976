/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: segments of one directory, by name.  A process that reads what it cannot trust has no right to the
 * directory: it asks another one, at the end of a socket, which opens for it what a recovery needs and nothing else.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/segment.h"

#define D9__FILE_NAME_MAX (D9__SEGMENT_NAME_MAX + 8)

/*
 * Open |name|, a plain file and no link: O_RDONLY, O_RDWR, or O_WRONLY | O_CREAT | O_EXCL for a new one, mode 0600.
 * The descriptor or -errno; -EPERM if it is something else.
 */
int d9__file_open(int dir_fd, const char *name, int flags);

int d9__file_remove(int dir_fd, const char *name);

int d9__file_rename(int dir_fd, const char *from, const char *to);

/* The name and number of the newest segment, sealed or not.  1, 0 if there is none, or -errno. */
int d9__file_newest(int dir_fd, char name[D9__FILE_NAME_MAX], uint64_t *index, bool *active);

/* From now on all of these ask at |socket|, whatever the directory.  For a process with one thread. */
void d9__files_ask(int socket);

/*
 * Answer one question from |socket| about |dir_fd|.  Open segments can be read, changed and removed, others only
 * read; new ones are made and sealed under names that were free.  1, 0 when the other end is closed, -errno.
 * |*created| (0 at first) is ours from call to call.
 */
int d9__files_answer(int socket, int dir_fd, uint64_t *created);
