/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `dial9 query` as Parquet files: SQLite holds them meanwhile, so that memory does not grow with the trace. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export_parquet.h"
#include "export/export_partitions.h"
#include "export/export_sink.h"
#include "query/query.h"
#include "query/query_schema.h"
#include "text/fail.h"

#define COLUMNS_MAX 24

#define OFFSET "SELECT (SELECT wall_offset_ns FROM processes p WHERE p.process = t.process) + t."

/* Which time of a row its |ts| is; the tables that are not here have none. */
static const struct {
	enum d9__query_table table;
	const char *sql;
} times[] = {
	{ D9__QUERY_PROCESSES, "SELECT wall_offset_ns + start_ns, t.* FROM processes t" },
	{ D9__QUERY_SEGMENTS, OFFSET "first_ns, t.* FROM segments t" },
	{ D9__QUERY_TASKS, OFFSET "spawned_ns, t.* FROM tasks t" },
	{ D9__QUERY_POLLS, OFFSET "start_ns, t.* FROM polls t" },
	{ D9__QUERY_PARKS, OFFSET "start_ns, t.* FROM parks t" },
	{ D9__QUERY_WAKES, OFFSET "time_ns, t.* FROM wakes t" },
	{ D9__QUERY_SPANS, OFFSET "first_ns, t.* FROM spans t" },
	{ D9__QUERY_SAMPLES, OFFSET "time_ns, t.* FROM samples t" },
	{ D9__QUERY_BLOCKING, OFFSET "start_ns, t.* FROM blocking t" },
	{ D9__QUERY_ALLOCATIONS, OFFSET "time_ns, t.* FROM allocations t" },
	{ D9__QUERY_DUMPS, OFFSET "time_ns, t.* FROM dumps t" },
	{ D9__QUERY_EVENTS, OFFSET "time_ns, t.* FROM events t" },
	{ D9__QUERY_EVIDENCE, "SELECT (SELECT wall_offset_ns FROM processes JOIN findings USING (process) WHERE finding = t.finding)"
			      " + t.time_ns, t.* FROM evidence t" },
};

/* A table on its way into its file. */
struct table {
	const char *name;
	sqlite3_stmt *rows;
	struct d9__parquet_column columns[COLUMNS_MAX];
	size_t n;
	bool has_ts;	    /* then ts is the first column */
	uint64_t too_large; /* numbers that have no place in a signed column */
};

static int write_to_sink(void *sink, const void *bytes, size_t len)
{
	return d9__export_sink_write(sink, bytes, len);
}

/* An error of SQLite, or 0. */
static int ask(sqlite3 *db, enum d9__query_table number, struct table *table)
{
	char sql[64];
	const char *text = sql;
	int err;

	table->name = d9__query_tables[number].name;
	snprintf(sql, sizeof(sql), "SELECT * FROM %s", table->name);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (times[i].table == number)
			text = times[i].sql;
	table->has_ts = text != sql;
	err = sqlite3_prepare_v2(db, text, -1, &table->rows, NULL);
	if (err)
		return err;
	table->n = (size_t)sqlite3_column_count(table->rows);
	for (size_t i = 0; i < table->n; i++) {
		const char *type = sqlite3_column_decltype(table->rows, (int)i);

		table->columns[i].name = sqlite3_column_name(table->rows, (int)i);
		table->columns[i].type = type && !strcmp(type, "TEXT") ? D9__PARQUET_TEXT : D9__PARQUET_I64;
		table->columns[i].optional = true;
	}
	if (table->has_ts)
		table->columns[0] = (struct d9__parquet_column){ "ts", D9__PARQUET_TIME, true };
	return 0;
}

static void put_value(struct table *table, size_t i, struct d9__parquet *file)
{
	int type = sqlite3_column_type(table->rows, (int)i);

	if (type == SQLITE_NULL) {
		d9__parquet_null(file);
	} else if (table->columns[i].type == D9__PARQUET_TEXT) {
		const char *text = (const char *)sqlite3_column_text(table->rows, (int)i);

		d9__parquet_text(file, text ? text : "", (size_t)sqlite3_column_bytes(table->rows, (int)i));
	} else if (type == SQLITE_INTEGER) {
		sqlite3_int64 value = sqlite3_column_int64(table->rows, (int)i);

		d9__parquet_i64(file, table->columns[i].type == D9__PARQUET_TIME ? value / 1000 : value);
	} else {
		table->too_large++;
		d9__parquet_null(file);
	}
}

/* 0 or -errno; errors of SQLite are told by its database. */
static int put_rows(struct table *table, struct d9__parquet *file, int *step)
{
	int err = 0;

	while (!err && (*step = sqlite3_step(table->rows)) == SQLITE_ROW) {
		for (size_t i = 0; i < table->n; i++)
			put_value(table, i, file);
		err = d9__parquet_row(file);
	}
	return err;
}

static int write_file(struct table *table, const char *path, int *step)
{
	struct d9__parquet *file = NULL;
	struct d9__sink *sink;
	int err = d9__export_sink_open(path, false, &sink);

	if (err)
		return err;
	err = d9__parquet_open(table->columns, table->n, write_to_sink, sink, &file);
	if (!err) {
		d9__parquet_metadata(file, "dial9.table", table->name);
		err = put_rows(table, file, step);
	}
	if (!err && *step == SQLITE_DONE) {
		err = d9__parquet_close(file);
		file = NULL;
	}
	d9__parquet_abandon(file);
	if (err || *step != SQLITE_DONE)
		d9__export_sink_abandon(sink);
	else
		err = d9__export_sink_commit(sink);
	return err;
}

static int write_table(sqlite3 *db, enum d9__query_table number, const char *folder)
{
	struct table table = { .rows = NULL };
	int step = SQLITE_DONE, err = 0, status = 0;
	char *path;

	if (asprintf(&path, "%s/%s.parquet", folder, d9__query_tables[number].name) < 0)
		return d9__cmd_fail("export", "out of memory");
	step = ask(db, number, &table);
	if (!step)
		err = write_file(&table, path, &step);
	if (err)
		status = d9__export_explain(path, err);
	else if (step != SQLITE_DONE)
		status = d9__cmd_fail("export", "%s: %s", path, sqlite3_errmsg(db));
	else if (table.too_large)
		d9__cmd_fail("export", "%s: numbers of 2^63 and more are left out (%llu): the trace is damaged, or another program's", path,
			     (unsigned long long)table.too_large);
	sqlite3_finalize(table.rows);
	free(path);
	return status;
}

static int64_t count(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t n = 0;

	if (!sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) && sqlite3_step(stmt) == SQLITE_ROW)
		n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

/* Warn that times of day are missing, because they need a clock anchor. */
static void tell_times(sqlite3 *db)
{
	if (count(db, "SELECT count(*) FROM processes WHERE wall_offset_ns IS NULL"))
		d9__cmd_fail("export", "no clock anchor (ClockSyncEvent): ts is empty, times are those of CLOCK_MONOTONIC alone");
}

static int write_tables(struct d9__query *query, const char *folder)
{
	char *inside;
	int err, status = 0;

	if (asprintf(&inside, "%s/", folder) < 0)
		return d9__cmd_fail("export", "out of memory");
	err = d9__export_folders(inside);
	free(inside);
	if (err)
		return d9__export_explain(folder, err);
	tell_times(query->db);
	query->until_ns = 0;
	for (unsigned i = 0; i < D9__QUERY_TABLES && !status; i++)
		status = write_table(query->db, i, folder);
	return status;
}

int d9__export_tables(char **paths, const char *folder)
{
	const struct d9__query_options options = { .command = "export" };
	struct d9__query query;
	int status;

	if (!*paths)
		return d9__cmd_fail("export", "which TRACE? see dial9 export --help");
	status = d9__query_open(&query, &options, paths, NULL);
	if (!status)
		status = d9__query_read(&query);
	if (!status)
		status = write_tables(&query, folder);
	d9__query_close(&query);
	return status ? status : query.status;
}
