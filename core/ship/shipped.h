/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shipped: the list BOOT_ID/.shipped of what was stored of a process.  A line each, appended and on disk before the
 * segment goes:
 *
 *	stored INDEX BYTES WORST_MS FIRST_NS LAST_NS STORED_NS KEY
 *
 * Whoever reads it skips lines that are not such: of one that was being written, the rest is missing.
 */

#ifndef D9_SHIP_SHIPPED_H
#define D9_SHIP_SHIPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__SHIPPED_NAME ".shipped"

struct d9__shipped_line {
	uint64_t index, bytes, worst_ms, first_ns, last_ns, stored_ns;
	const char *key;
};

/* What of it is needed: which segments are stored. */
struct d9__shipped {
	uint64_t *indexes; /* owned */
	char **keys;	   /* owned, one each */
	size_t n, capacity;
	uint64_t bytes;
};

/* Append |line| in the directory |dir|, and have it on disk.  0 or -errno. */
int d9__shipped_append(int dir, const struct d9__shipped_line *line);

/* Read the list of |dir|; none is an empty one.  0, -ENOMEM, or an error of open(2) or read(2).  Release in any case. */
int d9__shipped_read(struct d9__shipped *shipped, int dir);

/* The key under which |index| was stored last, or NULL. */
const char *d9__shipped_key(const struct d9__shipped *shipped, uint64_t index);

/*
 * Of the ranges |text| ("41-57,60") those that are not in the list, as such a text of at most |size| bytes: a recorder that
 * makes room says so of what somebody else has taken away before, too.
 */
void d9__shipped_missing(const struct d9__shipped *shipped, const char *text, char *out, size_t size);

void d9__shipped_release(struct d9__shipped *shipped);

#endif /* D9_SHIP_SHIPPED_H */
