/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an answer, for people and for programs. */

#pragma once

#include <stdbool.h>

#include <sqlite3.h>

#include "text/text.h"

enum d9__query_format {
	D9__QUERY_TABLE, /* columns in line; on a terminal, of long texts the beginning */
	D9__QUERY_CSV,	 /* RFC 4180 with a line of names; control characters are escaped */
	D9__QUERY_JSONL, /* one object a line */
	D9__QUERY_JSON,	 /* an array of objects */
	D9__QUERY_FORMATS
};

/* The format |name|, or D9__QUERY_FORMATS. */
enum d9__query_format d9__query_format_find(const char *name);

/* Run |stmt| to its end and write its rows.  SQLITE_DONE, or SQLite's error. */
int d9__query_output(struct d9__text_out *out, sqlite3_stmt *stmt, enum d9__query_format format);
