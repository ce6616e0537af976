/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that a trace becomes: their columns, with units, as SQLite keeps them. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "report/columns.h"

enum d9__query_table {
	D9__QUERY_PROCESSES,
	D9__QUERY_SEGMENTS,
	D9__QUERY_METADATA,
	D9__QUERY_WORKERS,
	D9__QUERY_CALLBACKS,
	D9__QUERY_TASKS,
	D9__QUERY_RUNS,
	D9__QUERY_POLLS,
	D9__QUERY_PARKS,
	D9__QUERY_WAKES,
	D9__QUERY_SPANS,
	D9__QUERY_THREADS,
	D9__QUERY_SAMPLES,
	D9__QUERY_FRAMES,
	D9__QUERY_BLOCKING,
	D9__QUERY_ALLOCATIONS,
	D9__QUERY_DUMPS,
	D9__QUERY_EVENTS,
	D9__QUERY_FINDINGS,
	D9__QUERY_EVIDENCE,
	D9__QUERY_TABLES
};

struct d9__query_table_text {
	const char *name;
	const char
		*sql; /* CREATE TABLE, with a comment on each column; NULL: |shared| tells them */
	unsigned columns;  /* how many |sql| has */
	const char *index; /* CREATE INDEX for a database that is kept; NULL: none */

	const struct d9__column *shared; /* with the report */
	const char *about;		 /* it has a row for each of these */
	const char *const *order;	 /* names of columns; NULL: as in |shared| */
	const char *key; /* PRIMARY KEY of several columns, and all behind it; NULL: none */
};
extern const struct d9__query_table_text d9__query_tables[D9__QUERY_TABLES];

struct d9__query_view {
	const char *name, *sql;
};
extern const struct d9__query_view d9__query_views[]; /* ends with a row without a name */

/* CREATE TABLE of |table|, for free(); NULL: out of memory. */
char *d9__query_table_sql(enum d9__query_table table);

/* The table |name|, or D9__QUERY_TABLES. */
enum d9__query_table d9__query_table_find(const char *name);
