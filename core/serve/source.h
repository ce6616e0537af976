/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source: where segments are.  What the server needs of a place is these functions; a local
 * directory is the one that is built, a bucket would be another.  None of them may wait for a
 * network: a place that is far away is listed and fetched into a directory by a process of its own,
 * and tells here what has arrived.
 */

#ifndef D9_SERVE_SOURCE_H
#define D9_SERVE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct d9__source_segment {
	const char *name; /* below the place: "web-1/trace.0.bin" */
	uint64_t bytes;
	int64_t modified_ns; /* since 1970 */
	bool active;	     /* it is still being written */
};

struct d9__source {
	void *context; /* owned by free() */
	bool whole;    /* it is more than its segments, even than a single one */

	/* Tell |take| of every segment, in their natural order; |*left_out|: something there is not
	 * given away.  0 or -errno, also of |take|. */
	int (*list)(void *context,
		    int (*take)(void *listing, const struct d9__source_segment *segment),
		    void *listing, bool *left_out);

	/* A descriptor of the segment |name|, which was listed, for the caller to close; or -errno.
	 */
	int (*open)(void *context, const char *name);

	/* A path by which another process of this program can read |name|, or with "" the whole, in new memory; NULL: out
	 * of memory. */
	char *(*path)(void *context, const char *name);

	void (*free)(void *context);
};

/*
 * The directory or file |path|: segments in it and up to four levels of folders deep, none behind a
 * symbolic link; or those that it lists, if it is the manifest of a dump.  |*name| is what the place is called, owned by the
 * source.  0, -ENOMEM, or an error of realpath(3).
 */
int d9__source_local(const char *path, struct d9__source *out, const char **name);

#endif /* D9_SERVE_SOURCE_H */
