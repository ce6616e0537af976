/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/array.h"
#include "text/page.h"
#include "text/shown.h"

#define GAP        2
#define PROSE_MAX  120 /* longer lines are hard to read */
#define MIN_FLEX   10
#define MIN_REST   14
#define ELLIPSIS   "..."
#define ELLIPSIS_N 3
#define UTF8_MAX   4

/* The first character of |text|; '?' if the locale cannot show it. */
static void look(const struct d9__page *page, struct d9__shown *shown, const char *text, size_t len)
{
	d9__shown_next(shown, text, len);
	if (shown->code < 0x80 || shown->escaped || page->utf8)
		return;
	shown->text = "?";
	shown->len = 1;
}

/* Columns that it takes: 2 for most of Asia's, 0 for marks on others. */
static size_t width_of(const struct d9__shown *shown)
{
	int width;

	if (shown->escaped || shown->len == 1)
		return shown->len;
	width = wcwidth((wchar_t)shown->code);
	return width < 0 ? 1 : (size_t)width;
}

static void put_clean(struct d9__page *page, const char *text, size_t len)
{
	struct d9__shown shown;

	for (; len; text += shown.taken, len -= shown.taken) {
		look(page, &shown, text, len);
		fwrite(shown.text, 1, shown.len, page->out);
	}
}

/* Not beyond the end of |text|, which is terminated: no character goes on behind a 0. */
static size_t step(const struct d9__page *page, const char *text, size_t *width)
{
	struct d9__shown shown;

	look(page, &shown, text, UTF8_MAX);
	*width = width_of(&shown);
	return shown.taken;
}

size_t d9__page_columns(const struct d9__page *page, const char *text)
{
	size_t columns = 0, width;

	for (; *text; columns += width)
		text += step(page, text, &width);
	return columns;
}

void d9__page_put(struct d9__page *page, enum d9__page_color color, const char *text)
{
	static const char *const codes[] = {
		[D9__PLAIN] = "",         [D9__BOLD] = "\033[1m",   [D9__RED] = "\033[1;31m",
		[D9__YELLOW] = "\033[1;33m", [D9__CYAN] = "\033[1;36m", [D9__FAINT] = "\033[2m",
	};
	bool colored = page->color && color != D9__PLAIN;

	if (colored)
		fputs(codes[color], page->out);
	put_clean(page, text, strlen(text));
	if (colored)
		fputs("\033[0m", page->out);
}

void d9__page_printf(struct d9__page *page, const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0) {
		page->err = -ENOMEM;
		return;
	}
	for (char *line = text, *end; line; line = end) {
		end = strchr(line, '\n');
		put_clean(page, line, end ? (size_t)(end - line) : strlen(line));
		if (end) {
			putc('\n', page->out);
			end++;
		}
	}
	free(text);
}

void d9__page_gap(struct d9__page *page)
{
	if (!page->fresh)
		putc('\n', page->out);
	page->fresh = false;
}

void d9__page_section(struct d9__page *page, const char *title)
{
	d9__page_gap(page);
	d9__page_put(page, D9__BOLD, title);
	putc('\n', page->out);
}

void d9__page_line(struct d9__page *page, const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0) {
		page->err = -ENOMEM;
		return;
	}
	fputs("  ", page->out);
	d9__page_wrap(page, text, 2, 4);
	free(text);
}

static void spaces(struct d9__page *page, size_t n)
{
	while (n--)
		putc(' ', page->out);
}

/* Whether |text| begins with a unit of measure. */
static bool is_unit(const char *text)
{
	static const char *const units[] = { "ns", "us", "ms", "s", "min", "h", "%", "B", "KiB",
					     "MiB", "GiB", "TiB" };
	size_t len = strcspn(text, " ,;:.)");

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i]) == len && !memcmp(text, units[i], len))
			return true;
	return false;
}

/* Length of what must stay on one line: a word, or a number and its unit. */
static size_t word_len(const char *text)
{
	size_t len = strcspn(text, " ");

	if (len && text[len - 1] >= '0' && text[len - 1] <= '9' && text[len] == ' ' &&
	    is_unit(text + len + 1))
		len += 1 + strcspn(text + len + 1, " ");
	return len;
}

void d9__page_wrap(struct d9__page *page, const char *text, unsigned column, unsigned indent)
{
	unsigned width = page->width < PROSE_MAX ? page->width : PROSE_MAX;
	bool first = true;

	while (*text) {
		size_t len = word_len(text);
		char *word = strndup(text, len);
		size_t columns = word ? d9__page_columns(page, word) : len;

		free(word);
		if (column > indent && column + !first + columns > width) {
			putc('\n', page->out);
			spaces(page, indent);
			column = indent;
		} else if (!first) {
			putc(' ', page->out);
			column++;
		}
		put_clean(page, text, len);
		column += (unsigned)columns;
		first = false;
		text += len;
		text += strspn(text, " ");
	}
	putc('\n', page->out);
}

/*
 * Where |text| goes on behind |columns| columns.  A character that lies across that line comes
 * before it if |across|; marks stay with what they are on.
 */
static const char *skip(const struct d9__page *page, const char *text, size_t columns, bool across)
{
	size_t used = 0, n, width;

	for (; *text; text += n) {
		n = step(page, text, &width);
		if (width && (across ? used >= columns : used + width > columns))
			break;
		used += width;
	}
	return text;
}

char *d9__page_shorten(const struct d9__page *page, const char *text, size_t keep, size_t columns)
{
	size_t all = d9__page_columns(page, text), head, kept = 0;
	const char *head_end, *tail;
	char *out;

	if (all <= columns)
		return strdup(text);
	if (columns <= ELLIPSIS_N)
		return strndup(text, (size_t)(skip(page, text, columns, false) - text));
	if (keep && keep <= strlen(text)) {
		char *start = strndup(text, keep), *more = start ? strstr(start, " (") : NULL;

		if (!start)
			return NULL;
		kept = d9__page_columns(page, start);
		out = kept + MIN_REST > columns
			      ? d9__page_shorten(page, start, more ? (size_t)(more - start) : 0,
						 columns)
			      : NULL;
		free(start);
		if (kept + MIN_REST > columns)
			return out;
	}
	head = kept ? kept + (columns - ELLIPSIS_N - kept + 1) / 2 : (columns - ELLIPSIS_N + 1) / 2;
	head_end = skip(page, text, head, false);
	tail = skip(page, text, all - (columns - ELLIPSIS_N - head), true);
	out = malloc((size_t)(head_end - text) + ELLIPSIS_N + strlen(tail) + 1);
	if (!out)
		return NULL;
	memcpy(out, text, (size_t)(head_end - text));
	memcpy(out + (head_end - text), ELLIPSIS, ELLIPSIS_N);
	strcpy(out + (head_end - text) + ELLIPSIS_N, tail);
	return out;
}

void d9__grid_column(struct d9__grid *grid, const char *title, bool left, bool flexible)
{
	grid->columns[grid->n_columns++] =
		(struct d9__grid_column){ .title = title, .left = left, .flexible = flexible };
}

void d9__grid_spare(struct d9__grid *grid, const char *const titles[])
{
	for (unsigned order = 1; *titles; titles++, order++)
		for (size_t i = 0; i < grid->n_columns; i++)
			if (!strcmp(grid->columns[i].title, *titles))
				grid->columns[i].spare = order;
}

void d9__grid_cell(struct d9__grid *grid, const char *text, size_t keep)
{
	if (!d9__array_grow(grid->cells, grid->n_cells)) {
		grid->failed = true;
		return;
	}
	grid->cells[grid->n_cells] = (struct d9__grid_cell){ strdup(text), keep };
	if (grid->cells[grid->n_cells].text)
		grid->n_cells++;
	else
		grid->failed = true;
}

static size_t next_column(const struct d9__grid *grid, size_t column)
{
	return column + 1 < grid->n_columns ? column + 1 : 0;
}

/* Columns of the page that the table takes; a width of 0 is a column that is left out. */
static size_t width_of_all(const struct d9__grid *grid, const size_t *widths)
{
	size_t used = 0;

	for (size_t i = 0; i < grid->n_columns; i++)
		used += widths[i] ? GAP + widths[i] : 0;
	return used;
}

/* Leave out what can be spared until the table fits with |flexible| at its least. */
static void spare(const struct d9__grid *grid, const struct d9__page *page, size_t flexible, size_t *widths)
{
	size_t least = flexible < grid->n_columns && widths[flexible] > MIN_FLEX ? widths[flexible] - MIN_FLEX : 0;

	for (unsigned order = 1; order <= grid->n_columns; order++)
		for (size_t i = 0; i < grid->n_columns; i++)
			if (grid->columns[i].spare == order &&
			    width_of_all(grid, widths) > page->width + least)
				widths[i] = 0;
}

static void measure(const struct d9__grid *grid, const struct d9__page *page, size_t *widths)
{
	size_t used, flexible = grid->n_columns;

	for (size_t i = 0; i < grid->n_columns; i++)
		if (grid->columns[i].flexible)
			flexible = i;
	for (size_t i = 0, column = 0; i < grid->n_cells; i++, column = next_column(grid, column)) {
		size_t columns = d9__page_columns(page, grid->cells[i].text);

		if (columns > widths[column])
			widths[column] = columns;
	}
	/* A column with nothing in it says nothing. */
	for (size_t i = 0; i < grid->n_columns; i++)
		if (widths[i] && widths[i] < strlen(grid->columns[i].title))
			widths[i] = strlen(grid->columns[i].title);
	spare(grid, page, flexible, widths);
	used = width_of_all(grid, widths);
	if (flexible < grid->n_columns && used > page->width) {
		size_t over = used - page->width;

		widths[flexible] = widths[flexible] > over + MIN_FLEX ? widths[flexible] - over
								      : MIN_FLEX;
	}
}

static void put_cell(struct d9__grid *grid, struct d9__page *page, size_t column, size_t width,
		     const char *text, size_t keep, enum d9__page_color color)
{
	char *fitting = width ? d9__page_shorten(page, text, keep, width) : NULL;
	size_t columns = fitting ? d9__page_columns(page, fitting) : 0;
	bool last = column + 1 == grid->n_columns;

	if (width)
		spaces(page, GAP);
	if (!grid->columns[column].left && columns < width)
		spaces(page, width - columns);
	if (fitting)
		d9__page_put(page, color, fitting);
	if (grid->columns[column].left && columns < width && !last)
		spaces(page, width - columns);
	if (last)
		putc('\n', page->out);
	free(fitting);
}

void d9__grid_print(struct d9__grid *grid, struct d9__page *page)
{
	size_t widths[D9__GRID_COLUMNS] = { 0 };

	if (grid->failed)
		page->err = -ENOMEM;
	if (grid->n_cells >= grid->n_columns && !grid->failed) {
		measure(grid, page, widths);
		for (size_t i = 0; i < grid->n_columns; i++)
			put_cell(grid, page, i, widths[i], grid->columns[i].title, 0, D9__FAINT);
	}
	for (size_t i = 0, column = 0; i < grid->n_cells; i++, column = next_column(grid, column)) {
		if (!grid->failed)
			put_cell(grid, page, column, widths[column], grid->cells[i].text,
				 grid->cells[i].keep, D9__PLAIN);
		free(grid->cells[i].text);
	}
	free(grid->cells);
	*grid = (struct d9__grid){ .n_columns = 0 };
}
