/* SPDX-License-Identifier: Apache-2.0 */
/* Address: where a bucket is, and whether one may talk to it. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct d9__address_options {
	const char *bucket, *endpoint; /* endpoint may be NULL: AWS */
	bool path_style, allow_http;
};

struct d9__store_address {
	char bucket[64];
	char scheme[6];
	char host[512]; /* with the port unless it is the scheme's default; AWS: set by the region
			 */
	char base[256]; /* of the path: "" or "/x" */
	bool path_style, aws, loopback;
};

/* 0, or -EINVAL with one line in |why|. */
int d9__address_parse(const struct d9__address_options *options, struct d9__store_address *out, char *why,
		      size_t why_size);

/*
 * Set the host of a bucket of AWS in |region|; the host of another store stays.  False: it is not a
 * region.
 */
bool d9__address_set_region(struct d9__store_address *address, const char *region);

/* True if |host|, perhaps with a port, is this machine by its name or number. */
bool d9__address_is_loopback(const char *host);

/* Letters, digits, "-"; at most 63. */
bool d9__address_is_region(const char *region);
