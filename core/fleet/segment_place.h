/* SPDX-License-Identifier: Apache-2.0 */
/* Segment place: where the rows of a segment belong among the fleet's.  A function of the segment: a repeated run overwrites. */

#pragma once

#include <stddef.h>
#include <stdint.h>

struct d9__fleet_place {
	const char *key;		      /* of the segment in a store, else its file's name */
	const char *service, *host, *boot_id; /* NULL: not told */
	uint64_t epoch_s; /* of its first clock anchor */
};

/* "callbacks/date=2026-11-20/service=web/0931-HOST-BOOT-17.parquet".  Its length, or -ENAMETOOLONG, -EINVAL. */
int d9__segment_place_path(const struct d9__fleet_place *place, const char *table, char *out, size_t size);
