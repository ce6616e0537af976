/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "analyze/page.h"
#include "format/utf8.h"

#define GAP        2
#define PROSE_MAX  120 /* longer lines are hard to read */
#define MIN_FLEX   10
#define MIN_REST   14
#define ELLIPSIS   "..."
#define ELLIPSIS_N 3
#define UTF8_MAX   4

/* Bytes of the character at |text|, which is terminated: 1 for what is not to be printed, then |*bad|. */
static size_t step(const struct d9__page *page, const unsigned char *text, bool *bad)
{
	size_t n = d9__utf8_len((const char *)text, UTF8_MAX);

	*bad = n == 0 || (n == 1 && (text[0] < 0x20 || text[0] == 0x7f)) || (n > 1 && !page->utf8);
	/* U+0080 to U+009F are control characters too. */
	if (n == 2 && text[0] == 0xc2 && text[1] < 0xa0)
		*bad = true;
	return n ? n : 1;
}

/* Columns of the |n| bytes of one character: 2 for most of Asia's, 0 for marks on others. */
static size_t width_of(const unsigned char *text, size_t n, bool bad)
{
	wchar_t c = text[0];
	int width;

	if (bad || n == 1)
		return 1;
	c &= 0x7f >> n;
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (text[i] & 0x3f);
	width = wcwidth(c);
	return width < 0 ? 1 : (size_t)width;
}

static void put_clean(struct d9__page *page, const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;

	for (size_t i = 0; i < len;) {
		bool bad;
		size_t n = step(page, bytes + i, &bad);

		if (bad)
			putc('?', page->out);
		else
			fwrite(bytes + i, 1, n, page->out);
		i += n;
	}
}

size_t d9__page_columns(const struct d9__page *page, const char *text)
{
	size_t columns = 0, n;
	bool bad;

	for (const unsigned char *at = (const unsigned char *)text; *at; at += n) {
		n = step(page, at, &bad);
		columns += width_of(at, n, bad);
	}
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

void d9__page_section(struct d9__page *page, const char *title)
{
	putc('\n', page->out);
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
	bool bad;

	for (; *text; text += n) {
		n = step(page, (const unsigned char *)text, &bad);
		width = width_of((const unsigned char *)text, n, bad);
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
		char *start = strndup(text, keep);

		kept = start ? d9__page_columns(page, start) : 0;
		free(start);
	}
	head = (columns - ELLIPSIS_N + 1) / 2;
	if (kept && kept <= columns && columns - kept < MIN_REST)
		return strndup(text, keep);
	if (kept && kept <= columns)
		head = kept + (columns - ELLIPSIS_N - kept + 1) / 2;
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
	grid->columns[grid->n_columns++] = (struct d9__grid_column){ title, left, flexible };
}

void d9__grid_cell(struct d9__grid *grid, const char *text, size_t keep)
{
	struct d9__grid_cell *cells;

	/* Grow at powers of two. */
	if ((grid->n_cells & (grid->n_cells - 1)) == 0) {
		size_t n = grid->n_cells ? 2 * grid->n_cells : 1;

		cells = realloc(grid->cells, n * sizeof(*cells));
		if (!cells) {
			grid->failed = true;
			return;
		}
		grid->cells = cells;
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

static void measure(const struct d9__grid *grid, const struct d9__page *page, size_t *widths)
{
	size_t used = 0, flexible = grid->n_columns;

	for (size_t i = 0; i < grid->n_columns; i++)
		widths[i] = strlen(grid->columns[i].title);
	for (size_t i = 0, column = 0; i < grid->n_cells; i++, column = next_column(grid, column)) {
		size_t columns = d9__page_columns(page, grid->cells[i].text);

		if (columns > widths[column])
			widths[column] = columns;
	}
	for (size_t i = 0; i < grid->n_columns; i++) {
		if (grid->columns[i].flexible)
			flexible = i;
		used += GAP + widths[i];
	}
	if (flexible < grid->n_columns && used > page->width) {
		size_t over = used - page->width;

		widths[flexible] = widths[flexible] > over + MIN_FLEX ? widths[flexible] - over
								      : MIN_FLEX;
	}
}

static void put_cell(struct d9__grid *grid, struct d9__page *page, size_t column, size_t width,
		     const char *text, size_t keep, enum d9__page_color color)
{
	char *fitting = d9__page_shorten(page, text, keep, width);
	size_t columns = fitting ? d9__page_columns(page, fitting) : 0;
	bool last = column + 1 == grid->n_columns;

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
