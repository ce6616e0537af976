/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as a read-only database.  A table is filled when the first question needs it. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "query/query_output.h"

/* Traces of one query: the first, which is "main", and those that were attached. */
#define D9__QUERY_TRACES 9

/* One of them: its tables are NAME.polls and so on. */
struct d9__query_trace {
	const char *name;
	char **paths;	 /* they end with NULL */
	uint32_t filled; /* tables, a bit for each */
	uint32_t asked;	 /* those that the statement reads */
};

/* A trace to attach. */
struct d9__query_attached {
	char *name;
	char *paths[2]; /* ends with NULL */
};

struct d9__query_options {
	const char *command; /* that speaks */
	enum d9__query_format format;
	bool no_symbols, verbose;
	uint64_t timeout_ns;   /* of one statement; 0: none */
	uint64_t memory_bytes; /* of SQLite; 0: no limit */
	struct d9__query_attached *attached;
	size_t n_attached;
};

struct d9__query {
	const struct d9__query_options *options;
	struct d9__query_trace traces[D9__QUERY_TRACES];
	size_t n;
	sqlite3 *db;
	bool denied;	   /* it wants to change something */
	uint64_t until_ns; /* when it has taken too long; 0: it may take any time */
	bool late;
	int status; /* of reading: 2 if the trace is damaged */
};

/*
 * Make the empty tables, in |path| or, if that is NULL, in a file that goes with the process.
 * |paths|, which end with NULL, and those in |options| are read.  0, else the exit status, with a
 * line on stderr.
 */
int d9__query_open(struct d9__query *query, const struct d9__query_options *options, char **paths,
		   const char *path);

/* Fill all tables.  0, else the exit status, with a line on stderr. */
int d9__query_read(struct d9__query *query);

/* Fill all tables, with indices and statistics.  0, else the exit status, with a line on stderr. */
int d9__query_fill(struct d9__query *query);

/* Run the statements of |sql|, and write their rows.  0, else the exit status, with a line on
 * stderr. */
int d9__query_run(struct d9__query *query, const char *sql, struct d9__text_out *out);

/* True if |line| is a command, which begins with a dot; if so do it, |*status| is then as of
 * d9__query_run(). */
bool d9__query_command(const char *line, struct d9__text_out *out, int *status);

void d9__query_close(struct d9__query *query);

/* All tables and views, or those called |name|, as SQL; false: there is none of that name. */
bool d9__query_put_schema(struct d9__text_out *out, const char *name);
