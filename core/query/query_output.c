/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "query/query_output.h"
#include "text/shown.h"

/*
 * The rows that decide a table's widths, and the widest a column of text may be unless it is the
 * only one.
 */
#define MEASURED 200
#define WIDEST	 48

enum d9__query_format d9__query_format_find(const char *name)
{
	static const char *const names[] = { "table", "csv", "jsonl", "json" };
	unsigned i = 0;

	while (i < D9__QUERY_FORMATS && strcmp(names[i], name) != 0)
		i++;
	return i;
}

/* ---- JSON ---- */

static void put_json(struct d9__text_out *out, sqlite3_stmt *stmt, int i)
{
	switch (sqlite3_column_type(stmt, i)) {
	case SQLITE_INTEGER:
		d9__text_i64(out, sqlite3_column_int64(stmt, i));
		break;
	case SQLITE_FLOAT:
		d9__text_f64(out, sqlite3_column_double(stmt, i));
		break;
	case SQLITE_NULL:
		d9__text_string(out, "null");
		break;
	default:
		d9__text_json(out, (const char *)sqlite3_column_text(stmt, i),
			      (size_t)sqlite3_column_bytes(stmt, i));
	}
}

static void put_object(struct d9__text_out *out, sqlite3_stmt *stmt)
{
	for (int i = 0; i < sqlite3_column_count(stmt); i++) {
		const char *name = sqlite3_column_name(stmt, i);

		d9__text_string(out, i ? "," : "{");
		d9__text_json(out, name, strlen(name));
		d9__text_char(out, ':');
		put_json(out, stmt, i);
	}
	d9__text_char(out, '}');
}

static int put_json_rows(struct d9__text_out *out, sqlite3_stmt *stmt, bool lines)
{
	bool any = false;
	int err;

	for (; (err = sqlite3_step(stmt)) == SQLITE_ROW && !out->err; any = true) {
		if (!lines)
			d9__text_string(out, any ? ",\n " : "[");
		put_object(out, stmt);
		if (lines)
			d9__text_char(out, '\n');
	}
	if (!lines && (any || err == SQLITE_DONE))
		d9__text_string(out, any ? "]\n" : "[]\n");
	return err;
}

/* ---- CSV ---- */

static void put_csv(struct d9__text_out *out, const char *text, size_t len)
{
	bool quoted = memchr(text, ',', len) || memchr(text, '"', len) || memchr(text, '\n', len) ||
		      memchr(text, '\r', len);
	struct d9__shown shown;

	d9__text_string(out, quoted ? "\"" : "");
	for (size_t at = 0; at < len; at += shown.taken) {
		d9__shown_next(&shown, text + at, len - at);
		if (text[at] == '"')
			d9__text_string(out, "\"\"");
		else if (text[at] == '\n' || text[at] == '\\')
			d9__text_char(out, text[at]);
		else
			d9__text_bytes(out, shown.text, shown.len);
	}
	d9__text_string(out, quoted ? "\"" : "");
}

static int put_csv_rows(struct d9__text_out *out, sqlite3_stmt *stmt)
{
	int n = sqlite3_column_count(stmt), err = sqlite3_step(stmt);

	if (err != SQLITE_ROW && err != SQLITE_DONE)
		return err;
	for (int i = 0; i < n; i++) {
		d9__text_string(out, i ? "," : "");
		put_csv(out, sqlite3_column_name(stmt, i), strlen(sqlite3_column_name(stmt, i)));
	}
	d9__text_char(out, '\n');
	for (; err == SQLITE_ROW && !out->err; err = sqlite3_step(stmt)) {
		for (int i = 0; i < n; i++) {
			const char *text = (const char *)sqlite3_column_text(stmt, i);

			d9__text_string(out, i ? "," : "");
			if (text)
				put_csv(out, text, (size_t)sqlite3_column_bytes(stmt, i));
		}
		d9__text_char(out, '\n');
	}
	return err;
}

/* ---- table ---- */

struct cell {
	char *text; /* NULL: there is no value */
	size_t len;
	bool number;
};

struct table {
	struct d9__text_out *out;
	int columns;
	size_t *widths;
	bool *left;	    /* whether a column is set from the left */
	struct cell *cells; /* of the first rows */
	size_t rows;
	bool measured; /* the widths stay as they are */
};

/*
 * Write as much of |text| as goes into |columns|, where a character takes one, to |out|, which may
 * be NULL; how many it took.
 */
static size_t put_shown(struct d9__text_out *out, const char *text, size_t len, size_t columns)
{
	struct d9__shown shown;
	size_t used = 0, width;

	for (size_t at = 0; at < len; at += shown.taken, used += width) {
		d9__shown_next(&shown, text + at, len - at);
		width = shown.escaped ? shown.len : 1;
		if (width > columns - used)
			break;
		if (out)
			d9__text_bytes(out, shown.text, shown.len);
	}
	return used;
}

static size_t width_of(const char *text, size_t len)
{
	return put_shown(NULL, text, len, SIZE_MAX);
}

static bool take_cell(struct table *table, struct cell *cell, sqlite3_stmt *stmt, int i)
{
	int type = sqlite3_column_type(stmt, i);
	const char *text;
	char number[48];
	size_t width;

	cell->number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
	if (type == SQLITE_FLOAT) {
		/* Six digits are enough for people; programs ask for another format. */
		snprintf(number, sizeof(number), "%.6g", sqlite3_column_double(stmt, i));
		text = number;
	} else {
		text = (const char *)sqlite3_column_text(stmt, i);
	}
	cell->text = text ? strdup(text) : NULL;
	cell->len = text ? strlen(text) : 0;
	width = text ? width_of(text, cell->len) : 0;
	if (!table->measured && width > table->widths[i])
		table->widths[i] = width;
	table->left[i] |= !table->measured && text && !cell->number;
	return cell->text || !text;
}

static void put_padding(struct d9__text_out *out, size_t n)
{
	while (n-- > 0)
		d9__text_char(out, ' ');
}

static void put_field(struct table *table, int i, const char *text, size_t len)
{
	size_t width = table->widths[i], needed = width_of(text, len);
	bool last = i == table->columns - 1;

	d9__text_string(table->out, i ? "  " : "");
	if (!table->left[i] && needed < width)
		put_padding(table->out, width - needed);
	/*
	 * Cut text that does not fit; never numbers, because a part of a number is another number.
	 */
	if (table->left[i] && needed > width) {
		needed = put_shown(table->out, text, len, width - 1) + 1;
		d9__text_char(table->out, '~');
	} else {
		put_shown(table->out, text, len, SIZE_MAX);
	}
	if (table->left[i] && !last && needed < width)
		put_padding(table->out, width - needed);
}

static void put_cells(struct table *table, const struct cell *cells)
{
	for (int i = 0; i < table->columns; i++)
		put_field(table, i, cells[i].text ? cells[i].text : "", cells[i].len);
	d9__text_char(table->out, '\n');
}

static void release_cells(struct cell *cells, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(cells[i].text);
}

/* Narrow columns of text so that lines fit on the terminal, as far as possible. */
static void fit_widths(struct table *table)
{
	size_t all = 2 * (size_t)(table->columns - 1), room = d9__text_columns(),
	       widest = table->columns > 1 ? WIDEST : room;

	if (!isatty(table->out->fd))
		return;
	for (int i = 0; i < table->columns; i++) {
		if (table->left[i] && table->widths[i] > widest && table->widths[i] > room / 2)
			table->widths[i] = widest > room / 2 ? widest : room / 2;
		all += table->widths[i];
	}
	/* The widest text gives way until the line fits, or there is nothing more to take. */
	while (all > room) {
		int most = -1;

		for (int i = 0; i < table->columns; i++)
			if (table->left[i] && table->widths[i] > 12 &&
			    (most < 0 || table->widths[i] > table->widths[most]))
				most = i;
		if (most < 0)
			return;
		table->widths[most]--;
		all--;
	}
}

static void put_head(struct table *table, sqlite3_stmt *stmt)
{
	for (int i = 0; i < table->columns; i++)
		put_field(table, i, sqlite3_column_name(stmt, i),
			  strlen(sqlite3_column_name(stmt, i)));
	d9__text_char(table->out, '\n');
	for (size_t i = 0; i < table->rows; i++)
		put_cells(table, table->cells + i * (size_t)table->columns);
}

/* The next row into |cells|.  SQLITE_ROW, or SQLite's error. */
static int take_row(struct table *table, sqlite3_stmt *stmt, struct cell *cells)
{
	int err = sqlite3_step(stmt);

	for (int i = 0; i < table->columns && err == SQLITE_ROW; i++)
		if (!take_cell(table, &cells[i], stmt, i))
			err = SQLITE_NOMEM;
	return err;
}

static int put_table(struct table *table, sqlite3_stmt *stmt)
{
	size_t columns = (size_t)table->columns;
	struct cell *more = table->cells + MEASURED * columns;
	int err = SQLITE_ROW;

	for (int i = 0; i < table->columns; i++)
		table->widths[i] = width_of(sqlite3_column_name(stmt, i),
					    strlen(sqlite3_column_name(stmt, i)));
	while (table->rows < MEASURED &&
	       (err = take_row(table, stmt, table->cells + table->rows * columns)) == SQLITE_ROW)
		table->rows++;
	if (err != SQLITE_ROW && err != SQLITE_DONE && !table->rows)
		return err;
	fit_widths(table);
	put_head(table, stmt);
	table->measured = true;
	while (err == SQLITE_ROW && !table->out->err) {
		err = take_row(table, stmt, more);
		if (err == SQLITE_ROW)
			put_cells(table, more);
		release_cells(more, columns);
		memset(more, 0, columns * sizeof(*more));
	}
	return err;
}

static int put_table_rows(struct d9__text_out *out, sqlite3_stmt *stmt)
{
	struct table table = { .out = out, .columns = sqlite3_column_count(stmt) };
	size_t columns = (size_t)table.columns;
	int err = SQLITE_NOMEM;

	table.widths = calloc(columns, sizeof(*table.widths));
	table.left = calloc(columns, sizeof(*table.left));
	table.cells = calloc((MEASURED + 1) * columns, sizeof(*table.cells));
	if (table.widths && table.left && table.cells)
		err = put_table(&table, stmt);
	if (table.cells)
		release_cells(table.cells, (MEASURED + 1) * columns);
	free(table.cells);
	free(table.left);
	free(table.widths);
	return err;
}

int d9__query_output(struct d9__text_out *out, sqlite3_stmt *stmt, enum d9__query_format format)
{
	switch (format) {
	case D9__QUERY_TABLE:
		return put_table_rows(out, stmt);
	case D9__QUERY_CSV:
		return put_csv_rows(out, stmt);
	default:
		return put_json_rows(out, stmt, format == D9__QUERY_JSONL);
	}
}
