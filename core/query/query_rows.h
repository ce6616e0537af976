/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into the tables of a query. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "query/query_schema.h"

/* Tables that are being filled.  After the first error nothing more is written; |err| is SQLite's.
 */
struct d9__query_rows {
	sqlite3 *db;
	const char *schema;			 /* that the tables are in; borrowed */
	sqlite3_stmt *insert[D9__QUERY_TABLES];	 /* NULL: not wanted */
	sqlite3_stmt *end_task, *end_allocation, *read_run; /* made when they are needed */
	int err;
};

/* Tables to fill. */
struct d9__query_target {
	sqlite3 *db;
	const char *schema;
	uint32_t wanted; /* a bit for each; those must be empty */
};

/* Begin to fill |target|'s tables.  0, or SQLite's error. */
int d9__query_rows_begin(struct d9__query_rows *rows, const struct d9__query_target *target);

/* Make |*stmt| of |sql|, "UPDATE \"%w\".TABLE ...", which names the schema so, unless it is there.
 * 0, or SQLite's error. */
int d9__query_prepare(const struct d9__query_rows *rows, sqlite3_stmt **stmt, const char *sql);

/* Keep the rows, or none after an error.  0, or the first error of SQLite. */
int d9__query_rows_end(struct d9__query_rows *rows);

static inline bool d9__query_wants(const struct d9__query_rows *rows, enum d9__query_table table)
{
	return rows->insert[table] != NULL;
}

/* Add the row |of|, as its columns have it, of a table that is shared with the report, if it is
 * wanted. */
void d9__query_put(struct d9__query_rows *rows, enum d9__query_table table, const void *of);

/* One row of another table: its columns in their order, then d9__query_row_done(). */
struct d9__query_row {
	struct d9__query_rows *rows;
	sqlite3_stmt *stmt;
	int column;
};

static inline struct d9__query_row d9__query_row(struct d9__query_rows *rows,
						 enum d9__query_table table)
{
	return (struct d9__query_row) { .rows = rows, .stmt = rows->insert[table], .column = 1 };
}

static inline void d9__query_null(struct d9__query_row *row)
{
	sqlite3_bind_null(row->stmt, row->column++);
}

/* Numbers that SQLite's do not hold become texts. */
void d9__query_u64(struct d9__query_row *row, uint64_t n);

/* NULL if |known| is false. */
static inline void d9__query_known(struct d9__query_row *row, bool known, uint64_t n)
{
	known ? d9__query_u64(row, n) : d9__query_null(row);
}

/* |text| lives until the row is done; NULL if there is none. */
void d9__query_text(struct d9__query_row *row, const char *text, size_t len);
void d9__query_string(struct d9__query_row *row, const char *text);

/* "0x1a2b" */
void d9__query_hex(struct d9__query_row *row, uint64_t n);

void d9__query_row_done(struct d9__query_row *row);
