/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetched: copies of objects in a folder of our own.  A file's name is a hash of the object's
 * place, so that no store chooses it.  When there are too many bytes, the files that were used
 * longest ago are removed.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#define D9__FETCHED_NAME 64

struct d9__fetched;

/*
 * Use the folder |dir|, which is taken over, with the path |path|, for at most |bytes_max|.  NULL:
 * out of memory.
 */
struct d9__fetched *d9__fetched_new(int dir, const char *path, uint64_t bytes_max);

/* Name the file for |what|: any text that identifies the object and its state. */
void d9__fetched_name(const char *what, const char *ending, char name[D9__FETCHED_NAME]);

/*
 * Open |name| for reading, and count it as used now.  A descriptor; -ENOENT: it is not there; or
 * -errno.
 */
int d9__fetched_open(struct d9__fetched *fetched, const char *name);

/* Its path, in new memory; NULL: out of memory. */
char *d9__fetched_path(const struct d9__fetched *fetched, const char *name);

/* A descriptor of a new file to write, and its |name| for the meantime; or -errno. */
int d9__fetched_begin(struct d9__fetched *fetched, char name[D9__FETCHED_NAME]);

/*
 * Rename |unfinished|, which is complete, to |name|, and remove others to make room.  0 or -errno.
 */
int d9__fetched_keep(struct d9__fetched *fetched, const char *unfinished, const char *name);

/* It came to nothing. */
void d9__fetched_drop(struct d9__fetched *fetched, const char *unfinished);

void d9__fetched_free(struct d9__fetched *fetched);
