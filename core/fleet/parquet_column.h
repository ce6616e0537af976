/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet column: the values of one column in one row group, and their pages. */

#pragma once

#include <zstd.h>

#include "base/table.h"
#include "fleet/bytes.h"
#include "fleet/parquet_file.h"

/* All zero, but for |facts|, is empty. */
struct d9__parquet_values {
	const struct d9__parquet_column *facts;
	uint64_t *numbers;     /* of the values that are not missing; of texts, which of the distinct ones */
	unsigned char *levels; /* of each row, of optional columns: 1, or 0 where the value is missing */
	size_t n, rows;
	struct d9__bytes text; /* distinct texts, one behind the other */
	struct d9__parquet_entry {
		size_t at, len;
	} *entries;
	size_t n_entries;
	struct d9__table by_hash; /* number of an entry + 1, as a pointer */
};

void d9__parquet_values_release(struct d9__parquet_values *values);

/* Add a value, or note that one is missing.  0 or -ENOMEM. */
int d9__parquet_values_add(struct d9__parquet_values *values, uint64_t number);
int d9__parquet_values_add_text(struct d9__parquet_values *values, const char *text, size_t len);
int d9__parquet_values_skip(struct d9__parquet_values *values);

/* Begin the next row group. */
void d9__parquet_values_reset(struct d9__parquet_values *values);

/* The description of a row group's chunk in the file's footer. */
struct d9__parquet_chunk {
	uint64_t dictionary_at, data_at; /* behind the chunk's start; without a dictionary both are 0 */
	uint64_t plain_bytes, bytes;	 /* with headers, before and after packing */
	bool has_dictionary;
	uint64_t missing;
	struct d9__bytes least, largest; /* both empty: they are not told */
};
