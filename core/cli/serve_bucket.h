/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 serve --bucket`: what is said of the store, and the source of the server. */

#pragma once

#include <stdbool.h>

#include "ship/store.h"

struct d9__segment_source;

struct d9__serve_bucket {
	struct d9__bucket_options store;
	const char *prefix; /* NULL: all of the bucket */
	bool used;	    /* an option of a bucket was given */
};

/* 0 with |*out|, which the server takes, and |*name|; else the exit status, after a line on stderr. */
int d9__serve_bucket_open(const struct d9__serve_bucket *bucket, struct d9__segment_source *out, const char **name);
