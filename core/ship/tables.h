/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: a segment as rows for query engines (core/doc/FLEET.md), stored beside it: one file a
 * table, under PREFIX/parquet/v1/incoming/. A process of its own makes them, because a segment is
 * not to be trusted.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "stage/stages.h"

#define D9__TABLES_ALL 6 /* as many as core/fleet/segment_tables.h has */
#define D9__TABLES_MAX 8

struct d9__table_object {
	char *key; /* owned */
	int fd;	   /* owned; its file has no name */
	uint64_t bytes;
};

/* All zero is empty. */
struct d9__table_objects {
	struct d9__table_object items[D9__TABLES_MAX];
	size_t n;
};

/*
 * Make those of the segment |fd|, which is stored as |key| below |prefix|, within the time of |stages|.  0, and a line
 * in |why| if they do not have all of it; or -errno with a line in |why| and nothing in |out|.
 */
int d9__table_objects_make(struct d9__table_objects *out, int fd, const char *prefix, const char *key,
			   const struct d9__stages *stages, char *why, size_t why_size);

void d9__table_objects_release(struct d9__table_objects *tables);
