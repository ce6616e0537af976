/* SPDX-License-Identifier: Apache-2.0 */
/* Listing: the segments below one path that the server gives away, and nothing else. */

#ifndef D9_SERVE_LISTING_H
#define D9_SERVE_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__listed {
	char *name; /* below the root: "web-1/trace.0.bin"; owned */
	uint64_t bytes;
	int64_t modified_ns; /* since 1970 */
	bool active;	     /* it is still being written */
};

struct d9__listing {
	char *root; /* directory; owned */
	char *one;  /* the only name, where a file is served; owned, or NULL */
	struct d9__listed *items;
	size_t n;
	bool left_out;	   /* there are names that lead elsewhere */
	uint64_t identity; /* changes with names, sizes and times */
};

/* |path| is a directory or a file.  0, -ENOMEM or an error of realpath(3); release in all cases. */
int d9__listing_init(struct d9__listing *listing, const char *path);

/* Look again.  Segments behind symbolic links are left out.  0, -ENOMEM or an error of opendir(3).
 */
int d9__listing_refresh(struct d9__listing *listing);

/* A descriptor of the segment |name|, with its size now; -ENOENT if it is not in the listing, or an
 * error of open(2). */
int d9__listing_open(const struct d9__listing *listing, const char *name, uint64_t *bytes);

void d9__listing_release(struct d9__listing *listing);

#endif /* D9_SERVE_LISTING_H */
