/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shipped: the list BOOT_ID/.shipped of a process's stored segments.  A segment's line is appended
 * and on disk before its file is removed:
 *
 *	stored INDEX BYTES WORST_MS FIRST_NS LAST_NS STORED_NS KEY
 *	missing RANGES EPOCH_S
 *
 * The second names segments that the recorder evicted before a shipper had stored them, once, with
 * the time of the segment that told so.  Readers skip other lines, such as one that a killed
 *shipper left half written: the next shipper ends it with "cut".
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/ranges.h"

#define D9__SHIPPED_NAME ".shipped"

struct d9__shipped_line {
	uint64_t index, bytes, worst_ms, first_ns, last_ns, stored_ns;
	const char *key;
};

struct d9__shipped_gap {
	uint64_t epoch_s;
	struct d9__ranges ranges; /* owned */
};

/* The part of it that is needed: which segments are stored, and which never will be. */
struct d9__shipped {
	uint64_t *indexes; /* owned */
	char **keys;	   /* owned, one each */
	size_t n;
	uint64_t bytes;
	struct d9__shipped_gap *gaps; /* owned */
	size_t n_gaps;
};

/* Whether a line can be appended in the directory |dir|, as far as that is not a matter of room.  0 or -errno. */
int d9__shipped_ready(int dir);

/* Append |line| in the directory |dir|, and have it on disk.  0 or -errno. */
int d9__shipped_append(int dir, const struct d9__shipped_line *line);

/* Read the list of |dir|; none is an empty one.  0, -ENOMEM, or an error of open(2) or read(2).  Release in any case. */
int d9__shipped_read(struct d9__shipped *shipped, int dir);

/* The key under which |index| was stored last, or NULL. */
const char *d9__shipped_key(const struct d9__shipped *shipped, uint64_t index);

/*
 * Put into |missing| the ranges in |text| that the list does not have, because a recorder that
 * makes room also tells segments that a shipper removed before.  0 or -ENOMEM.
 */
int d9__shipped_missing(const struct d9__shipped *shipped, const char *text, struct d9__ranges *missing);

/*
 * Note in the directory |dir| the part of the ranges |evicted| that is neither stored nor noted
 * yet; the segment that tells them is of |epoch_s|.  0, -ENOMEM, or as d9__shipped_append().
 */
int d9__shipped_gap(int dir, const char *evicted, uint64_t epoch_s);

void d9__shipped_release(struct d9__shipped *shipped);
