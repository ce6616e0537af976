/* SPDX-License-Identifier: Apache-2.0 */
/* Segment tables: the fleet's tables and their rows of one segment.  FLEET.md has their columns. */

#pragma once

#include "fleet/parquet_file.h"
#include "fleet/segment_place.h"
#include "fleet/segment_rows.h"
#include "fleet/segment_stacks.h"

/* All about a segment. */
struct d9__segment_contents {
	struct d9__fleet_place place;
	struct d9__segment_rows rows;
	struct d9__segment_stacks stacks;
};

struct d9__segment_table {
	const char *name;
	const struct d9__parquet_column *columns;
	size_t n;
	void (*put)(const struct d9__segment_contents *segment, struct d9__parquet *file);
};

#define D9__SEGMENT_TABLES 6
extern const struct d9__segment_table d9__segment_tables[D9__SEGMENT_TABLES];

/* Write all rows of |table| as a file.  0, -ENOMEM, or what |write| returned. */
int d9__segment_table_write(const struct d9__segment_table *table, const struct d9__segment_contents *segment,
			    d9__parquet_write *write, void *context);
