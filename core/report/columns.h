/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns: the figures of a row of the report's text, of its JSON and of the tables of a query.
 * Each has one meaning, one unit and one way to get at its value on all of these.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/hot_threads.h"
#include "report/report.h"
#include "text/json.h"

/* How a value is shown; the last three are texts in SQL. */
enum d9__column_unit {
	D9__AS_COUNT,
	D9__AS_ID,
	D9__AS_KEY, /* an id that no two rows of a table of SQL have */
	D9__AS_NS,
	D9__AS_BYTES,
	D9__AS_SHARE, /* of 1; NULL below 0 */
	D9__AS_FLAG,
	D9__AS_OBJECT, /* in JSON alone: the column has its place, and code writes it */
	D9__AS_DIGITS, /* a number, which is a text in SQL */
	D9__AS_TEXT,
	D9__AS_NAME, /* may be cut in text, where "-" stands for none; in SQL "" is NULL */
};

/* A number that is not known in all rows: NULL in SQL and JSON. */
struct d9__known {
	bool is;
	uint64_t n;
};

enum d9__column_type {
	D9__OF_U64,
	D9__OF_U32,
	D9__OF_I64,
	D9__OF_KNOWN,
	D9__OF_DOUBLE,
	D9__OF_BOOL,
	D9__OF_STRING,
	D9__OF_TEXT, /* struct d9_text */
};

/* Arrays of these are in JSON's order, and end with one without a name. */
struct d9__column {
	const char *key;     /* in JSON; NULL: it is not there */
	const char *sql;     /* in SQL, likewise */
	const char *heading; /* in the report's text, likewise */
	enum d9__column_unit unit;
	enum d9__column_type type; /* of the member at |at| */
	bool inside;		   /* of what the row's first member points to, not of the row */
	size_t at;
	const char *meaning; /* in SQL's schema and REPORT-JSON.md; NULL: its name says it */
};

struct d9__value {
	bool is;    /* false: there is none */
	uint64_t n; /* a number, or a flag */
	double share;
	const char *text; /* of |len| bytes; not terminated */
	size_t len;
};

/* False behind the last of an array. */
static inline bool d9__column_is(const struct d9__column *column)
{
	return column->key || column->sql || column->heading;
}

/* The column with the name |heading| in the report's text; NULL: there is none. */
const struct d9__column *d9__column_headed(const struct d9__column *columns, const char *heading);

struct d9__value d9__column_value(const struct d9__column *column, const void *row);

/*
 * Write the keys of |columns| behind the key |after| (NULL: from the first on) up to the next
 * object of the caller's making.
 */
void d9__columns_json(struct d9__json *json, const struct d9__column *columns, const char *after,
		      const void *row);

/* ---- rows ---- */

/* How often threads left the CPU, as |off| samples tell, of which |switches| were taken in slices
 * of the time. */
uint64_t d9__off_cpu_estimated(const struct d9__analysis *a, uint64_t off, uint64_t switches);

struct d9__quantiles {
	uint64_t count, sum_ns, min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};
extern const struct d9__column d9__quantile_columns[];
struct d9__quantiles d9__quantiles_of(const struct d9__histogram *h);

struct d9__worker_row {
	const struct d9__worker *worker;
	uint64_t process, calls, busy_ns, long_call_ns;
	const char *name;
	double busy, utilisation, on_cpu, cpu_ratio;
	struct d9__known cpu_ns;
};
extern const struct d9__column d9__worker_columns[];
void d9__worker_row(struct d9__worker_row *row, const struct d9__analysis *a,
		    const struct d9__worker *worker);

struct d9__callback_row {
	const struct d9__callback *callback;
	uint64_t id, process, off_estimated, off_ns, longest_ns;
	struct d9_text name;
	const char *way, *site, *kind;
	struct d9__quantiles calls;
	double share; /* of all calls' time; 0 until a table sets it */
	char way_text[512], kind_text[128];
};
extern const struct d9__column d9__callback_columns[];
void d9__callback_row(struct d9__callback_row *row, const struct d9__analysis *a,
		      const struct d9__callback *callback);

/* Return the number of |callback| among those of all processes of a trace, from 1. */
uint64_t d9__callback_id(const struct d9__analysis *a, const struct d9__callback *callback);

/* All registrations together, and one of them. */
struct d9__tasks_row {
	const struct d9__tasks *tasks;
	int64_t peak, at_end;
};
extern const struct d9__column d9__tasks_columns[];
struct d9__tasks_row d9__tasks_row(const struct d9__tasks *tasks);

struct d9__task_row {
	uint64_t process, task, spawned_ns;
	struct d9__known callback, fd, ended_ns;
	struct d9_text kind, name;
};
extern const struct d9__column d9__task_columns[];

/* Spans of one name, of one origin of these, and one of them. */
extern const struct d9__column d9__span_name_columns[]; /* of struct d9__span_name */

struct d9__span_origin_row {
	const struct d9__span_type *type;
	struct d9_text origin;
	uint64_t over_10_p50;
};
extern const struct d9__column d9__span_origin_columns[];
struct d9__span_origin_row d9__span_origin_row(const struct d9__span_type *type);

struct d9__span_row {
	uint64_t process, first_ns, active_ns, enters;
	struct d9__known id, parent, worker, task, last_ns;
	const char *name, *origin;
	bool closed, callback;
};
extern const struct d9__column d9__span_columns[];

/* All stack samples together, those of a thread, those in a function of it, and one of them. */
struct d9__samples_row {
	const struct d9__samples *samples;
	uint64_t off_estimated, off_ns, stacks, top_off;
	double switch_share, cpu_share;
};
extern const struct d9__column d9__samples_columns[];
struct d9__samples_row d9__samples_row(const struct d9__analysis *a);

struct d9__thread_row {
	const struct d9__sample_counts *counts;
	uint64_t process, tid, off_estimated, off_ns;
	struct d9__known worker;
	const char *name;
};
extern const struct d9__column d9__thread_columns[];
struct d9__thread_row d9__thread_row(const struct d9__analysis *a,
				     const struct d9__hot_thread *thread);

/* Return the row of a thread that runs |worker|, if no sample was taken of it. */
struct d9__thread_row d9__thread_row_of(const struct d9__analysis *a,
					const struct d9__worker *worker);

extern const struct d9__column d9__hot_function_columns[]; /* of struct d9__hot_function */

struct d9__sampled_row {
	uint64_t process, time_ns, tid;
	const char *source;
	struct d9_text thread;
	struct d9__known worker, task, poll, run, stack, cpu_ns, off_cpu_ns;
};
extern const struct d9__column d9__sample_columns[];

/* Calls that blocked, of one line; waits for a lock there; and one call. */
struct d9__blocked_row {
	const struct d9__blocked_site *site;
	struct d9_text callback;
	struct d9__known fd;
	uint64_t longest_at_ns;
	const char *call, *at;
	char call_text[64], at_text[192];
};
extern const struct d9__column d9__blocked_columns[];
void d9__blocked_row(struct d9__blocked_row *row, const struct d9__analysis *a,
		     const struct d9__blocked_site *site);

struct d9__lock_row {
	const struct d9__blocked_site *site;
	struct d9_text callback, holder_callback;
	struct d9__known held_cpu_ns, held_ready_ns, worker;
	uint64_t longest_at_ns;
	const char *holder_name, *holder, *at;
	char holder_text[400], at_text[192];
};
extern const struct d9__column d9__lock_columns[];
void d9__lock_row(struct d9__lock_row *row, const struct d9__analysis *a,
		  const struct d9__blocked_site *site);

struct d9__blocking_row {
	uint64_t process, start_ns, duration_ns, worker;
	struct d9_text function;
	struct d9__known fd, task, poll, run, stack, holder_tid, holder_task, holder_stack;
};
extern const struct d9__column d9__blocking_columns[];

struct d9__segment_row {
	const struct d9__segment_fact *segment;
	uint64_t process;
	const char *error;
};
extern const struct d9__column d9__segment_columns[];
struct d9__segment_row d9__segment_row(const struct d9__analysis *a, size_t i);
