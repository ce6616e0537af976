/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 serve --bucket`: the options of the store, and the server's source. */

#pragma once

#include <stdbool.h>

#include "ship/bucket.h"

struct d9__segment_source;

struct d9__serve_bucket {
	struct d9__bucket_options store;
	const char *prefix; /* NULL: all of the bucket */
	bool used;	    /* an option of a bucket was given */
};

/*
 * Returns 0 with |*out|, which the server takes over, and |*name|; else an exit status, after a
 * line on stderr.
 */
int d9__serve_bucket_open(const struct d9__serve_bucket *bucket, struct d9__segment_source *out, const char **name);
