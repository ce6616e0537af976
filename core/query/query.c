/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "query/query.h"
#include "query/query_load.h"
#include "query/query_schema.h"
#include "text/fail.h"
#include "tool/trace_input.h"

#define ALL_TABLES ((UINT32_C(1) << D9__QUERY_TABLES) - 1)

/* The KiB of the tables that SQLite keeps in memory; the rest is in a file without a name. */
#define CACHE "262144"

/* Steps of SQLite's machine between two looks at the clock. */
#define LOOK_EVERY 10000

/* Columns of EXPLAIN. */
#define EXPLAIN_OPCODE 1
#define EXPLAIN_P2     3
#define EXPLAIN_P3     4

/* ---- what a statement may do ---- */

static bool is_harmless_pragma(const char *name)
{
	return !strcmp(name, "table_info") || !strcmp(name, "table_xinfo") ||
	       !strcmp(name, "table_list") || !strcmp(name, "function_list") ||
	       !strcmp(name, "index_list") || !strcmp(name, "index_info");
}

static int authorize(void *context, int action, const char *first, const char *second,
		     const char *database, const char *trigger)
{
	struct d9__query *query = context;

	(void)second;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_READ:
	case SQLITE_SELECT:
	case SQLITE_FUNCTION:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_PRAGMA:
		if (is_harmless_pragma(first))
			return SQLITE_OK;
		break;
	default:
		break;
	}
	query->denied = true;
	return SQLITE_DENY;
}

static int look_at_clock(void *context)
{
	struct d9__query *query = context;

	if (!query->until_ns || d9__mono_ns() < query->until_ns)
		return 0;
	query->late = true;
	return 1;
}

/* ---- functions ---- */

/* The values of a group. */
struct values {
	double *items;
	size_t n, capacity;
	double percent;
	bool failed;
};

static void add_value(sqlite3_context *context, int n, sqlite3_value **args)
{
	struct values *values = sqlite3_aggregate_context(context, sizeof(*values));

	(void)n;
	if (!values || values->failed || sqlite3_value_type(args[0]) == SQLITE_NULL)
		return;
	values->percent = sqlite3_value_double(args[1]);
	if (values->n == values->capacity) {
		size_t capacity = values->capacity ? 2 * values->capacity : 64;
		/* SQLite's own, so that its limit of memory holds. */
		double *bigger = sqlite3_realloc64(values->items, capacity * sizeof(*bigger));

		values->failed = !bigger;
		if (!bigger)
			return;
		values->items = bigger;
		values->capacity = capacity;
	}
	values->items[values->n++] = sqlite3_value_double(args[0]);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void give_percentile(sqlite3_context *context)
{
	struct values *values = sqlite3_aggregate_context(context, 0);
	size_t rank;

	if (values && values->failed) {
		sqlite3_result_error_nomem(context);
	} else if (!values || !values->n) {
		sqlite3_result_null(context);
	} else if (!(values->percent >= 0 && values->percent <= 100)) {
		sqlite3_result_error(context, "percentile(VALUE, P) takes a P of 0 to 100", -1);
	} else {
		/* Nearest rank, as in dial9 report; 99.9 / 100 * 1000 would be above 999. */
		qsort(values->items, values->n, sizeof(*values->items), compare);
		rank = (size_t)ceil(values->percent * (double)values->n / 100);
		sqlite3_result_double(context, values->items[rank ? rank - 1 : 0]);
	}
	if (values)
		sqlite3_free(values->items);
}

/* Add percentile(VALUE, P).  0, or SQLite's error. */
static int add_functions(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "percentile", 2,
					  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
					  NULL, NULL, add_value, give_percentile, NULL);
}

/* ---- open, fill, close ---- */

static int fail(const struct d9__query *query)
{
	return d9__cmd_fail(query->options->command, "%s", sqlite3_errmsg(query->db));
}

/* Make what |sql| makes, "CREATE TABLE polls (...)", in |schema|.  An error of SQLite, or 0. */
static int make_in(sqlite3 *db, const char *schema, const char *sql)
{
	size_t len = strlen(strncmp(sql, "CREATE VIEW ", 12) ? "CREATE TABLE " : "CREATE VIEW ");
	char *text = sqlite3_mprintf("%.*s\"%w\".%s", (int)len, sql, schema, sql + len);
	int err = text ? sqlite3_exec(db, text, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(text);
	return err;
}

/* An error of SQLite, or 0. */
static int make_tables(sqlite3 *db, const char *schema)
{
	char *settings =
		sqlite3_mprintf("PRAGMA \"%w\".journal_mode=MEMORY; PRAGMA \"%w\".synchronous=OFF;"
				"PRAGMA \"%w\".cache_size=-" CACHE,
				schema, schema, schema);
	int err = settings ? sqlite3_exec(db, settings, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(settings);
	for (unsigned i = 0; i < D9__QUERY_TABLES && !err; i++) {
		char *sql = d9__query_table_sql(i);

		err = sql ? make_in(db, schema, sql) : SQLITE_NOMEM;
		free(sql);
	}
	for (size_t i = 0; d9__query_views[i].name && !err; i++)
		err = make_in(db, schema, d9__query_views[i].sql);
	return err;
}

/* An error of SQLite, or 0. */
static int attach(struct d9__query *query, struct d9__query_trace *trace)
{
	char *sql = sqlite3_mprintf("ATTACH '' AS \"%w\"", trace->name);
	int err = sql ? sqlite3_exec(query->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return err;
}

static int make_all(struct d9__query *query)
{
	int err = sqlite3_exec(
		query->db,
		"PRAGMA application_id=1145649465; PRAGMA user_version=1; PRAGMA temp_store=FILE",
		NULL, NULL, NULL);

	for (size_t i = 0; i < query->n && !err; i++) {
		err = i ? attach(query, &query->traces[i]) : 0;
		if (!err)
			err = make_tables(query->db, query->traces[i].name);
	}
	/* Tables of JSON are made at their first use, which is not permitted later; a SQLite may lack them. */
	if (!err)
		sqlite3_exec(query->db, "SELECT 1 FROM json_each('[]'), json_tree('[]')", NULL, NULL, NULL);
	return err ? err : add_functions(query->db);
}

/* So that a question is not typed in vain. */
static int check_traces(const char *command, char **paths)
{
	struct d9_reader *reader = NULL;
	int status = d9__traces_have_pipe(paths) ? 0 : d9__traces_open(command, paths, &reader);

	d9_reader_free(reader);
	return status;
}

int d9__query_open(struct d9__query *query, const struct d9__query_options *options, char **paths,
		   const char *path)
{
	int err = 0;

	*query = (struct d9__query) { .options = options,
				      .traces = { { .name = "main", .paths = paths } },
				      .n = 1 };
	for (size_t i = 0; i < options->n_attached; i++)
		query->traces[query->n++] =
			(struct d9__query_trace) { .name = options->attached[i].name,
						   .paths = options->attached[i].paths };
	for (size_t i = 0; i < query->n && !err; i++)
		err = check_traces(options->command, query->traces[i].paths);
	if (err)
		return err;
	/* One thread does it all. */
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	if (options->memory_bytes)
		sqlite3_hard_heap_limit64((sqlite3_int64)options->memory_bytes);
	err = sqlite3_open_v2(path ? path : "", &query->db,
			      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	if (!err)
		err = make_all(query);
	if (err)
		return fail(query);
	sqlite3_db_config(query->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(query->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(query->db, SQLITE_LIMIT_LENGTH, 64 << 20);
	sqlite3_set_authorizer(query->db, authorize, query);
	sqlite3_progress_handler(query->db, LOOK_EVERY, look_at_clock, query);
	return 0;
}

static int fill(struct d9__query *query, struct d9__query_trace *trace, uint32_t wanted)
{
	uint64_t start_ns = d9__mono_ns(), rows = 0;
	int status;

	wanted &= ~trace->filled;
	if (!wanted)
		return 0;
	/* Fill all tables at once, because a pipe can be read only once. */
	if (d9__traces_have_pipe(trace->paths))
		wanted = ALL_TABLES;
	sqlite3_set_authorizer(query->db, NULL, NULL);
	query->until_ns = 0;
	status = d9__query_load(query->options->command,
				&(struct d9__query_target) { query->db, trace->name, wanted },
				trace->paths, query->options->no_symbols, &rows);
	sqlite3_set_authorizer(query->db, authorize, query);
	trace->filled |= wanted;
	if (query->options->verbose)
		fprintf(stderr, "dial9 query: %llu rows in %.2f s\n", (unsigned long long)rows,
			(double)(d9__mono_ns() - start_ns) / 1e9);
	if (!rows && status)
		return status;
	query->status |= status;
	return 0;
}

static int fill_asked(struct d9__query *query)
{
	int status = 0;

	for (size_t i = 0; i < query->n && !status; i++)
		status = fill(query, &query->traces[i], query->traces[i].asked);
	return status;
}

int d9__query_read(struct d9__query *query)
{
	return fill(query, &query->traces[0], ALL_TABLES);
}

int d9__query_fill(struct d9__query *query)
{
	int status = fill(query, &query->traces[0], ALL_TABLES), err = 0;

	if (status)
		return status;
	sqlite3_set_authorizer(query->db, NULL, NULL);
	for (unsigned i = 0; i < D9__QUERY_TABLES && !err; i++)
		if (d9__query_tables[i].index)
			err = sqlite3_exec(query->db, d9__query_tables[i].index, NULL, NULL, NULL);
	if (!err)
		err = sqlite3_exec(query->db, "ANALYZE", NULL, NULL, NULL);
	sqlite3_set_authorizer(query->db, authorize, query);
	return err ? fail(query) : 0;
}

void d9__query_close(struct d9__query *query)
{
	sqlite3_close(query->db);
}

/* ---- run ---- */

/* Add the table of |trace| that the b-tree at the page |root|, its own or an index's, belongs to.
 * An error of SQLite, or 0. */
static int ask_table(struct d9__query *query, struct d9__query_trace *trace, sqlite3_int64 root)
{
	char *sql =
		sqlite3_mprintf("SELECT tbl_name FROM \"%w\".sqlite_master WHERE rootpage = %lld",
				trace->name, root);
	sqlite3_stmt *owner = NULL;
	enum d9__query_table table;
	int err = sql ? sqlite3_prepare_v2(query->db, sql, -1, &owner, NULL) : SQLITE_NOMEM;

	if (!err && sqlite3_step(owner) == SQLITE_ROW) {
		table = d9__query_table_find((const char *)sqlite3_column_text(owner, 0));
		if (table != D9__QUERY_TABLES)
			trace->asked |= UINT32_C(1) << table;
	}
	sqlite3_finalize(owner);
	sqlite3_free(sql);
	return err;
}

/* The trace with the number that SQLite gives its schema: 0 is main, 1 holds temporary tables. */
static struct d9__query_trace *trace_of_schema(struct d9__query *query, int schema)
{
	size_t i = schema < 2 ? 0 : (size_t)schema - 1;

	return schema != 1 && i < query->n ? &query->traces[i] : NULL;
}

/* Add all tables that |program|, an EXPLAIN, opens.  An error of SQLite, or 0. */
static int ask_opened(struct d9__query *query, sqlite3_stmt *program)
{
	int err = 0;

	while (!err && sqlite3_step(program) == SQLITE_ROW) {
		const char *opcode = (const char *)sqlite3_column_text(program, EXPLAIN_OPCODE);
		struct d9__query_trace *trace =
			trace_of_schema(query, sqlite3_column_int(program, EXPLAIN_P3));

		if (trace && opcode &&
		    (!strcmp(opcode, "OpenRead") || !strcmp(opcode, "ReopenIdx")))
			err = ask_table(query, trace, sqlite3_column_int64(program, EXPLAIN_P2));
	}
	return err ? err : sqlite3_reset(program);
}

/*
 * Set |asked| to the tables that the statement of |len| bytes at |sql| reads.  The compiled program tells them all,
 * because it opens them; the authorizer is not told of a column that is only in USING or NATURAL JOIN.  An error of SQLite, or 0.
 */
static int find_asked(struct d9__query *query, const char *sql, int len)
{
	char *text = sqlite3_mprintf("EXPLAIN %.*s", len, sql);
	sqlite3_stmt *program = NULL;
	int err = text ? sqlite3_prepare_v2(query->db, text, -1, &program, NULL) : SQLITE_NOMEM;

	for (size_t i = 0; i < query->n; i++)
		query->traces[i].asked = 0;
	query->until_ns = 0;
	if (!err)
		err = ask_opened(query, program);
	sqlite3_finalize(program);
	sqlite3_free(text);
	return err;
}

static int tell_error(const struct d9__query *query)
{
	if (query->late)
		return d9__cmd_fail("query", "stopped after %.3g s; --timeout allows more",
				    (double)query->options->timeout_ns / 1e9);
	if (query->denied)
		return d9__cmd_fail("query", "a trace is not changed: SELECT is what there is");
	if (sqlite3_errcode(query->db) == SQLITE_NOMEM)
		return d9__cmd_fail("query", "needs more memory than --memory allows");
	if (sqlite3_errcode(query->db) == SQLITE_INTERRUPT)
		return d9__cmd_fail("query", "interrupted");
	if (strstr(sqlite3_errmsg(query->db), "no such"))
		return d9__cmd_fail("query", "%s; .schema shows what there is",
				    sqlite3_errmsg(query->db));
	return fail(query);
}

/* Run the first statement of |sql|, which goes on at |*rest|. */
static int run_one(struct d9__query *query, const char *sql, struct d9__text_out *out,
		   const char **rest)
{
	sqlite3_stmt *stmt;
	int err, status;

	query->denied = query->late = false;
	err = sqlite3_prepare_v2(query->db, sql, -1, &stmt, rest);
	/* EXPLAIN reads no row, so no table has to be filled. */
	if (!err && stmt && !sqlite3_stmt_isexplain(stmt))
		err = find_asked(query, sql, (int)(*rest - sql));
	if (err) {
		sqlite3_finalize(stmt);
		return tell_error(query);
	}
	status = stmt ? fill_asked(query) : 0;
	if (status || !stmt) {
		sqlite3_finalize(stmt);
		return status;
	}
	query->until_ns =
		query->options->timeout_ns ? d9__mono_ns() + query->options->timeout_ns : 0;
	err = d9__query_output(out, stmt, query->options->format);
	d9__text_flush(out);
	status = err == SQLITE_DONE || out->err ? 0 : tell_error(query);
	sqlite3_finalize(stmt);
	return status;
}

int d9__query_run(struct d9__query *query, const char *sql, struct d9__text_out *out)
{
	int status = 0;

	while (!status && *sql)
		status = run_one(query, sql, out, &sql);
	return status;
}

bool d9__query_put_schema(struct d9__text_out *out, const char *name)
{
	bool any = false;
	char *sql;

	for (unsigned i = 0; i < D9__QUERY_TABLES; i++) {
		if (name && strcasecmp(name, d9__query_tables[i].name) != 0)
			continue;
		sql = d9__query_table_sql(i);
		d9__text_printf(out, "%s;\n", sql ? sql : "");
		free(sql);
		any = true;
	}
	for (size_t i = 0; d9__query_views[i].name; i++) {
		if (name && strcasecmp(name, d9__query_views[i].name) != 0)
			continue;
		d9__text_printf(out, "%s;\n", d9__query_views[i].sql);
		any = true;
	}
	return any;
}

static void put_names(struct d9__text_out *out)
{
	for (unsigned i = 0; i < D9__QUERY_TABLES; i++)
		d9__text_printf(out, "%s ", d9__query_tables[i].name);
	for (size_t i = 0; d9__query_views[i].name; i++)
		d9__text_printf(out, "%s%s", d9__query_views[i].name,
				d9__query_views[i + 1].name ? " " : "\n");
}

bool d9__query_command(const char *line, struct d9__text_out *out, int *status)
{
	char word[32] = "", name[64] = "";

	if (sscanf(line, " %31s %63s", word, name) < 1 || word[0] != '.')
		return false;
	*status = 0;
	if (!strcmp(word, ".tables"))
		put_names(out);
	else if (strcmp(word, ".schema") != 0)
		*status = d9__cmd_fail("query",
				       "no command '%s'; there are .schema [TABLE], .tables, "
				       ".format FORMAT, .quit",
				       word);
	else if (!d9__query_put_schema(out, name[0] ? name : NULL))
		*status = d9__cmd_fail("query", "no table '%s'; .tables names them all", name);
	return true;
}
