/* SPDX-License-Identifier: Apache-2.0 */
/* Listing: the segments of a source that the server hands out; it hands out no other file. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/source.h"

struct d9__listed {
	char *name; /* owned */
	uint64_t bytes;
	int64_t modified_ns;
	bool active;
	uint64_t identity; /* changes with name, size and time */
	const struct d9__source_facts *facts; /* see source.h */
};

/* All zero is empty. */
struct d9__listing {
	struct d9__listed *items; /* in their natural order */
	size_t n;
	bool left_out;	   /* there are names that lead elsewhere */
	uint64_t identity; /* of all */
	uint64_t version;  /* of a source with versions; 0: never listed */
};

/* Look again.  0, -ENOMEM or an error of the source. */
int d9__listing_refresh(struct d9__listing *listing, const struct d9__segment_source *source);

/* Find the segment |name|.  NULL: it is not listed. */
const struct d9__listed *d9__listing_find(const struct d9__listing *listing, const char *name);

/* Length of the folder's part of |name|, without its slash: one folder is one recording. */
size_t d9__listing_folder(const char *name);

/* Segments of several recordings are listed. */
bool d9__listing_is_many(const struct d9__listing *listing);

void d9__listing_release(struct d9__listing *listing);
