/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet pages: the values of a column, packed. */

#pragma once

#include "fleet/parquet_column.h"

/* Write all pages of |values| to |out|.  0 or -ENOMEM. */
int d9__parquet_values_pack(const struct d9__parquet_values *values, ZSTD_CCtx *zstd,
			    struct d9__bytes *out, struct d9__parquet_chunk *chunk);

void d9__parquet_chunk_release(struct d9__parquet_chunk *chunk);
