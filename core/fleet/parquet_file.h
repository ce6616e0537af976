/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parquet file: a table of rows as engines read it.
 *
 *	static const struct d9__parquet_column columns[] = {
 *		{ "host", D9__PARQUET_TEXT, false }, { "busy_ns", D9__PARQUET_I64, true },
 *	};
 *
 *	d9__parquet_open(columns, 2, write, context, &file);
 *	d9__parquet_string(file, "web-1");
 *	d9__parquet_i64(file, 12345);
 *	d9__parquet_row(file);
 *	err = d9__parquet_close(file);
 *
 * Pages are packed by zstd, values are PLAIN or by dictionary, types are signed, each chunk tells its least and largest value
 * and how many are missing: what every engine reads.  The same rows give the same bytes.  Memory: one row group, of at most
 * D9__PARQUET_GROUP_ROWS rows and about D9__PARQUET_GROUP_TEXT bytes of distinct texts.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum d9__parquet_type {
	D9__PARQUET_I64,
	D9__PARQUET_TIME, /* microseconds since 1970, UTC */
	D9__PARQUET_TEXT,
	D9__PARQUET_BOOL,
};

struct d9__parquet_column {
	const char *name;
	enum d9__parquet_type type;
	bool optional; /* values may be missing */
};

#define D9__PARQUET_GROUP_ROWS 122880
#define D9__PARQUET_GROUP_TEXT (16u << 20)

struct d9__parquet;

/* Writes |len| bytes.  0 or -errno. */
typedef int d9__parquet_write(void *context, const void *bytes, size_t len);

/* Begin a table.  |columns| are borrowed until the end.  0, -ENOMEM, or what |write| returned. */
int d9__parquet_open(const struct d9__parquet_column *columns, size_t n, d9__parquet_write *write, void *context,
		     struct d9__parquet **out);

/* Add a line to the file's own key-value metadata. */
void d9__parquet_metadata(struct d9__parquet *file, const char *key, const char *value);

/* Add the value of the next column. */
void d9__parquet_null(struct d9__parquet *file);
void d9__parquet_i64(struct d9__parquet *file, int64_t value);
void d9__parquet_bool(struct d9__parquet *file, bool value);
/* Bytes that are no UTF-8 become U+FFFD. */
void d9__parquet_text(struct d9__parquet *file, const char *text, size_t len);
void d9__parquet_string(struct d9__parquet *file, const char *text);

/* End the row.  0 or the first error of this file. */
int d9__parquet_row(struct d9__parquet *file);

/* Write what is left and the end, and free |file|.  0 or the first error. */
int d9__parquet_close(struct d9__parquet *file);

/* Free |file|, which is NULL or not finished. */
void d9__parquet_abandon(struct d9__parquet *file);
