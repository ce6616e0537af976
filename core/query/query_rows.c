/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "query/query_rows.h"

static int prepare(struct d9__query_rows *rows, enum d9__query_table table)
{
	const struct d9__query_table_text *text = &d9__query_tables[table];
	/* Of a task, an allocation or a thread that is told twice the first row counts. */
	bool twice = table == D9__QUERY_TASKS || table == D9__QUERY_ALLOCATIONS ||
		     table == D9__QUERY_THREADS;
	sqlite3_str *sql = sqlite3_str_new(rows->db);
	unsigned n = text->columns;
	char *whole;
	int err;

	sqlite3_str_appendf(sql, "INSERT %sINTO \"%%w\".%s ", twice ? "OR IGNORE " : "",
			    text->name);
	for (const struct d9__column *at = text->shared; at && d9__column_is(at); at++)
		if (at->sql)
			sqlite3_str_appendf(sql, "%s%s", n++ ? "," : "(", at->sql);
	sqlite3_str_appendall(sql, text->shared ? ") VALUES (?" : "VALUES (?");
	while (--n)
		sqlite3_str_appendall(sql, ",?");
	sqlite3_str_appendall(sql, ")");
	whole = sqlite3_str_finish(sql);
	err = whole ? d9__query_prepare(rows, &rows->insert[table], whole) : SQLITE_NOMEM;
	sqlite3_free(whole);
	return err;
}

int d9__query_prepare(const struct d9__query_rows *rows, sqlite3_stmt **stmt, const char *sql)
{
	char *text = *stmt ? NULL : sqlite3_mprintf(sql, rows->schema);
	int err = *stmt	  ? 0
		  : !text ? SQLITE_NOMEM
			  : sqlite3_prepare_v3(rows->db, text, -1, SQLITE_PREPARE_PERSISTENT, stmt,
					       NULL);

	sqlite3_free(text);
	return err;
}

int d9__query_rows_begin(struct d9__query_rows *rows, const struct d9__query_target *target)
{
	*rows = (struct d9__query_rows) { .db = target->db, .schema = target->schema };
	rows->err = sqlite3_exec(target->db, "BEGIN", NULL, NULL, NULL);
	for (unsigned i = 0; i < D9__QUERY_TABLES && !rows->err; i++)
		if (target->wanted >> i & 1)
			rows->err = prepare(rows, i);
	return rows->err;
}

int d9__query_rows_end(struct d9__query_rows *rows)
{
	int err;

	for (unsigned i = 0; i < D9__QUERY_TABLES; i++)
		sqlite3_finalize(rows->insert[i]);
	sqlite3_finalize(rows->end_task);
	sqlite3_finalize(rows->end_allocation);
	sqlite3_finalize(rows->read_run);
	err = sqlite3_exec(rows->db, rows->err ? "ROLLBACK" : "COMMIT", NULL, NULL, NULL);
	return rows->err ? rows->err : err;
}

static void put_digits(struct d9__query_row *row, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	sqlite3_bind_text(row->stmt, row->column++, text, -1, SQLITE_TRANSIENT);
}

void d9__query_u64(struct d9__query_row *row, uint64_t n)
{
	if (n <= INT64_MAX)
		sqlite3_bind_int64(row->stmt, row->column++, (int64_t)n);
	else
		put_digits(row, n);
}

void d9__query_text(struct d9__query_row *row, const char *text, size_t len)
{
	if (!text)
		d9__query_null(row);
	else if (sqlite3_bind_text64(row->stmt, row->column++, text, len, SQLITE_STATIC,
				     SQLITE_UTF8) &&
		 !row->rows->err)
		row->rows->err = SQLITE_TOOBIG;
}

void d9__query_string(struct d9__query_row *row, const char *text)
{
	d9__query_text(row, text, text ? strlen(text) : 0);
}

void d9__query_hex(struct d9__query_row *row, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, n);
	sqlite3_bind_text(row->stmt, row->column++, text, -1, SQLITE_TRANSIENT);
}

static void put_value(struct d9__query_row *row, const struct d9__column *column, const void *of)
{
	struct d9__value value = d9__column_value(column, of);

	if (!value.is || (column->unit == D9__AS_NAME && !value.len))
		d9__query_null(row);
	else if (value.text)
		d9__query_text(row, value.text, value.len);
	else if (column->unit == D9__AS_DIGITS)
		put_digits(row, value.n);
	else
		d9__query_u64(row, value.n);
}

void d9__query_put(struct d9__query_rows *rows, enum d9__query_table table, const void *of)
{
	struct d9__query_row row = d9__query_row(rows, table);

	if (!d9__query_wants(rows, table))
		return;
	for (const struct d9__column *at = d9__query_tables[table].shared; d9__column_is(at); at++)
		if (at->sql)
			put_value(&row, at, of);
	d9__query_row_done(&row);
}

void d9__query_row_done(struct d9__query_row *row)
{
	int err;

	if (row->rows->err)
		return;
	err = sqlite3_step(row->stmt);
	if (err != SQLITE_DONE)
		row->rows->err = err;
	sqlite3_reset(row->stmt);
}
